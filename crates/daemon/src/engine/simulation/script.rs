//! What can happen in a simulated case, as data: it can be printed, stored, shrunk and replayed.

use pinfold_core::ConsumerId;
use pinfold_core::event::{Ask, Joins};
use serde::{Deserialize, Serialize};

/// One step. Numbers are taken modulo what exists, so every step makes sense in every world.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum CommonStep {
    /// The daemon performs its next action for this session.
    Perform(u8),
    /// The daemon takes the next event queued for this session.
    Take(u8),
    /// An event that was taken earlier arrives again.
    Again(u8, u8),
    /// Time passes (milliseconds).
    Pass(u32),
    /// A timer fires, due or not.
    Tick(u8),
    /// The wall clock jumps (minutes).
    ClockJumps(i16),
    /// The machine sleeps (minutes).
    Suspend(u16),
    /// The machine restarts.
    Reboot,
    /// kill -9 of the daemon.
    KillDaemon,
    /// The daemon starts.
    StartDaemon,
    /// The daemon is asked to go down.
    Down,
    /// The agent ends by itself.
    AgentEnds(u8, AgentEnding),
    /// The agent takes the message it was given, or ends its turn.
    AgentWorks(u8, Work),
    /// kill -9 of the shim; its tree may leave a stray behind.
    KillShim(u8, bool),
    /// The next spawn of this session fails.
    BreakSpawn(u8, SpawnFault),
    /// An outsider takes or frees a directory.
    Foreign(u8, bool),
    /// A person asks for something.
    Ask(u8, Asking),
    /// A message is sent, with a dedupe key if not 0.
    Send(u8, u8),
    /// A queued message is cancelled.
    Cancel(u8),
    /// A failed message is retried.
    Retry(u8),
    /// A consumer comes (attached or watching) or goes.
    Consumer(u8, u8, Coming),
    /// Memory is read (percent of the limit, or nothing).
    Memory(u8, Option<u8>),
    /// The vendor refuses a session's account for a while, or a person lets it go on.
    VendorBusy(u8),
    /// The next daemon that starts finds this session's lock held by a shim that does not answer.
    Mute(u8),
    /// The definition changes.
    Redefine(u8, u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum AgentEnding {
    Code(u8),
    Signal(u8),
    Drained,
    Contended,
    StaleId,
    Limit,
    OutOfMemory,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Work {
    Takes,
    Answers,
    Fails,
    Feeds,
    /// It takes the message and dies of it.
    Drops,
    /// Its guest ends.
    GuestEnds,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum SpawnFault {
    Refused,
    ProgramMissing,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Asking {
    Start,
    Stop,
    Restart,
    Interrupt,
    Archive,
    Restore,
    Purge(bool),
    Takeover(u8, bool),
    Attach(u8, Joining, bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Joining {
    Terminal,
    Takeover,
    Guest,
    Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Coming {
    Attaches,
    Watches,
    Leaves,
}

/// The core's event for an attach.
pub(crate) fn attach(consumer: ConsumerId, joining: Joining, urgent: bool) -> Ask {
    let joins = match joining {
        Joining::Terminal => Joins::Terminal,
        Joining::Takeover => Joins::Takeover,
        Joining::Guest => Joins::Guest,
        Joining::Output => Joins::Output,
    };
    Ask::Attach { consumer, joins, urgent }
}

/// A random number generator: small, fast, and the same everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// The script of a seed.
pub(crate) fn generate(seed: u64, length: usize) -> Vec<CommonStep> {
    let mut dice = Dice::new(seed);
    let mood = Mood::of(&mut dice);
    (0..length).map(|_| step(&mut dice, mood)).collect()
}

/// What agents of one case tend to do: rules that count need the same end many times in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Mixed,
    Crashing,
    Contended,
    Draining,
    Finishing,
    /// They die of what they are given.
    Dropping,
}

impl Mood {
    fn of(dice: &mut Dice) -> Mood {
        match dice.below(8) {
            0 => Mood::Crashing,
            1 => Mood::Contended,
            2 => Mood::Draining,
            3 => Mood::Finishing,
            4 => Mood::Dropping,
            _ => Mood::Mixed,
        }
    }
}

/// Mostly the daemon at work; now and then a fault.
fn step(dice: &mut Dice, mood: Mood) -> CommonStep {
    let session = dice.byte();
    match dice.below(200) {
        0..=49 => CommonStep::Perform(session),
        50..=99 => CommonStep::Take(session),
        100..=103 => CommonStep::Again(session, dice.byte()),
        104..=119 => CommonStep::Pass(pass(dice)),
        120..=124 => CommonStep::Tick(session),
        125 => rare(dice),
        126..=127 => CommonStep::KillDaemon,
        128..=135 => CommonStep::StartDaemon,
        136..=149 if mood == Mood::Dropping && dice.below(10) > 0 => {
            CommonStep::AgentWorks(session, Work::Drops)
        }
        136..=149 => CommonStep::AgentEnds(session, ending(dice, mood)),
        150..=167 => CommonStep::AgentWorks(session, work(dice, mood)),
        168 => CommonStep::KillShim(session, dice.coin()),
        169 => CommonStep::BreakSpawn(
            session,
            if dice.coin() { SpawnFault::Refused } else { SpawnFault::ProgramMissing },
        ),
        170..=171 => CommonStep::Foreign(session, dice.below(3) == 0),
        172..=181 => CommonStep::Ask(session, asking(dice)),
        182..=188 => CommonStep::Send(session, dice.below(30) as u8),
        189 => {
            if dice.coin() {
                CommonStep::Cancel(session)
            } else {
                CommonStep::Retry(session)
            }
        }
        190..=194 => CommonStep::Consumer(session, dice.below(3) as u8, coming(dice)),
        195..=197 => CommonStep::Memory(session, (dice.below(4) > 0).then(|| dice.below(130) as u8)),
        198 => CommonStep::VendorBusy(session),
        _ => {
            if dice.coin() {
                CommonStep::Mute(session)
            } else {
                CommonStep::Redefine(session, dice.byte())
            }
        }
    }
}

fn pass(dice: &mut Dice) -> u32 {
    let longest = [50, 50, 1_500, 1_500, 15_000, 70_000, 700_000][dice.below(7) as usize];
    dice.below(longest) as u32
}

fn rare(dice: &mut Dice) -> CommonStep {
    match dice.below(4) {
        0 => CommonStep::ClockJumps(dice.below(121) as i16 - 60),
        1 => CommonStep::Suspend(dice.below(480) as u16),
        2 => CommonStep::Reboot,
        _ => CommonStep::Down,
    }
}

fn ending(dice: &mut Dice, mood: Mood) -> AgentEnding {
    match mood {
        Mood::Crashing if dice.below(10) > 0 => return AgentEnding::Code(1),
        Mood::Contended if dice.below(10) > 0 => return AgentEnding::Contended,
        Mood::Draining if dice.below(10) > 0 => return AgentEnding::Drained,
        Mood::Finishing if dice.below(10) > 0 => return AgentEnding::Code(0),
        Mood::Mixed
        | Mood::Crashing
        | Mood::Contended
        | Mood::Draining
        | Mood::Finishing
        | Mood::Dropping => {}
    }
    match dice.below(12) {
        0..=2 => AgentEnding::Code(0),
        3..=5 => AgentEnding::Code(1),
        6 => AgentEnding::Code([75, 78, 127, 143][dice.below(4) as usize]),
        7 => AgentEnding::Signal([9, 11, 15][dice.below(3) as usize]),
        8 => AgentEnding::Drained,
        9 => AgentEnding::Contended,
        10 => {
            if dice.coin() {
                AgentEnding::StaleId
            } else {
                AgentEnding::Limit
            }
        }
        _ => AgentEnding::OutOfMemory,
    }
}

fn work(dice: &mut Dice, mood: Mood) -> Work {
    if mood == Mood::Dropping && dice.below(10) > 0 {
        return Work::Drops;
    }
    match dice.below(11) {
        0..=3 => Work::Takes,
        4..=7 => Work::Answers,
        8 => Work::Fails,
        9 => Work::GuestEnds,
        _ => Work::Feeds,
    }
}

fn asking(dice: &mut Dice) -> Asking {
    match dice.below(36) {
        0..=9 => Asking::Start,
        10..=11 => Asking::Stop,
        12..=14 => Asking::Restart,
        15 => Asking::Interrupt,
        16 => Asking::Archive,
        17..=22 => Asking::Restore,
        23 => Asking::Purge(dice.coin()),
        24..=28 => Asking::Takeover(dice.below(3) as u8, dice.coin()),
        29..=32 => Asking::Attach(dice.below(3) as u8, Joining::Guest, dice.coin()),
        _ => Asking::Attach(dice.below(3) as u8, joining(dice), dice.coin()),
    }
}

fn joining(dice: &mut Dice) -> Joining {
    match dice.below(3) {
        0 => Joining::Terminal,
        1 => Joining::Takeover,
        _ => Joining::Output,
    }
}

fn coming(dice: &mut Dice) -> Coming {
    match dice.below(4) {
        0 => Coming::Attaches,
        1 => Coming::Watches,
        _ => Coming::Leaves,
    }
}

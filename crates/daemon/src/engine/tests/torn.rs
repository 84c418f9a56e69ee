//! A session with a tape on a machine whose power fails: whatever the disk has lost of the tape while the
//! database was kept, nothing of the next run is skipped, what may have been said before is marked, and
//! nothing counts as done whose end was not printed.
//!
//! Daemon, shim and agent take their steps in random order, and die between any two of them.

use super::hand::{LONG, PROCESS, Room, exited};
use crate::ports::shims::observe::SessionSeen;
use crate::ports::tapes::{Passage, Taped};
use pinfold_agents::{EntryKind, Label};
use pinfold_core::event::{Ask, Machine, ShimSeen};
use pinfold_core::exit::Exit;
use pinfold_core::{MessageId, RunNumber, Wall};
use pinfold_shim::tape::Position;
use pinfold_shim::{
    Can, Command, Exited, Keeping, Report, SaidUpTo, Say, SayNumber, SayRefused, Start, TapeEnd,
};
use pinfold_shim::{TapeReport, TapeStanding};
use pinfold_store::{MessageState, SessionId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

const CASES: u64 = 1_000;
const STEPS: u64 = 60;
const MESSAGES: usize = 4;
/// Far more steps than it takes to come to rest.
const PATIENCE: usize = 400;
/// The bytes of an entry.
const LENGTH: u64 = 100;

/// Pseudo-random numbers, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The agent of the live run, and what its shim has said to it.
#[derive(Default)]
struct Agent {
    said: u64,
    /// Lines that it has not read.
    unread: VecDeque<(u64, Value)>,
    /// The turn under way: the number of its utterance, and its message.
    turn: Option<(u64, String)>,
    /// It got the stop signal.
    signalled: bool,
}

struct World {
    room: Option<Room>,
    id: SessionId,
    tape: Vec<Taped>,
    /// Where the tape continues; entries before it may be missing.
    end: u64,
    run: Option<RunNumber>,
    agent: Option<Agent>,
    records: Vec<Exited>,
    /// Reports that the daemon has not read yet, if it is connected.
    unheard: Option<VecDeque<Report>>,
    sent: Vec<MessageId>,
    /// Every delivery that an agent has read, and every message that one has read.
    deliveries: BTreeSet<(RunNumber, u64)>,
    said: BTreeSet<String>,
    /// Messages whose end was printed, and where.
    ended: BTreeMap<String, u64>,
    cuts: usize,
    /// How often an agent read that it should end its turn, or leave.
    words: usize,
}

impl World {
    fn new() -> World {
        let mut room = Room::configured("[policy]\nmessage_tries = 100\n");
        let id = room.create("api", &json!({ "mode": "always", "protocol": "scripted", "agent": "player" }));
        World {
            room: Some(room),
            id,
            tape: Vec::new(),
            end: 0,
            run: None,
            agent: None,
            records: Vec::new(),
            unheard: None,
            sent: Vec::new(),
            deliveries: BTreeSet::new(),
            said: BTreeSet::new(),
            ended: BTreeMap::new(),
            cuts: 0,
            words: 0,
        }
    }

    fn append(&mut self, what: EntryKind, bytes: &[u8]) {
        let (run, position, at) = (self.run.unwrap(), self.end, Wall(0));
        let lost = position - self.tape.last().map_or(position, |last| last.end);
        self.end += LENGTH;
        self.tape.push(Taped { position, end: self.end, run, at, what, bytes: bytes.to_vec(), lost });
    }

    fn prints(&mut self, line: &Value) {
        self.append(EntryKind::Out, format!("{line}\n").as_bytes());
        let (run, end) = (self.run.unwrap(), Position(self.end));
        self.reports(Report::Tape(TapeReport::Grown { run, end }));
    }

    fn reports(&mut self, report: Report) {
        if let Some(unheard) = &mut self.unheard {
            unheard.push_back(report);
        }
        self.is_heard();
    }

    /// The daemon reads what the shim has reported.
    fn is_heard(&mut self) {
        let (id, Some(unheard)) = (self.id, &mut self.unheard) else { return };
        let Some(room) = self.room.as_mut().filter(|room| room.desk.is_heard(id)) else { return };
        unheard.drain(..).for_each(|report| room.says(id, report));
    }

    fn up_to(&self) -> SaidUpTo {
        let said = SayNumber(self.agent.as_ref().map_or(0, |agent| agent.said));
        SaidUpTo { said, written: said }
    }

    /// Serves requests for locks, a shim or a part of the tape; the shim reads its commands.
    fn serves(&mut self) {
        let id = self.id;
        self.is_looked_at(Machine::Same);
        let Some(room) = &mut self.room else { return };
        if !room.desk.lock().reservations.is_empty() {
            room.grant();
        }
        let birth = room.desk.lock().births.pop();
        if let Some((birth, held, then)) = birth {
            held.surrender();
            let mut up = room.up(id, Keeping::Standing, Vec::new());
            up.welcome.can = Can { tape: true, hold: true, ..Can::default() };
            then(Ok(Box::new(up)));
            room.settle();
            self.unheard = Some(VecDeque::new());
            self.begins(&birth.start);
        }
        self.reads();
        self.is_heard();
        let told = self.room.as_mut().map(|room| room.heard(id)).unwrap_or_default();
        told.into_iter().for_each(|command| self.obeys(command));
    }

    fn reads(&mut self) {
        let Some(room) = &mut self.room else { return };
        let wanted = std::mem::take(&mut room.desk.lock().stretches);
        for (stretch, then) in wanted {
            let entries = self.tape.iter().filter(|entry| entry.position >= stretch.from).cloned().collect();
            then(Passage { entries, next: self.end, more: false, problem: None });
            room.settle();
        }
    }

    fn begins(&mut self, start: &Start) {
        if self.agent.is_some() {
            return;
        }
        let floor = start.tape.expect("it has a tape").floor.0;
        (self.run, self.agent, self.end) = (Some(start.run), Some(Agent::default()), self.end.max(floor));
        self.reports(Report::Started { run: start.run, process: PROCESS, at: Wall(0) });
    }

    fn obeys(&mut self, command: Command) {
        if let Command::Start(start) = command {
            self.begins(&start);
        } else if let Command::Say(say) = command {
            self.says(&say);
        } else if let Command::Stop { run, .. } = command {
            let agent = self.agent.as_mut().filter(|_| self.run == Some(run));
            agent.into_iter().for_each(|agent| agent.signalled = true);
        } else if let Command::Ack { run } = command {
            self.records.retain(|exited| exited.run > run);
        }
    }

    fn says(&mut self, say: &Say) {
        let Some(agent) = self.agent.as_mut().filter(|_| self.run == Some(say.run)) else { return };
        if say.heard.is_some_and(|heard| self.end > heard.0) {
            let (run, number, why) = (say.run, say.number, SayRefused::MoreWasPrinted);
            return self.reports(Report::Tape(TapeReport::Refused { run, number, why }));
        }
        if say.number.0 == agent.said + 1 {
            agent.said = say.number.0;
            let line = if say.close {
                json!({ "type": "end" })
            } else {
                serde_json::from_slice(&say.bytes).unwrap()
            };
            agent.unread.push_back((say.number.0, line));
            let label = Label::from_text(say.label.as_str().as_bytes());
            self.append(EntryKind::Said { number: say.number.0, label }, &[]);
        }
        let report = TapeReport::Said { run: say.run, said: self.up_to() };
        self.reports(Report::Tape(report));
    }

    /// The agent reads a line, or gets its signal.
    fn acts(&mut self) {
        if self.agent.as_ref().is_some_and(|agent| agent.signalled && agent.unread.is_empty()) {
            return self.leaves();
        }
        let Some((number, line)) = self.agent.as_mut().and_then(|agent| agent.unread.pop_front()) else {
            return;
        };
        match line["type"].as_str() {
            Some("hello") => self.prints(&json!({ "type": "hello", "id": number })),
            Some("prompt") => {
                let message = line["message"].as_str().unwrap().to_owned();
                let delivery = (self.run.unwrap(), line["delivery"].as_u64().unwrap());
                assert!(self.deliveries.insert(delivery), "{delivery:?} was said twice");
                let again = !self.said.insert(message.clone());
                assert!(!again || line["again"] == true, "{message} is repeated without a mark: {line}");
                self.agent.as_mut().unwrap().turn = Some((number, message));
                self.prints(&json!({ "type": "began", "id": number }));
            }
            Some("interrupt") => {
                self.words += 1;
                if let Some((number, _)) = self.agent.as_mut().unwrap().turn.take() {
                    self.prints(&json!({ "type": "ended", "id": number, "how": "cancelled" }));
                }
            }
            Some("end") => {
                self.words += 1;
                self.leaves();
            }
            _ => {}
        }
    }

    /// The agent ends its turn.
    fn ends_turn(&mut self) {
        let Some((number, message)) = self.agent.as_mut().and_then(|agent| agent.turn.take()) else { return };
        self.ended.insert(message, self.end);
        self.prints(&json!({ "type": "ended", "id": number, "answer": "x" }));
    }

    /// The agent leaves, and its shim records that.
    fn leaves(&mut self) {
        if self.agent.is_none() {
            return;
        }
        self.append(EntryKind::End, &[]);
        let tape = TapeEnd { end: Position(self.end), said: self.up_to() };
        let ended = Exited { tape: Some(tape), ..exited(self.run.unwrap(), Exit::Code(0), LONG) };
        self.records.push(ended.clone());
        self.agent = None;
        self.reports(Report::Exited(ended));
    }

    fn daemon_dies_and_starts(&mut self, machine: Machine) {
        let Some(room) = self.room.take() else { return };
        self.unheard = None;
        self.room = Some(room.again_on(machine));
        self.is_looked_at(machine);
    }

    /// Answers looks at the session with what exists.
    fn is_looked_at(&mut self, machine: Machine) {
        let Some(room) = &mut self.room else { return };
        let (looks, proofs) = {
            let mut desk = room.desk.lock();
            (std::mem::take(&mut desk.looks), std::mem::take(&mut desk.proofs))
        };
        proofs.into_iter().for_each(|(_, then)| then(self.agent.is_none()));
        let run = self.run.filter(|_| self.agent.is_some());
        let said = SayNumber(self.agent.as_ref().map_or(0, |agent| agent.said));
        for (_, then) in looks {
            let records = self.records.clone();
            let Some(run) = run else {
                then(SessionSeen::of(machine, ShimSeen::Nobody, records));
                continue;
            };
            let keeping = Keeping::Running { run, process: PROCESS, at: Wall(0) };
            let mut up = room.up(self.id, keeping, records.clone());
            up.welcome.can = Can { tape: true, hold: true, ..Can::default() };
            up.welcome.tape = Some(TapeStanding {
                run,
                first: Position(0),
                end: Position(self.end),
                heard: Position(0),
                said: SaidUpTo { said, written: said },
                flow: Default::default(),
            });
            let seen = ShimSeen::Keeping { run, process: PROCESS };
            then(SessionSeen { shim: Some(up), ..SessionSeen::of(machine, seen, records) });
            self.unheard = Some(VecDeque::new());
        }
        room.settle();
    }

    /// Everything dies; the tape and the records may have lost their ends. The database is kept.
    fn power_fails(&mut self, dice: &mut Dice) {
        self.agent = None;
        let left = dice.below(self.tape.len() as u64 + 1) as usize;
        self.tape.truncate(left);
        self.end = self.tape.last().map_or(0, |last| last.end);
        if dice.below(2) == 0 {
            self.records.clear();
        }
        let (end, rows) = (self.end, self.states());
        let is_done =
            |message: &str| rows.iter().any(|(id, state)| id == message && *state == MessageState::Done);
        self.ended.retain(|message, at| *at < end || is_done(message));
        self.cuts += 1;
        self.daemon_dies_and_starts(Machine::Restarted);
    }

    fn states(&self) -> Vec<(String, MessageState)> {
        let room = self.room.as_ref().unwrap();
        let row = |message: &MessageId| {
            let row = room.row(*message);
            (row.id.to_string(), row.state)
        };
        self.sent.iter().map(row).collect()
    }

    fn check(&self) {
        for (message, state) in self.states() {
            assert!(state != MessageState::Failed, "{message} has failed");
            let printed = self.ended.contains_key(&message);
            assert!(state != MessageState::Done || printed, "{message} is done, and its end was not printed");
        }
    }

    /// Sends a message, unless the daemon has yet to look at the session.
    fn send(&mut self) {
        let (id, room) = (self.id, self.room.as_mut().unwrap());
        if self.sent.len() < MESSAGES && !room.engine.early.contains_key(&id) {
            self.sent.push(room.send(id, "hello", None));
        }
    }

    /// A person asks for another run, whatever this one does.
    fn restarts(&mut self) {
        let (id, room) = (self.id, self.room.as_mut().unwrap());
        if !room.engine.early.contains_key(&id) {
            room.ask(id, Ask::Restart);
        }
    }

    fn step(&mut self, dice: &mut Dice) {
        match dice.below(17) {
            0 | 1 => self.send(),
            2..=5 => self.serves(),
            6..=8 => self.acts(),
            9 | 10 => self.ends_turn(),
            11 => self.leaves(),
            12 => self.daemon_dies_and_starts(Machine::Same),
            13 => self.power_fails(dice),
            14 => self.restarts(),
            _ => self.room.as_mut().unwrap().pass(Duration::from_secs(10)),
        }
        self.check();
    }

    fn is_at_rest(&self) -> bool {
        self.sent.len() == MESSAGES && self.states().iter().all(|(_, state)| *state == MessageState::Done)
    }

    fn comes_to_rest(&mut self) {
        for _ in 0..PATIENCE {
            if self.is_at_rest() {
                return;
            }
            self.send();
            self.serves();
            self.acts();
            self.ends_turn();
            self.room.as_mut().unwrap().pass(Duration::from_secs(60));
            self.check();
        }
        panic!("a message is never done: {:?}, {:?}", self.states(), self.room.as_ref().unwrap().kinds());
    }
}

#[test]
fn whatever_the_power_took_of_a_tape_no_end_is_made_up_and_no_byte_of_the_next_run_is_passed_over() {
    let (mut cuts, mut words) = (0, 0);
    for case in 0..CASES {
        println!("case {case}");
        let (mut world, mut dice) = (World::new(), Dice(case));
        (0..STEPS).for_each(|_| world.step(&mut dice));
        world.comes_to_rest();
        cuts += world.cuts;
        words += world.words;
    }
    println!("{CASES} cases, {cuts} times the power failed, {words} words of parting");
    assert!(words > 50, "{words}");
}

//! Recovery: takes a session from wherever a crash left it to where it must be, based on what is there now.
//! There is no other recovery path: a first start finds nothing and changes nothing.

use super::draft::Draft;
use crate::budgets::Budgets;
use crate::decision::{Action, Change, Record, Refusal};
use crate::event::{Ask, Event, Machine, RunEvent, Shim, ShimSeen, StartFailure, World};
use crate::exit::{Ended, Exit};
use crate::guest::GuestSeen;
use crate::ids::RunNumber;
use crate::life::{BlockedOn, FailCause, Goal, IdleSince, Life, Process, Purpose, StartStage};
use crate::policy::Mode;
use crate::talk::{ActivitySource, Dialog, Standing};
use crate::why::{RecoveryStep, Why};

impl Draft<'_> {
    pub(super) fn recover(&mut self, world: &World) -> Why {
        if self.session.live.closing {
            self.change(Change::Closing(false));
        }
        if self.session.live.mute {
            self.change(Change::Mute(false));
        }
        if self.session.live.unended.is_some() && world.shim != ShimSeen::Mute {
            self.change(Change::Unended(None));
        }
        if world.machine != Machine::Same {
            self.forget_clock();
        }
        if world.machine == Machine::PutBack {
            self.doubt_messages();
        }
        match world.shim {
            ShimSeen::Mute => self.wait_for_shim(),
            ShimSeen::Keeping { run, process } => {
                self.await_look(run, world.dialog);
                self.adopt(run, process, world.guest)
            }
            ShimSeen::Standing => self.recover_without_agent(world, Shim::Standing),
            ShimSeen::Nobody => self.recover_without_agent(world, Shim::Absent),
        }
    }

    /// After a backup was put back, any message that waits may have been read since the backup was made. Its
    /// next delivery must not look like one that the agent knows, so it has a number of this time.
    fn doubt_messages(&mut self) {
        let Some(latest) = self.session.inbox.latest() else { return };
        let deliveries = u64::try_from(self.now.wall.0).unwrap_or_default();
        self.change(Change::Doubted { latest, deliveries });
    }

    /// Decides nothing while the session's shim holds the lock and does not answer.
    fn wait_for_shim(&mut self) -> Why {
        self.change(Change::Mute(true));
        self.act(Action::LookAgain);
        Why::Recovery(RecoveryStep::ShimMute)
    }

    /// Handles what may happen meanwhile: messages are queued, clients come and go, nothing is started or stopped.
    pub(super) fn while_mute(&mut self, event: &Event) -> Why {
        match event {
            Event::DaemonStarted(world) => return self.recover(world),
            Event::Asked(Ask::Attach { .. }) => return super::dispatch(self, event),
            Event::Asked(_) | Event::Answered { .. } => return self.refuse(Refusal::ShimMute),
            // What an agent did is true whether or not its shim answers: it was read from the disk.
            Event::Message(_) | Event::Request { .. } => return super::dispatch(self, event),
            Event::ConsumerJoined { .. }
            | Event::ConsumerLeft { .. }
            | Event::SpecChanged(_)
            | Event::Held(_)
            | Event::Looked
            | Event::BudgetRaised => {
                return super::dispatch(self, event);
            }
            Event::Run { event: RunEvent::Unended(_), .. } => return super::dispatch(self, event),
            Event::DownAsked => self.change(Change::Closing(true)),
            Event::Created
            | Event::Ticked
            | Event::Run { .. }
            | Event::HolderGone
            | Event::HolderFound(_)
            | Event::ShimLeft => {}
        }
        Why::Recovery(RecoveryStep::ShimMute)
    }

    /// Forgets boot-clock times of another boot, which mean nothing now; the crash streak does not depend on the clock.
    fn forget_clock(&mut self) {
        let mut budgets: Budgets = self.session.budgets.clone();
        budgets.forget_clock();
        if budgets != self.session.budgets {
            self.change(Change::Budgets(Box::new(budgets)));
        }
        if self.session.keep_until.is_some() {
            self.change(Change::KeepUntil(None));
        }
        if self.session.usage().is_some_and(|usage| usage.turn_since.is_some()) {
            self.change(Change::TurnSince(None));
        }
    }

    /// Goes on holding back messages because of a dialog that an earlier daemon saw, until it is known
    /// whether it is still open.
    fn await_look(&mut self, run: RunNumber, dialog: Dialog) {
        let known = self.session.live.standing.is_some() || self.session.live_run() != Some(run);
        if dialog != Dialog::None && !known {
            let standing = Standing { from: ActivitySource::IdFile, dialog, ..Standing::default() };
            self.change(Change::Standing(Some(Box::new(standing))));
        }
    }

    fn adopt(&mut self, run: RunNumber, process: Process, guest: Option<GuestSeen>) -> Why {
        if self.session.live_run() != Some(run) {
            return self.end_unexpected(run);
        }
        self.record(Record::Adopted { run, pid: process.pid });
        self.find_guest(run, guest);
        match self.session.life {
            Life::Starting { stage: StartStage::Spawning, .. } => _ = self.started(run, process),
            Life::Starting { stage: StartStage::Reserving, .. } => return self.end_unexpected(run),
            Life::Stopping { run, .. } => {
                let grace = self.session.spec.policy.stop_grace;
                self.act(Action::Stop { run, grace });
            }
            Life::Running { .. } => {
                self.deliver_again(run);
                self.resume_talk(run);
            }
            Life::Held { .. }
            | Life::Idle { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => {}
        }
        Why::Recovery(RecoveryStep::Adopted)
    }

    /// Ends a living agent that the record does not know about; the session keeps to its record.
    fn end_unexpected(&mut self, run: RunNumber) -> Why {
        let goal = match self.session.life {
            Life::Archived { .. } => Goal::Archive,
            Life::Stopped | Life::Failed { .. } => Goal::Stop,
            Life::Idle { .. }
            | Life::Starting { .. }
            | Life::Running { .. }
            | Life::Held { .. }
            | Life::Stopping { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. } => Goal::Park,
        };
        let since = self.now.moment();
        self.forget_holder();
        self.set_life(Life::Stopping { run, since, purpose: Purpose::Headless, asked: goal.asked(), goal });
        self.act(Action::Stop { run, grace: self.session.spec.policy.stop_grace });
        Why::Recovery(RecoveryStep::Unexpected)
    }

    fn recover_without_agent(&mut self, world: &World, shim: Shim) -> Why {
        if self.session.shim != shim {
            self.change(Change::Shim(shim));
        }
        match self.session.life.clone() {
            Life::Starting { run, stage: StartStage::Reserving, purpose } => self.reserve_again(run, purpose),
            Life::Starting { run, stage: StartStage::Spawning, .. } | Life::Stopping { run, .. }
                if failure_of(world, run).is_some() =>
            {
                failure_of(world, run).map_or(Why::Stale, |failure| self.start_failed(run, failure))
            }
            Life::Starting { run, stage: StartStage::Spawning, purpose } => match exit_of(world, run) {
                Some(ended) => self.exited(run, &with_line(ended, world), shim, None),
                None => self.spawn_again(run, purpose),
            },
            Life::Running { run, since, .. }
            | Life::Held { run, since, .. }
            | Life::Stopping { run, since, .. } => {
                let lost = Ended::new(lost(world.machine), self.now.boot.since(since.boot));
                let ended = with_line(exit_of(world, run).unwrap_or(&lost), world);
                self.exited(run, &ended, shim, None)
            }
            Life::Backoff { .. } => self.wait_on(world.machine),
            Life::Blocked { on, .. } => self.try_blocked_again(on, world.machine),
            // A restored session of mode `always` runs once the daemon has started next.
            Life::Idle { since: IdleSince::Restored } if self.session.spec.mode == Mode::Always => {
                self.rest(Life::Idle { since: IdleSince::DaemonDown });
                Why::Recovery(RecoveryStep::AsItWas)
            }
            Life::Idle { .. } | Life::Stopped | Life::Failed { .. } | Life::Archived { .. } => {
                self.release();
                Why::Recovery(RecoveryStep::AsItWas)
            }
        }
    }

    /// The locks died with the daemon that was taking them: the session rests first and wakes if it is still needed.
    fn reserve_again(&mut self, run: RunNumber, purpose: Purpose) -> Why {
        match purpose {
            Purpose::Headless => {
                self.settle_number(run);
                self.rest(Life::Idle { since: IdleSince::DaemonDown });
            }
            // The client that asked for the terminal was connected to the daemon that died.
            Purpose::Interactive(then) => {
                self.settle_number(run);
                self.hand_back(then);
            }
        }
        Why::Recovery(RecoveryStep::StartsAgain)
    }

    /// The locks were taken; the shim, or its absence, tells whether a process was started.
    fn spawn_again(&mut self, run: RunNumber, purpose: Purpose) -> Why {
        match (purpose, self.session.shim) {
            // The only client that needed it may have been connected to the daemon that died.
            (Purpose::Headless, Shim::Standing) if self.session.need(self.now.boot).is_none() => {
                self.settle_number(run);
                self.not_needed();
            }
            (Purpose::Headless, Shim::Standing) => self.act(Action::Spawn { run, purpose }),
            // It may have run: a second run would break `once`.
            (Purpose::Headless, Shim::Absent) if self.session.spec.mode == Mode::Once => {
                self.settle_number(run);
                self.fail(FailCause::Interrupted);
            }
            (Purpose::Headless, Shim::Absent) => {
                self.settle_number(run);
                self.rest(Life::Idle { since: IdleSince::DaemonDown });
            }
            (Purpose::Interactive(then), Shim::Standing | Shim::Absent) => {
                self.settle_number(run);
                self.hand_back(then);
            }
        }
        Why::Recovery(RecoveryStep::StartsAgain)
    }

    fn wait_on(&mut self, machine: Machine) -> Why {
        match machine {
            Machine::Same => self.as_it_was(),
            Machine::Restarted => {
                self.rest(Life::Idle { since: IdleSince::DaemonDown });
                Why::Recovery(RecoveryStep::MachineRestarted)
            }
            Machine::PutBack => {
                self.rest(Life::Idle { since: IdleSince::DaemonDown });
                Why::Recovery(RecoveryStep::PutBack)
            }
        }
    }

    /// Keeps to a wait, and watches the process again that it is for.
    fn as_it_was(&mut self) -> Why {
        if self.session.life.holder().is_some() && self.session.life.awaits_holder() {
            self.act(Action::AwaitHolder);
        }
        Why::Recovery(RecoveryStep::AsItWas)
    }

    fn try_blocked_again(&mut self, on: BlockedOn, machine: Machine) -> Why {
        match (on, machine) {
            (BlockedOn::VendorLock { .. }, Machine::Same) => self.as_it_was(),
            (BlockedOn::OurLock, _) | (_, Machine::Restarted | Machine::PutBack) => {
                self.rest(Life::Idle { since: IdleSince::DaemonDown });
                Why::Recovery(RecoveryStep::StartsAgain)
            }
        }
    }
}

/// The record of a run's end. After a backup was put back, a record is of a later run that had the same number.
fn exit_of(world: &World, run: RunNumber) -> Option<&Ended> {
    if world.machine == Machine::PutBack {
        return None;
    }
    world.exits.iter().find(|(ended, _)| *ended == run).map(|(_, ended)| ended)
}

fn failure_of(world: &World, run: RunNumber) -> Option<&StartFailure> {
    world.failures.iter().find(|(failed, _)| *failed == run).map(|(_, failure)| failure)
}

/// Returns the end with the last line found in the log.
fn with_line(ended: &Ended, world: &World) -> Ended {
    Ended { last_line: ended.last_line.clone().or_else(|| world.last_line.clone()), ..ended.clone() }
}

fn lost(machine: Machine) -> Exit {
    match machine {
        Machine::Same => Exit::ShimLost,
        Machine::Restarted => Exit::MachineLost,
        Machine::PutBack => Exit::AfterBackup,
    }
}

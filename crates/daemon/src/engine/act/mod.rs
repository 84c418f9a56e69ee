//! Performs the actions that the core asks for. Nothing here blocks: whatever may take time runs on a thread
//! and reports back as an input.

mod environment;
mod guest;
mod look;
mod prompt;
mod restart_order;
mod socket;

use super::Engine;
use crate::crash;
use crate::define::definition::{Definition, TurnEndRule};
use crate::define::preset::{Preset, VendorTranscript};
use crate::engine::input::LoopInput;
use crate::engine::session::{Reservation, Tracked};
use crate::engine::taping::MessageDelivery;
use crate::engine::taping::most_unheard;
use crate::ports::locks::{LocksRefused, LocksWanted, Obstacle, RunLocks};
use crate::ports::shims::Birth;
use crate::ports::shims::order::Order;
use pinfold_core::event::StartFailure;
use pinfold_core::guest::Attaching;
use pinfold_core::life::{CannotStart, Life, Purpose, StartRefused};
use pinfold_core::rules::start::{EACCES, ELOOP, ENOENT, ENOEXEC};
use pinfold_core::{Action, Event, Mode, RunEvent, RunNumber};
use pinfold_shim::client::Opening;
use pinfold_shim::tape::Position;
use pinfold_shim::{Command, Directory, Listens, LogLimits, Start, Stdin, TapeLimits, Tie};
use pinfold_store::{Facts, SessionId};
use socket::Speaks;
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;
use tracing::{trace, warn};

impl Engine {
    pub(super) fn perform(&mut self, id: SessionId, action: &Action) {
        trace!(%id, ?action, "acts");
        match *action {
            Action::Reserve { run, .. } => self.reserve(id, run),
            Action::Spawn { run, purpose } => self.spawn(id, run, purpose),
            Action::Stop { run, grace } => self.stop(id, run, grace),
            Action::Interrupt { run } => self.interrupt(id, run),
            Action::Close { run } => self.close(id, run),
            Action::Answer { run, ref key, ref answer, .. } => self.reply(id, run, key, answer),
            Action::HoldVendor { run, id: ref vendor } => self.hold_vendor(id, run, vendor),
            Action::Release => self.release(id),
            Action::AwaitHolder => self.await_holder(id),
            Action::ForgetHolder => {
                if let Some(tracked) = self.sessions.get_mut(&id) {
                    tracked.forget_holder();
                }
            }
            Action::LookAgain => self.look_again(id),
            Action::Deliver { run, message, attempt, delivery, repeated } => {
                let repetition = repeated && self.marks_repetition(id);
                self.deliver(id, run, MessageDelivery { message, attempt, delivery, repetition });
            }
            Action::StartGuest { run, guest } => self.start_guest(id, run, guest),
            Action::ConfirmMemory { run } => self.confirm_memory(id, run),
        }
    }

    pub(super) fn tell_shim(&self, id: SessionId, command: &Command) {
        if let Some(shim) = self.sessions.get(&id).and_then(|tracked| tracked.shim.as_ref()) {
            shim.send(command);
        }
    }

    fn stop(&mut self, id: SessionId, run: RunNumber, grace: Duration) {
        if let Some(run) = self.sessions.get_mut(&id).and_then(|tracked| tracked.live(run)) {
            run.stop = Some(grace);
        }
        crash::point("stop.before");
        self.tell_shim(id, &Command::Stop { run, grace });
        self.watch_stop(id, run, grace);
        crash::point("stop.told");
    }

    fn reserve(&mut self, id: SessionId, run: RunNumber) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let fits = tracked.reserving == tracked.session.spec().setup;
        match std::mem::replace(&mut tracked.reservation, Reservation::UnderWay(run)) {
            // The locks belong to the session, so an earlier run's locks serve this one too.
            Reservation::Taken(held) if fits => {
                tracked.reservation = Reservation::Taken(held);
                return self.of_run(id, run, RunEvent::Reserved);
            }
            Reservation::UnderWay(_) | Reservation::Unwanted => return,
            Reservation::Taken(_) | Reservation::Nothing | Reservation::Behind => {}
        }
        // Our own shim is not a foreign holder of the lock: dismiss it first.
        if let Some(shim) = &mut tracked.shim {
            tracked.reservation = Reservation::Behind;
            return shim.dismiss();
        }
        self.take_locks(id, run);
    }

    fn take_locks(&mut self, id: SessionId, run: RunNumber) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let name = tracked.run_id(run).map(|run| run.to_string()).unwrap_or_default();
        tracked.reserving = tracked.session.spec().setup;
        let Some(tracked) = self.sessions.get(&id) else { return };
        let Some(wanted) = LocksWanted::new(&tracked.name, &self.as_known(tracked), name) else { return };
        let wanted = if self.alone.is_some() { wanted.alone() } else { wanted };
        let handle = self.handle.clone();
        self.ports
            .locks
            .reserve(wanted, Box::new(move |result| handle.tell(LoopInput::Reserved { id, result })));
    }

    pub(super) fn reserved(&mut self, id: SessionId, result: Result<Box<dyn RunLocks>, LocksRefused>) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let Reservation::UnderWay(run) = std::mem::replace(&mut tracked.reservation, Reservation::Nothing)
        else {
            return;
        };
        if tracked.reserving != tracked.session.spec().setup {
            // They are those of an earlier definition, whose start was called off.
            drop(result);
            tracked.reservation = Reservation::UnderWay(run);
            return self.take_locks(id, run);
        }
        let event = match result {
            Ok(held) => {
                tracked.reservation = Reservation::Taken(held);
                RunEvent::Reserved
            }
            Err(refused) => {
                if let LocksRefused::Busy { resource, .. } = &refused {
                    tracked.awaited = Some(Obstacle::Lock(resource.clone()));
                }
                if let LocksRefused::System(refused) = &refused {
                    warn!(session = tracked.name, run = run.0, "it cannot be started: {}", refused.text);
                }
                refused.event()
            }
        };
        self.of_run(id, run, event);
    }

    pub(super) fn of_run(&mut self, id: SessionId, run: RunNumber, event: RunEvent) {
        self.happened(id, &Event::Run { run, event }, &Facts::default(), None);
    }

    /// Starts a run, with the command that fits what the vendor has of the session.
    fn spawn_on(
        &mut self,
        id: SessionId,
        run: RunNumber,
        purpose: Purpose,
        transcript: Option<VendorTranscript>,
    ) {
        let Some(start) = self.start_of(id, run, purpose, transcript) else { return };
        if let Some(refused) = self.has_no_prompt(id, run, &start) {
            return self.of_run(id, run, RunEvent::StartFailed(StartFailure::Refused(refused)));
        }
        let needs_tape = start.tape.is_some();
        self.note_speech(id, run);
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let needs_guest = matches!(tracked.session.spec().attach, Attaching::Join(_));
        let held = match std::mem::replace(&mut tracked.reservation, Reservation::Nothing) {
            Reservation::Taken(held) => held,
            Reservation::Nothing | Reservation::Behind | Reservation::UnderWay(_) | Reservation::Unwanted => {
                return match tracked.shim.as_mut().filter(|shim| !shim.leaving) {
                    // A shim that predates tapes or guests is dismissed, and a new one started.
                    Some(shim) if needs_tape && !shim.can.tape || needs_guest && !shim.can.guest => {
                        shim.dismiss();
                        self.of_run(id, run, RunEvent::StartFailed(StartFailure::ShimGone));
                    }
                    Some(shim) => Order::start(shim.outlet(), None, start).give(),
                    None => self.of_run(id, run, RunEvent::StartFailed(StartFailure::ShimGone)),
                };
            }
        };
        let settled = tracked.session.runs().settled;
        let Some(opening) = self.opening(id) else { return };
        let birth = Birth { opening, generation: self.generation, settled, start };
        let handle = self.handle.clone();
        let up = move |result| handle.tell(LoopInput::ShimUp { id, run, result });
        self.ports.shims.open(birth, held, Box::new(up));
    }

    /// Keeps the way of talking to a run's agent as it was defined when the run started.
    pub(super) fn note_speech(&mut self, id: SessionId, run: RunNumber) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let spoken = (tracked.definition.input, tracked.definition.turns);
        if let Some(run) = tracked.live(run) {
            run.spoken = Some(spoken);
        }
    }

    /// The definition of a session, with the vendor conversation known by now.
    pub(in crate::engine) fn as_known<'a>(&self, tracked: &'a Tracked) -> Cow<'a, Definition> {
        let definition = &*tracked.definition;
        let defined = definition.vendor_session.as_deref();
        match tracked.session.talk().conversation(defined) {
            known if known == defined => Cow::Borrowed(definition),
            known => Cow::Owned(definition.resuming(known, self.config.preset(&definition.agent).as_ref())),
        }
    }

    fn opening(&self, id: SessionId) -> Option<Opening> {
        let tracked = self.sessions.get(&id)?;
        let (program, arguments) = self.shim_program.clone();
        let session = tracked.name.clone();
        let (listen, records, log) = (self.home.shim_socket(id), self.home.records(id), self.home.log(id));
        let crash_at = std::env::var_os(pinfold_shim::crash::VARIABLE);
        let foreground = self.alone.as_ref().map(|alone| alone.foreground.clone());
        let tie = if foreground.is_some() { Tie::ToParent } else { Tie::Free };
        Some(Opening {
            program,
            arguments,
            session,
            listen,
            listens: Listens::Late,
            records,
            log,
            tape: (tracked.definition.has_tape() && self.alone.is_none()).then(|| self.home.tape(id)),
            tie,
            foreground,
            crash_at,
        })
    }

    /// Argv, directory and environment: the same at start 1 and at restart 100.
    pub(super) fn start_of(
        &self,
        id: SessionId,
        run: RunNumber,
        purpose: Purpose,
        transcript: Option<VendorTranscript>,
    ) -> Option<Box<Start>> {
        let tracked = self.sessions.get(&id)?;
        let preset = self.config.preset(&tracked.definition.agent);
        let known = self.as_known(tracked);
        let definition = &*match (&preset, transcript) {
            (Some(preset), Some(transcript)) => Cow::Owned(known.on(preset, transcript)),
            (_, None) | (None, Some(_)) => known,
        };
        let words = match purpose {
            Purpose::Headless => self.with_prompt(tracked, &definition.command),
            Purpose::Interactive(_) => definition.interactive.clone(),
        };
        let has_tape = definition.has_tape() && purpose == Purpose::Headless && self.alone.is_none();
        let words = self.with_socket(id, words, if has_tape { Speaks::Lines } else { Speaks::ByItself });
        let terminal = definition.pty || matches!(purpose, Purpose::Interactive(_));
        let locked = definition.dir_lock.then_some(Directory::Locked);
        Some(Box::new(Start {
            run,
            run_id: tracked.run_id(run)?.to_string(),
            arguments: words,
            environment: environment::of(&environment::EnvironmentInputs {
                definition,
                preset: preset.as_ref(),
                places: &self.home.variables,
                watchdog: tracked.session.spec().policy.watchdog,
                terminal,
                spool: self.spool_of(id, preset.as_ref(), purpose),
                telemetry: preset.as_ref().and_then(|_| self.telemetry_of(tracked, run)),
            }),
            directory: locked.unwrap_or_else(|| Directory::Path(definition.dir.clone())),
            stdin: Stdin::Pipe,
            log: LogLimits::default(),
            socket: self.alone.is_none().then(|| self.socket.clone()),
            contain: self.memory.without.contain(tracked.session.spec().memory_limit),
            give_locks: false,
            open_files: self.limits.open_files,
            core: self.limits.core,
            umask: definition.umask.or(self.umask),
            grace: tracked.session.spec().policy.stop_grace,
            terminal: terminal.then_some(tracked.terminal),
            repeats: tracked.session.spec().mode == Mode::Always,
            says_done: definition.turns == TurnEndRule::Done && purpose == Purpose::Headless,
            joins: if terminal { self.joins(&definition.agent, &tracked.name) } else { Default::default() },
            tape: has_tape
                .then(|| TapeLimits { unheard: most_unheard(self.tapes()), floor: Position(tracked.floor) }),
        }))
    }

    /// Where the vendor's terminal program says which session it is in, if it has hooks that do.
    fn spool_of(&self, id: SessionId, preset: Option<&Preset>, purpose: Purpose) -> Option<PathBuf> {
        let has_hooks = preset.is_some_and(|preset| preset.spool_key.is_some());
        (has_hooks && purpose != Purpose::Headless).then(|| self.home.spool(id))
    }

    /// The ids that link a run's telemetry to it.
    fn telemetry_of(&self, tracked: &Tracked, run: RunNumber) -> Option<environment::Telemetry> {
        let (session, session_id) = (tracked.name.clone(), tracked.id.0);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Some(environment::Telemetry { session, session_id, run: tracked.run_id(run)?.0, host })
    }

    fn release(&mut self, id: SessionId) {
        crash::point("release.before");
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        tracked.reservation = match std::mem::replace(&mut tracked.reservation, Reservation::Nothing) {
            Reservation::UnderWay(_) | Reservation::Unwanted => Reservation::Unwanted,
            Reservation::Nothing | Reservation::Behind => Reservation::Nothing,
            Reservation::Taken(held) => {
                drop(held);
                Reservation::Nothing
            }
        };
        if let Some(shim) = &mut tracked.shim {
            shim.dismiss();
        }
        crash::point("release.told");
    }

    fn await_holder(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        tracked.forget_holder();
        // An earlier daemon may have found it.
        let known = || tracked.session.life().holder().and_then(|holder| holder.pid).map(Obstacle::Writer);
        let Some(awaited) = tracked.awaited.clone().or_else(known) else { return };
        let handle = self.handle.clone();
        let free = Box::new(move |()| handle.tell(LoopInput::HolderGone { id }));
        match self.ports.locks.wait_for(awaited, free) {
            Ok(cancel) => tracked.waiting = Some(cancel),
            Err(error) => warn!(session = tracked.name, "what it needs cannot be waited for: {error}"),
        }
    }

    pub(super) fn holder_gone(&mut self, id: SessionId) {
        if let Some(early) = self.early(id) {
            return early.push(LoopInput::HolderGone { id });
        }
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.waiting = None;
        }
        self.happened(id, &crate::ports::locks::HOLDER_GONE, &Facts::default(), None);
    }

    /// Why a start failed, as the core expresses it.
    pub(super) fn cannot_start(&self, id: SessionId, failure: pinfold_shim::StartFailure) -> StartFailure {
        let Some(tracked) = self.sessions.get(&id) else { return StartFailure::ShimGone };
        let terminal =
            matches!(tracked.session.life(), Life::Starting { purpose: Purpose::Interactive(_), .. });
        let known = self.as_known(tracked);
        let words = if terminal { &known.interactive } else { &known.command };
        self.why_not_started(tracked, words, failure)
    }

    /// The same for a program with these arguments.
    fn why_not_started(
        &self,
        tracked: &Tracked,
        words: &[String],
        failure: pinfold_shim::StartFailure,
    ) -> StartFailure {
        use pinfold_shim::StartFailure as Said;
        let program = words.first().cloned().unwrap_or_default();
        let directory = tracked.definition.dir.display().to_string();
        let refused = |errno: Option<i32>, text: String| StartFailure::Refused(StartRefused { errno, text });
        let unnumbered = |text: &str| refused(None, text.to_owned());
        StartFailure::Hopeless(match failure {
            Said::ProgramMissing => CannotStart::ProgramMissing { program },
            Said::NotExecutable { errno: ENOENT } => {
                // The kernel has just read the same bytes.
                let interpreter = tracked.definition.interpreter_of(&program);
                CannotStart::InterpreterMissing { program, interpreter }
            }
            Said::NotExecutable { errno: ENOEXEC } => {
                let text = tracked.definition.cannot_be_executed(&program);
                CannotStart::Refused(StartRefused { errno: Some(ENOEXEC), text })
            }
            Said::NotExecutable { .. } => CannotStart::NotExecutable { program },
            Said::DirectoryMissing => CannotStart::DirectoryMissing { directory },
            Said::DirectoryClosed { errno: EACCES } => CannotStart::DirectoryClosed { directory },
            Said::DirectoryClosed { errno: ELOOP } => crate::ports::locks::another(&tracked.definition.dir),
            Said::DirectoryClosed { errno } => {
                return refused(Some(errno), format!("directory `{directory}`: {}", said(errno)));
            }
            Said::Refused { errno } => return refused(Some(errno), format!("`{program}`: {}", said(errno))),
            Said::Outdated { .. } => return unnumbered("its shim has seen a later run"),
            Said::Occupied { .. } => return unnumbered("its shim still has another run"),
            Said::RecordsFull => return unnumbered("its shim has too many ends that are not stored"),
        })
    }
}

/// The kernel's own text for an error number.
fn said(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

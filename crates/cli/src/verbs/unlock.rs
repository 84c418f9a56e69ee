//! `unlock`: ends the holder of a lock. Needs no daemon.

use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::output::{Failure, Kind, say, talk};
use crate::{audit, daemon, home, inside};
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::word::{EventKind, Mode, State};
use pinfold_core::quoted::quoted;
use pinfold_daemon::objects;
use pinfold_daemon::offline_audit::{by, now};
use pinfold_kernel::proc::environ;
use pinfold_lock::{EndOutcome, Folder, Holders, LockSeen, ProcessSeen, Resource};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How often to look again for a supervisor that starts a new run each time; more would never end.
const LOOKS: usize = 5;

/// Which lock.
#[derive(Debug, Args)]
pub(crate) struct Unlock {
    /// A directory, session:NAME or key:ANY
    resource: OsString,
    /// End the holder
    #[arg(long)]
    kill: bool,
}

impl StandaloneVerb for Unlock {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        let resource = Resource::parse(&self.resource)?;
        if !self.kill {
            return Err(Failure::new(Kind::Usage, "a lock is freed only by ending its holder").hint(
                format!(
                    "`pinfold unlock {} --kill` does that; `pinfold locks` shows who it is",
                    quoted(&resource.to_string())
                ),
            ));
        }
        refuse_inside()?;
        let folder = home::folder_for(&resource, global)?;
        let Some((holders, record, written)) = look(&folder, &resource, global)? else {
            let nothing = json!({ "resource": resource.to_string(), "ended": [], "now": null });
            tell(global, &format!("`{resource}` is not held"), &nothing);
            return Ok(());
        };
        let ended = holders.end();
        let told = report(ended, record, global);
        // Last, since a daemon may not answer: the work is already done.
        audit::tell_daemon(global);
        // The holder is gone even if its record could not be written: a full disk does not make that a failure.
        if let Err(failure) = written {
            talk(&format!("note: {failure}; what was ended is not in the events"));
        }
        told
    }
}

/// Refused inside a run: an agent that may end any holder could end any other agent.
fn refuse_inside() -> Result<(), Failure> {
    if !inside::is_below_shim() {
        return Ok(());
    }
    let message = "you are part of a run: `unlock` is not allowed (a run acts on itself and its children)";
    Err(Failure::new(Kind::NotPermitted, message).hint("a person may, outside of any run"))
}

/// The holders, the record of what is about to be done, and whether that is on disk: the daemon that sees the
/// run end looks there for who wanted it.
type Looked = (Holders, Value, Result<(), Failure>);

fn look(folder: &Folder, resource: &Resource, global: &Global) -> Result<Option<Looked>, Failure> {
    let mut looks = 0;
    loop {
        let Some(holders) = folder.holders_of(resource)? else { return Ok(None) };
        if holders.include_the_caller() {
            let message =
                format!("`{}` is held by {}", holders.lock().resource, holders.lock().holder_text());
            return Err(Failure::new(Kind::NotPermitted, format!("{message}, inside which this was called"))
                .hint("nothing was ended; call it from outside"));
        }
        let why = "a person ends its holder with `pinfold unlock --kill`";
        let record = record(holders.lock(), &holders.processes(), why);
        // A full disk must not keep the user from ending what fills it.
        let written = audit::append(&record, global);
        if let Some(home) = other_home(&holders, global) {
            _ = pinfold_daemon::offline_audit::append(&home.join("audit.jsonl"), &record);
        }
        looks += 1;
        if holders.are_current() || looks == LOOKS {
            return Ok(Some((holders, record, written)));
        }
    }
}

/// The home of the session's daemon, if it is another one: directory locks are shared by all homes, and that
/// daemon judges the end of the run. The environment of the agents names it.
fn other_home(holders: &Holders, global: &Global) -> Option<PathBuf> {
    holders.lock().session.as_ref()?;
    let own = home::folder(global).ok()?.canonicalize().ok()?;
    let homes = holders.processes().into_iter().filter_map(|process| {
        let environment = environ::read(process.pid).ok()??;
        let of = |name: &str| environ::value(&environment, name).map(OsStr::from_bytes).map(PathBuf::from);
        let beside_socket = || of("PINFOLD_SOCKET")?.canonicalize().ok()?.parent().map(Path::to_owned);
        of("PINFOLD_HOME").or_else(beside_socket)?.canonicalize().ok()
    });
    homes.into_iter().find(|home| *home != own && home.join("pinfold.db").exists())
}

fn report(ended: EndOutcome, mut record: Value, global: &Global) -> Result<(), Failure> {
    let list = |processes: &[ProcessSeen]| {
        processes.iter().map(|process| process.pid.to_string()).collect::<Vec<_>>().join(", ")
    };
    match ended {
        EndOutcome::NobodyHeld => Ok(()),
        EndOutcome::Free { lock, processes } => {
            record["ended"] = json!(processes.iter().map(objects::process).collect::<Vec<_>>());
            record["now"] = Value::Null;
            tell(global, &format!("`{}` is free; ended {}", lock.resource, list(&processes)), &record);
            warn_of_next_run(&lock, global);
            Ok(())
        }
        EndOutcome::PassedOn { lock, processes, now } => {
            record["ended"] = json!(processes.iter().map(objects::process).collect::<Vec<_>>());
            record["now"] = json!(objects::lock(&now));
            let next = now.holder_text();
            let text = format!("ended {}; `{}` is now held by {next}", list(&processes), lock.resource);
            tell(global, &text, &record);
            warn_of_next_run(&lock, global);
            Ok(())
        }
        EndOutcome::StillHeld { lock, processes } => {
            let why = "`pinfold unlock --kill` could not end its holder";
            _ = audit::append(&self::record(&lock, &processes, why), global);
            let message = format!("`{}` is still held by {}", lock.resource, lock.holder_text());
            Err(Failure::new(Kind::Failed, message)
                .hint("it may be in uninterruptible sleep, or another user's"))
        }
    }
}

/// Warns that the session will run again; another verb keeps it down.
fn warn_of_next_run(lock: &LockSeen, global: &Global) {
    let Some(name) = lock.session.as_ref().filter(|_| !global.quiet) else { return };
    let Ok(client) = daemon::running(global) else { return };
    let Ok(session) = client.ask(&endpoint::Show::call(name)) else { return };
    if session.mode == Mode::Always && session.state != State::Stopped {
        talk(&format!(
            "note: session `{name}` is of mode `always` and is started again; `pinfold stop {}` keeps it down",
            quoted(name)
        ));
    }
}

fn record(lock: &LockSeen, processes: &[ProcessSeen], why: &str) -> Value {
    json!({
        "at": now(),
        "kind": EventKind::Unlocked,
        "session": lock.session,
        "run": lock.run,
        "why": why,
        "resource": lock.resource,
        "fence": lock.fence,
        "holder": objects::holder(&lock.holder),
        "ended": processes.iter().map(objects::process).collect::<Vec<_>>(),
        "by": by("pinfold unlock"),
    })
}

fn tell(global: &Global, text: &str, value: &Value) {
    if global.json {
        say(value);
    } else if !global.quiet {
        say(&text);
    }
}

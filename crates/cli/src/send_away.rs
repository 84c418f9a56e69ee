//! Makes the daemon leave, for `down` and `up --replace`.

use crate::daemon::{self, FoundDaemon};
use crate::leftovers::none_left;
use crate::output::Failure;
use pinfold_api::object::WentDown;
use pinfold_api::{Client, ClientError, DaemonPlace, ErrorKind, endpoint, place, request};
use pinfold_daemon::Home;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A daemon that has answered `down` only has its database left to close.
const ENDS_WITHIN: Duration = Duration::from_secs(8);
/// How often it is looked whether the next daemon has its locks.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// Whether there was a daemon to send away.
pub(crate) enum DaemonDeparture {
    /// It was asked to leave; this many sessions were alive, as far as it said.
    Now(u64),
    /// No daemon was running.
    Before,
}

/// Asks the daemon to leave, and returns when it has.
pub(crate) fn send_away(home: &Home, how: request::Down) -> Result<DaemonDeparture, Failure> {
    let FoundDaemon::Up(client) = daemon::find(home)? else {
        // One that crashed is not to be started again by a client that follows something.
        if !how.replace {
            DaemonPlace::stop(&home.state);
        }
        return Ok(DaemonDeparture::Before);
    };
    let status = client.ask(&endpoint::Status::call()).ok();
    let lived = status.as_ref().map_or(0, |status| living(&status.sessions));
    let went = match ask(&client, how) {
        Ok(went) => went,
        // It may be gone before its answer is out.
        Err(ClientError::Broken(_) | ClientError::Down { .. }) => WentDown::default(),
        Err(error) => return Err(error.into()),
    };
    wait_until_gone(home, status.map(|status| status.pid))?;
    let hint = "their locks stay held; `pinfold up` finds them again";
    none_left(&went.left, "the daemon is down, but not everything has ended", hint)?;
    Ok(DaemonDeparture::Now(lived))
}

/// An earlier daemon does not know `replace`, and refuses the whole request.
fn ask(client: &Client, how: request::Down) -> Result<WentDown, ClientError> {
    match client.ask(&endpoint::Down::call(&how)) {
        Err(ClientError::Refused(body)) if how.replace && body.kind == ErrorKind::Usage => {
            client.ask(&endpoint::Down::call(&request::Down { replace: false, ..how }))
        }
        other => other,
    }
}

/// How many sessions have a process, judged by their states.
fn living(sessions: &BTreeMap<String, u64>) -> u64 {
    ["starting", "running", "stopping", "held"].iter().filter_map(|state| sessions.get(*state)).sum()
}

/// Waits until the daemon's locks are free: only then has its process ended, whatever its socket says. The next
/// daemon can have them by then: a client that follows something starts it at once.
fn wait_until_gone(home: &Home, pid: Option<u32>) -> Result<(), Failure> {
    let (sender, receiver) = mpsc::channel();
    let locks = place::locks(&home.state);
    std::thread::spawn(move || {
        for file in locks.iter().filter_map(|lock| std::fs::File::open(lock).ok()) {
            // A shared lock: several waiting processes keep a new daemon out no longer than this call takes.
            _ = rustix::fs::flock(&file, rustix::fs::FlockOperation::LockShared);
        }
        _ = sender.send(());
    });
    let until = Instant::now() + ENDS_WITHIN;
    loop {
        if receiver.recv_timeout(LOOKS_EVERY).is_ok() {
            return Ok(());
        }
        let holder = daemon::mute(home);
        if pid.is_some() && holder.pid.is_some() && holder.pid != pid {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(holder.into());
        }
    }
}

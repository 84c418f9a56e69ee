//! Finds the daemon of a home. The kernel knows whether there is one: its lock is held.

use crate::output::{Failure, Kind};
use pinfold_api::place::Squatter;
use pinfold_api::{Client, ClientError, Mute, place};
use pinfold_daemon::Home;
use std::time::{Duration, Instant};

/// A daemon that has the home answers within this time, or counts as mute.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// A lock holder that has not answered after this time is checked for being a daemon at all.
const LOOKED_AT_AFTER: Duration = Duration::from_millis(300);
/// How soon a starting daemon is asked again: before it listens it cannot announce itself.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// A client of a home's daemon, wherever its socket is. Sends nothing yet.
pub(crate) fn at(home: &Home) -> Client {
    Client::of_home(&home.state, home.socket())
}

/// Whether a home has a daemon.
pub(crate) enum FoundDaemon {
    /// The daemon answers.
    Up(Client),
    /// The kernel says that there is none.
    Down,
}

/// Looks for the daemon of a home. Its lock says whether there is one, whatever its socket says; a daemon
/// that is there but does not answer is a failure.
pub(crate) fn find(home: &Home) -> Result<FoundDaemon, Failure> {
    let begun = Instant::now();
    let until = begun + ANSWERS_WITHIN;
    let client = at(home);
    let mut looked = false;
    loop {
        match client.ping() {
            Ok(_) | Err(ClientError::Refused(_) | ClientError::Garbled(_)) => {
                return Ok(FoundDaemon::Up(client));
            }
            Err(ClientError::Mute(mute)) => return Err(mute.into()),
            Err(error @ ClientError::Stranger { .. }) => return Err(error.into()),
            Err(ClientError::Down { .. } | ClientError::Broken(_)) => {}
        }
        // The daemon is starting, or its socket was removed and it is making another.
        match place::is_held(&home.state) {
            false => return Ok(FoundDaemon::Down),
            true if !looked && begun.elapsed() >= LOOKED_AT_AFTER => {
                looked = true;
                refuse_squatter(home)?;
            }
            true if Instant::now() >= until => return Err(mute(home).into()),
            true => std::thread::sleep(ASK_AGAIN),
        }
    }
}

/// A held lock proves that some process has it, not that the process is a daemon.
pub(super) fn refuse_squatter(home: &Home) -> Result<(), Failure> {
    let Some(Squatter { pid, command }) = place::squatter(&home.state) else { return Ok(()) };
    let lock = home.daemon_lock();
    let message = format!("pid {pid} (`{command}`) has {} and is not a daemon", lock.display());
    Err(Failure::new(Kind::Unavailable, message)
        .hint(format!("no daemon can start meanwhile; `kill {pid}` ends it, if it is yours to end")))
}

/// The error for a daemon that has the home but does not answer.
pub(crate) fn mute(home: &Home) -> Mute {
    Mute { pid: place::holder(&home.state), socket: home.socket() }
}

/// The error for a home without a daemon.
pub(super) fn down(home: &Home) -> Failure {
    let message = format!("no daemon of {} runs", home.state.display());
    Failure::new(Kind::Unavailable, message)
        .hint("`pinfold up` starts it; --home or PINFOLD_HOME names another home")
}

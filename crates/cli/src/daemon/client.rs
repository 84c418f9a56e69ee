//! A daemon to ask: the running one, or a new one unless starting it was forbidden.

use super::find::{FoundDaemon, at, down, find};
use super::start::{refuse_inside, start};
use crate::global::Global;
use crate::home;
use crate::output::{Failure, talk};
use pinfold_api::{Client, ClientError, DaemonPlace};

/// The daemon that a verb asks. It is only looked for when asked, so a verb can check its own arguments first.
#[derive(Debug, Clone)]
pub(crate) struct Daemon {
    /// The options that every verb takes.
    pub(crate) global: Global,
}

/// The daemon that comes after one that has gone.
#[derive(Debug)]
pub(crate) enum NextDaemon {
    /// It answers.
    Up(Client),
    /// There is none: the last one was stopped.
    Stopped,
}

impl Daemon {
    /// A client of a daemon that is known to answer.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let home = home::home(&self.global)?;
        match find(&home)? {
            FoundDaemon::Up(client) => Ok(client),
            FoundDaemon::Down if self.global.no_start => Err(down(&home)),
            FoundDaemon::Down => {
                refuse_inside(&home)?;
                start(&home, &self.global)
            }
        }
    }

    /// What a client that follows something does after its daemon has gone: it starts the next one after a crash
    /// only, because after `down` none may run.
    pub(crate) fn next(&self) -> Result<NextDaemon, Failure> {
        let home = home::home(&self.global)?;
        match find(&home)? {
            FoundDaemon::Up(client) => Ok(NextDaemon::Up(client)),
            FoundDaemon::Down if DaemonPlace::is_stopped(&home.state) => Ok(NextDaemon::Stopped),
            FoundDaemon::Down => self.client().map(NextDaemon::Up),
        }
    }

    /// Tells the user why nothing is followed anymore.
    pub(crate) fn tell_stopped(&self) {
        if !self.global.quiet {
            talk(&"the daemon was stopped");
        }
    }

    /// Asks without checking first whether a daemon runs; its answer shows that.
    pub(crate) fn at_once<T>(&self, ask: impl Fn(&Client) -> Result<T, ClientError>) -> Result<T, Failure> {
        match ask(&at(&home::home(&self.global)?)) {
            Err(ClientError::Down { .. } | ClientError::Broken(_)) => Ok(ask(&self.client()?)?),
            answer => Ok(answer?),
        }
    }

    /// Like [`Daemon::at_once`], for requests that must not be done twice: `ask` uses [`Client::ask_once`].
    pub(crate) fn once<T>(&self, ask: impl Fn(&Client) -> Result<T, ClientError>) -> Result<T, Failure> {
        match ask(&at(&home::home(&self.global)?)) {
            // Nothing was asked yet, so asking again is safe.
            Err(ClientError::Down { .. }) => Ok(ask(&self.client()?)?),
            answer => Ok(answer?),
        }
    }
}

/// A client of a daemon that already runs, for a verb that does its work without one.
pub(crate) fn running(global: &Global) -> Result<Client, Failure> {
    Daemon { global: global.never_starting() }.client()
}

//! A daemon to ask: the running one, or a new one unless starting it was forbidden.

use super::find::{FoundDaemon, at, down, find};
use super::start::{refuse_inside, start};
use crate::global::Global;
use crate::home;
use crate::output::Failure;
use pinfold_api::{Client, ClientError};

/// The daemon that a verb asks. It is only looked for when asked, so a verb can check its own arguments first.
#[derive(Debug, Clone)]
pub(crate) struct Daemon {
    /// The options that every verb takes.
    pub(crate) global: Global,
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

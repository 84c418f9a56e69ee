//! What every supervisor is asked to do here.

use super::floor::Floor;
use super::pinfold::Pinfold;
use super::pm2::Pm2;
use super::scanned::{DAEMONTOOLS, RUNIT, Run, S6, Scanned};
use super::site::Site;
use super::supervisord::Supervisord;
use std::path::PathBuf;
use std::process::Command;

/// One way to keep the children of a site alive.
pub(crate) trait Supervisor {
    /// Writes down what is to be kept; nothing runs afterwards.
    fn prepare(&mut self, site: &Site);
    /// Starts it; returns at once.
    fn start(&mut self, site: &Site);
    /// Ends it with all children.
    fn stop(&mut self, site: &Site) {
        site.end_all();
    }
    /// Its processes, the one above all others first.
    fn processes(&self, site: &Site) -> Vec<u32>;
    /// The command that tells how all children are.
    fn status(&self, site: &Site) -> Option<Command>;
    /// How many exits with a signal it has on record.
    fn known_exits(&self, site: &Site) -> Option<usize>;
}

/// Who is measured beside pinfold.
#[derive(Debug)]
pub(crate) enum Peers {
    /// Other supervisors; pm2 is in this folder.
    Others(PathBuf),
    /// Another version of pinfold, whose binaries are in this folder.
    Version(PathBuf),
}

/// All of them, with the column they have.
pub(crate) fn all(peers: &Peers) -> Vec<(&'static str, Box<dyn Supervisor>)> {
    with_limits(peers, 0)
}

/// The same, with a memory limit for so many of pinfold's sessions.
pub(crate) fn with_limits(peers: &Peers, limited: usize) -> Vec<(&'static str, Box<dyn Supervisor>)> {
    let cache = match peers {
        Peers::Others(cache) => cache,
        Peers::Version(folder) => {
            let other = Pinfold { limited, folder: Some(folder.clone()) };
            let this = Pinfold { limited, folder: None };
            return vec![("pinfold", Box::new(this)), ("the other version", Box::new(other))];
        }
    };
    vec![
        ("pinfold", Box::new(Pinfold { limited, folder: None })),
        ("floor", Box::new(Floor)),
        ("daemontools", Box::new(Scanned { tools: DAEMONTOOLS, run: Run::Script })),
        ("runit", Box::new(Scanned { tools: RUNIT, run: Run::Script })),
        ("s6", Box::new(Scanned { tools: S6, run: Run::Script })),
        ("supervisord", Box::new(Supervisord)),
        ("pm2", Box::new(Pm2::new(cache))),
    ]
}

/// Those that can do without the shell of their `run` files, without it; nothing in the columns of others.
pub(crate) fn without_shell(peers: &Peers) -> Vec<Option<Box<dyn Supervisor>>> {
    if let Peers::Version(_) = peers {
        return vec![None, None];
    }
    let scanned = |tools| Some(Box::new(Scanned { tools, run: Run::Program }) as Box<dyn Supervisor>);
    vec![None, None, scanned(DAEMONTOOLS), scanned(RUNIT), scanned(S6), None, None]
}

//! The field: what is measured, and in which column.

use super::floor::Floor;
use super::pinfold::Pinfold;
use super::pm2::Pm2;
use super::scanned::{DAEMONTOOLS, RUNIT, Run, S6, Scanned};
use super::supervisor::Supervisor;
use super::supervisord::Supervisord;
use std::path::PathBuf;

/// What is measured beside pinfold.
#[derive(Debug)]
pub(crate) enum Peers {
    /// Other supervisors; pm2 is in this folder.
    Others(PathBuf),
    /// Another version of pinfold, whose binaries are in this folder.
    Version(PathBuf),
}

/// Returns all supervisors, with their columns.
pub(crate) fn all(peers: &Peers) -> Vec<(&'static str, Box<dyn Supervisor>)> {
    with_limits(peers, 0)
}

/// The same, with a memory limit for this many of pinfold's sessions.
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

/// Returns the supervisors that can do without the shell of their `run` files, without it; `None` in the
/// columns of the others.
pub(crate) fn without_shell(peers: &Peers) -> Vec<Option<Box<dyn Supervisor>>> {
    if let Peers::Version(_) = peers {
        return vec![None, None];
    }
    let scanned = |tools| Some(Box::new(Scanned { tools, run: Run::Program }) as Box<dyn Supervisor>);
    vec![None, None, scanned(DAEMONTOOLS), scanned(RUNIT), scanned(S6), None, None]
}

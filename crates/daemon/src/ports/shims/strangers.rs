//! Shims and folders of this home, whatever session they belong to. Both functions block.

use super::{FoundShim, find};
use crate::define::home::Home;
use pinfold_shim::{Command, Keeping, Report};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// The time between SIGTERM and SIGKILL for an unknown session.
const GRACE: Duration = Duration::from_secs(10);
/// How long after the grace a live shim has answered.
const ANSWERS: Duration = Duration::from_secs(5);

/// What exists in a home, by the ids of sessions.
#[derive(Debug, Default)]
pub(crate) struct There {
    /// Folders of sessions.
    pub(crate) folders: Vec<String>,
    /// Listening shims, and their pids.
    pub(crate) shims: Vec<(String, u32)>,
}

/// Looks at every folder and every socket, except those of sessions that the daemon supervises.
pub(crate) fn look(home: &Home, kept: &BTreeSet<String>) -> There {
    let sockets = home.runtime.join("shims");
    let shim = |name: String| {
        let id = name.strip_suffix(".sock").filter(|id| !kept.contains(*id))?;
        Some((id.to_owned(), listener(&sockets.join(&name))?))
    };
    There {
        folders: names(&home.state.join("sessions")).filter(|id| !kept.contains(id)).collect(),
        shims: names(&sockets).filter_map(shim).collect(),
    }
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// The process that listens on a shim's socket.
fn listener(socket: &Path) -> Option<u32> {
    let (stream, ..) = pinfold_shim::client::ShimConnection::connect(socket).ok()?.into_parts();
    pinfold_kernel::peer::Other::of(&stream).ok()?.pid
}

/// Ends the run of a shim that the store does not know, and lets the shim go.
pub(crate) fn end(socket: &Path, generation: u64, id: &str) {
    match find(socket, generation) {
        FoundShim::Shim(mut up) => {
            if let Keeping::Running { run, .. } | Keeping::Starting { run } = up.welcome.keeping {
                let until = Instant::now() + GRACE + ANSWERS;
                let told = up.link.send(&Command::Stop { run, grace: GRACE });
                while told.is_ok() {
                    match up.link.receive(Some(until)) {
                        Ok(Some(Report::Exited(_))) => break,
                        Ok(Some(_)) => {}
                        Ok(None) | Err(_) => break,
                    }
                }
                _ = up.link.send(&Command::Ack { run });
            }
            _ = up.link.send(&Command::Release);
            info!(id, "a session that the database does not know was ended");
        }
        FoundShim::Mute => warn!(id, "a session that the database does not know does not answer"),
        FoundShim::Nobody => {}
    }
}

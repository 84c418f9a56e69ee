//! What is there of sessions that the store does not know: folders, and shims that live. They are shown, left alone
//! by a start, and ended by a `down`.

use super::{Closing, Engine};
use crate::engine::input::{Handle, Input};
use crate::ports::shims::{Found, find};
use pinfold_api::object::Unknown;
use pinfold_shim::{Command, Keeping, Report};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// What a session that nobody knows is given between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(10);
/// Behind the grace, a shim that lives has answered within this.
const ANSWERS: Duration = Duration::from_secs(5);

impl Engine {
    /// Looks for what the store does not know; says it where there is any.
    pub(crate) fn look_for_strangers(&mut self) {
        let mut found: BTreeMap<String, Unknown> = BTreeMap::new();
        for id in names(&self.home.state.join("sessions")).filter(|id| !self.knows(id)) {
            let why = "its folder is there, and the database does not know it".to_owned();
            found.insert(id.clone(), Unknown { id, shim_pid: None, why });
        }
        let sockets = self.home.runtime.join("shims");
        for name in names(&sockets) {
            let Some(id) = name.strip_suffix(".sock").filter(|id| !self.is_kept(id)) else { continue };
            if let Some(shim_pid) = listener(&sockets.join(&name)) {
                let record = match self.damaged.contains_key(id) {
                    true => "its record cannot be used",
                    false => "the database does not know it",
                };
                let why = format!("its agent runs on, and {record}; `pinfold down` ends it");
                found.insert(id.to_owned(), Unknown { id: id.to_owned(), shim_pid: Some(shim_pid), why });
            }
        }
        for unknown in found.values() {
            warn!(id = unknown.id, "{}", unknown.why);
        }
        self.unknown = found.into_values().collect();
    }

    fn knows(&self, id: &str) -> bool {
        self.is_kept(id) || self.damaged.contains_key(id)
    }

    /// Whether its agent is looked after.
    fn is_kept(&self, id: &str) -> bool {
        id.parse().is_ok_and(|id| self.sessions.contains_key(&id))
    }

    /// Ends the agents that nobody knows; the daemon stays until that is done.
    pub(super) fn end_strangers(&mut self) {
        for unknown in self.unknown.iter().filter(|unknown| unknown.shim_pid.is_some()) {
            let socket = self.home.runtime.join("shims").join(format!("{}.sock", unknown.id));
            let (handle, generation, id) = (self.handle.clone(), self.generation, unknown.id.clone());
            self.strangers += 1;
            tokio::task::spawn_blocking(move || end(&socket, generation, &id, &handle));
        }
    }

    pub(super) fn stranger_ended(&mut self, id: &str) {
        self.strangers = self.strangers.saturating_sub(1);
        if let Closing::Waiting(_) = self.closing {
            self.unknown.retain(|unknown| unknown.id != id);
        }
    }
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// The process that listens at a shim's socket.
fn listener(socket: &Path) -> Option<u32> {
    let (stream, ..) = pinfold_shim::client::Link::connect(socket).ok()?.into_parts();
    pinfold_kernel::peer::Other::of(&stream).ok()?.pid
}

fn end(socket: &Path, generation: u64, id: &str, handle: &Handle) {
    match find(socket, generation) {
        Found::Shim(mut up) => {
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
        Found::Mute => warn!(id, "a session that the database does not know does not answer"),
        Found::Nobody => {}
    }
    handle.tell(Input::StrangerEnded { id: id.to_owned() });
}

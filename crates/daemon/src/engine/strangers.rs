//! What exists of sessions that the store does not know: folders, and live shims. They are shown, left alone
//! at start-up, and ended by a `down`.

use super::{Closing, Engine};
use crate::engine::input::LoopInput;
use crate::ports::shims::strangers::{self, There};
use pinfold_api::object::Unknown;
use std::collections::{BTreeMap, BTreeSet};
use tracing::warn;

impl Engine {
    /// As [`Engine::look_for_strangers`], before the loop begins: blocks.
    pub(crate) fn look_for_strangers_first(&mut self) {
        let there = strangers::look(&self.home, &self.kept());
        self.note_strangers(there);
    }

    /// Looks for sessions that the store does not know; the daemon stays until that is done.
    pub(super) fn look_for_strangers(&mut self) {
        self.strangers += 1;
        let handle = self.handle.clone();
        let told = move |there| handle.tell(LoopInput::StrangersSought(there));
        self.ports.shims.strangers(self.home.clone(), self.kept(), Box::new(told));
    }

    /// The ids of the sessions that this daemon supervises.
    fn kept(&self) -> BTreeSet<String> {
        self.sessions.keys().map(ToString::to_string).collect()
    }

    pub(super) fn strangers_sought(&mut self, there: There) {
        self.strangers = self.strangers.saturating_sub(1);
        self.note_strangers(there);
        if let Closing::Waiting(_) = self.closing {
            self.end_strangers();
        }
    }

    /// Keeps the list of unknown sessions; warns if there are any.
    fn note_strangers(&mut self, there: There) {
        let mut found: BTreeMap<String, Unknown> = BTreeMap::new();
        let kept = |id: &String| id.parse().is_ok_and(|id| self.sessions.contains_key(&id));
        for id in there.folders.into_iter().filter(|id| !kept(id) && !self.damaged.contains_key(id)) {
            let why = "its folder is there, and the database does not know it".to_owned();
            found.insert(id.clone(), Unknown { id, shim_pid: None, why });
        }
        for (id, shim_pid) in there.shims.into_iter().filter(|(id, _)| !kept(id)) {
            let record = match self.damaged.contains_key(&id) {
                true => "its record cannot be used",
                false => "the database does not know it",
            };
            let why = format!("its agent runs on, and {record}; `pinfold down` ends it");
            found.insert(id.clone(), Unknown { id, shim_pid: Some(shim_pid), why });
        }
        for unknown in found.values() {
            warn!(id = unknown.id, "{}", unknown.why);
        }
        self.unknown = found.into_values().collect();
    }

    /// Ends the agents of unknown sessions; the daemon stays until that is done.
    pub(super) fn end_strangers(&mut self) {
        for unknown in self.unknown.iter().filter(|unknown| unknown.shim_pid.is_some()) {
            let socket = self.home.runtime.join("shims").join(format!("{}.sock", unknown.id));
            let (handle, id) = (self.handle.clone(), unknown.id.clone());
            self.strangers += 1;
            let told = move |()| handle.tell(LoopInput::StrangerEnded { id });
            let id = unknown.id.clone();
            self.ports.shims.end_stranger(id, socket, self.generation, Box::new(told));
        }
    }

    pub(super) fn stranger_ended(&mut self, id: &str) {
        self.strangers = self.strangers.saturating_sub(1);
        if let Closing::Waiting(_) = self.closing {
            self.unknown.retain(|unknown| unknown.id != id);
        }
    }
}

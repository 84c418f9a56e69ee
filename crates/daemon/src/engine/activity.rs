//! What agents of runs on a terminal are doing, learned from the file that their program keeps about itself
//! and from its bell.
//!
//! The file has precedence. A bell says only that the program wants a person, not what typing would do.

use super::Engine;
use crate::define::id_files::IdFiles;
use crate::define::preset::{COMMAND, IdFile, Preset, SessionIds};
use crate::engine::session::Tracked;
use crate::engine::terminal::FileWatched;
use pinfold_core::life::Life;
use pinfold_core::talk::Dialog;
use pinfold_core::{RunEvent, RunNumber};
use pinfold_shim::BellRing;
use pinfold_store::SessionId;

impl Engine {
    /// Watches the file of the program that runs on a terminal now, if it keeps one.
    pub(super) fn follow_terminal(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let looked = tracked.run.as_ref().is_none_or(|run| run.terminal.watched.is_some());
        let Some((number, process, _)) = tracked.session.life().at_work().filter(|_| !looked) else { return };
        let files = self.id_files(tracked);
        let watched = if files.is_some() { FileWatched::Yes } else { FileWatched::No };
        if let Some(run) = self.sessions.get_mut(&id).and_then(|tracked| tracked.live(number)) {
            run.terminal.watched = Some(watched);
        }
        if let Some(files) = files {
            self.ports.id_files.watch((id, number), files, process.pid);
        }
    }

    /// Where the program on a session's terminal writes what it is doing.
    fn id_files(&self, tracked: &Tracked) -> Option<IdFiles> {
        let held = matches!(tracked.session.life(), Life::Held { .. });
        if !held && !tracked.definition.pty {
            return None;
        }
        let preset = self.preset_on_terminal(tracked)?;
        IdFiles::of(&tracked.definition, &preset)
    }

    /// The preset of the program on a session's terminal; a program given as a command is found by its name.
    fn preset_on_terminal(&self, tracked: &Tracked) -> Option<Preset> {
        let definition = &tracked.definition;
        match definition.agent.as_str() {
            COMMAND => self.config.preset_of_program(definition.command.first()?),
            agent => self.config.preset(agent),
        }
    }

    /// Whether the live run could tell if a dialog is open, but has not yet.
    pub(super) fn unseen_dialog(&self, id: SessionId) -> Dialog {
        let tracked =
            self.sessions.get(&id).filter(|tracked| tracked.session.state() != pinfold_core::State::Held);
        if tracked.is_some_and(|tracked| self.id_files(tracked).is_some()) {
            Dialog::Unseen
        } else {
            Dialog::None
        }
    }

    /// Takes the present content of a program's file.
    pub(super) fn filed(&mut self, id: SessionId, run: RunNumber, filed: Option<IdFile>) {
        let Some(live) = self.sessions.get_mut(&id).and_then(|tracked| tracked.live(run)) else { return };
        live.terminal.filed.clone_from(&filed);
        self.tell_terminal(id, run);
        if let Some(vendor) = filed.filter(|filed| filed.does.is_some()).and_then(|filed| filed.session) {
            self.learn_from_file(id, run, vendor);
        }
    }

    /// The terminal rang, or the ring is over.
    pub(super) fn rang(&mut self, id: SessionId, run: RunNumber, ring: Option<BellRing>) {
        let Some(live) = self.sessions.get_mut(&id).and_then(|tracked| tracked.live(run)) else { return };
        live.terminal.ring = ring;
        self.tell_terminal(id, run);
    }

    fn tell_terminal(&mut self, id: SessionId, run: RunNumber) {
        let Some(live) = self.sessions.get_mut(&id).and_then(|tracked| tracked.live(run)) else { return };
        // A protocol says more, and exactly.
        if live.taping.is_some() {
            return;
        }
        let standing = Box::new(live.terminal.standing());
        self.of_run(id, run, RunEvent::Standing(standing));
    }

    /// A program on a terminal may switch to another vendor conversation: the session follows it.
    fn learn_from_file(&mut self, id: SessionId, run: RunNumber, vendor: String) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let preset = self.config.preset(&tracked.definition.agent);
        let makes = |preset: Preset| preset.session != SessionIds::None && preset.vendor_id.accepts(&vendor);
        let follows = preset.is_some_and(makes);
        if follows && self.as_known(tracked).vendor_session.as_ref() != Some(&vendor) {
            self.of_run(id, run, RunEvent::VendorLearned { id: vendor });
        }
    }
}

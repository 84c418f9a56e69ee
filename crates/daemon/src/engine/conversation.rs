//! Whether a session may begin a conversation, or only continue the one it has.
//!
//! It is decided from what is recorded: an answered message, or an id that a person named. What is found in
//! the vendor's folders decides only between the two ways to start an agent whose conversation is unused.

use super::Engine;
use crate::define::definition::Definition;
use crate::define::kept::FoundState;
use crate::define::preset::{SessionIds, VendorTranscript, chosen};
use crate::engine::session::Tracked;
use pinfold_agents::GaveUp;
use pinfold_core::exit::Recognised;
use pinfold_core::life::{Life, Purpose};
use pinfold_core::lost::{LostConversation, LostHow};
use pinfold_core::{RunEvent, RunNumber};
use pinfold_store::SessionId;
use tracing::warn;

impl Engine {
    /// The vendor does not know the conversation that the run was to continue. If nothing was answered in it,
    /// nothing is lost, and the next run begins another one: some vendors write down an id only with the first
    /// answer, or write it down and then neither begin nor resume it.
    pub(super) fn vendor_unknown(&mut self, id: SessionId, run: RunNumber) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let found = tracked.run.as_ref().and_then(|run| run.transcript);
        if !is_unused(tracked, run) || found.is_some_and(|found| found.kept) {
            let how = match found.map(|found| (found.transcript, found.state)) {
                Some((VendorTranscript::Exists, FoundState::Elsewhere)) => LostHow::Elsewhere,
                Some((VendorTranscript::Exists, _)) => LostHow::Unreadable,
                Some((VendorTranscript::Missing, _)) | None => LostHow::Gone,
            };
            return self.conversation_lost(id, run, how, None);
        }
        warn!(%id, run = run.0, "its vendor does not know its session, in which nothing was answered: it gets another one");
        let preset = self.config.preset(&tracked.definition.agent);
        let chooses = preset.is_some_and(|preset| preset.session == SessionIds::Choose);
        let another = (chooses || tracked.definition.vendor_chosen).then(|| chosen(self.ports.clock.dice()));
        self.of_run(id, run, RunEvent::VendorLost { another });
    }

    /// The conversation of a run, in which something was said, cannot be continued.
    pub(super) fn conversation_lost(
        &mut self,
        id: SessionId,
        run: RunNumber,
        how: LostHow,
        text: Option<String>,
    ) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let known = self.as_known(tracked);
        let preset = self.config.preset(&known.agent);
        let place = preset.and_then(|preset| known.place_of_store(&preset));
        let vendor = known.vendor_session.clone();
        warn!(%id, run = run.0, vendor, how = how.word(), "its conversation cannot be continued");
        let lost = LostConversation { run, id: vendor, how, place, text };
        self.of_run(id, run, RunEvent::ConversationLost(Box::new(lost)));
    }

    /// The agent says which conversation it is in. In a headless run that was to continue another one, only
    /// a command of the user's changes it.
    pub(super) fn vendor_named(&mut self, id: SessionId, run: RunNumber, vendor: String) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let asked = tracked.session.talk().conversation(tracked.definition.vendor_session.as_deref());
        let replaced = asked.is_some_and(|asked| asked != vendor);
        if replaced
            && is_headless(tracked.session.life())
            && only_resumes(tracked)
            && !self.in_a_command(tracked)
        {
            return self.conversation_lost(id, run, LostHow::Replaced, Some(vendor));
        }
        self.of_run(id, run, RunEvent::VendorLearned { id: vendor });
    }

    /// Whether the turn under way is a command of the vendor's, such as `/clear`.
    fn in_a_command(&self, tracked: &Tracked) -> bool {
        let turn = tracked.session.inbox().in_flight();
        let row = turn.and_then(|turn| self.ports.journal.message(turn.message).ok().flatten());
        row.is_some_and(|row| row.text.trim_start().starts_with('/'))
    }

    /// What the exit code of a run does not say: its agent was told to leave because the handshake failed.
    pub(super) fn gave_up(&mut self, id: SessionId, run: RunNumber) -> Option<Recognised> {
        if self.begins_another(id, run) {
            return Some(Recognised::BeginsAnother);
        }
        if self.is_lost_in(id, run) {
            return Some(Recognised::StaleId);
        }
        let taping = self.taping(id).filter(|taping| taping.fold.run() == run)?;
        Some(match taping.fold.gave_up()? {
            GaveUp::UnknownSession => Recognised::StaleId,
            GaveUp::Login => Recognised::LoginNeeded,
            GaveUp::Refused => Recognised::NoHandshake,
        })
    }

    /// Whether a run gave up its conversation because the vendor did not know it.
    pub(super) fn begins_another(&self, id: SessionId, run: RunNumber) -> bool {
        let vendor = self.sessions.get(&id).and_then(|tracked| tracked.session.talk().vendor());
        vendor.is_some_and(|vendor| vendor.was_lost_in(run))
    }

    /// Whether a run found out that its conversation cannot be continued.
    pub(super) fn is_lost_in(&self, id: SessionId, run: RunNumber) -> bool {
        self.sessions.get(&id).is_some_and(|tracked| tracked.session.talk().lost_in(run))
    }
}

/// Whether the next run of a session may only continue its conversation: something was said in it, or a
/// person named it.
pub(super) fn only_resumes(tracked: &Tracked) -> bool {
    let (done, _) = tracked.session.inbox().settled();
    let talk = tracked.session.talk();
    let Definition { vendor_session, vendor_chosen, .. } = &*tracked.definition;
    match talk.conversation(vendor_session.as_deref()) {
        None => false,
        Some(_) if talk.is_answered(done) => true,
        // Without a name from the agent it is the one of the definition.
        Some(id) => vendor_session.as_deref() == Some(id) && !vendor_chosen,
    }
}

/// Whether nothing is lost with the conversation that a run cannot go on with. One that a person named is never
/// given up. What a person says in the vendor's own terminal is not counted as an answer: in a session that has
/// answered, only a conversation of the run before counts as unused.
fn is_unused(tracked: &Tracked, run: RunNumber) -> bool {
    let (done, _) = tracked.session.inbox().settled();
    let talk = tracked.session.talk();
    if only_resumes(tracked) {
        return false;
    }
    let defined = tracked.definition.vendor_session.as_ref();
    match talk.vendor().filter(|vendor| defined != Some(&vendor.id)) {
        Some(vendor) => done == 0 || vendor.run.0 + 1 == run.0,
        None => defined.is_some(),
    }
}

/// Whether the live run, if there is one, has no terminal.
pub(super) fn is_headless(life: &Life) -> bool {
    match life {
        Life::Starting { purpose, .. } | Life::Stopping { purpose, .. } => *purpose == Purpose::Headless,
        Life::Running { .. } => true,
        Life::Held { .. }
        | Life::Idle { .. }
        | Life::Backoff { .. }
        | Life::Blocked { .. }
        | Life::Stopped
        | Life::Failed { .. }
        | Life::Archived { .. } => false,
    }
}

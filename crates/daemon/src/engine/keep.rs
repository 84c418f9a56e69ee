//! Has the vendor's transcript kept: after each answered turn, when a run has ended, and when a daemon finds
//! one that lives.

use super::Engine;
use crate::define::kept::{SaidTurn, Saved, TranscriptCopy};
use crate::define::transcript_lines::squeezed;
use crate::engine::input::LoopInput;
use crate::engine::session::Tracked;
use pinfold_core::life::Purpose;
use pinfold_core::{EventKind, Life, MessageId, RunEvent, RunNumber};
use pinfold_store::{AuditEvent, Batch, SessionId};
use serde_json::json;
use std::io;
use std::sync::Arc;
use tracing::warn;

/// How much of a text is looked for in a transcript, in letters.
const LONGEST_SOUGHT: usize = 60;
/// A message that begins like this is a command of the vendor's: its transcript has other words for it.
const COMMANDS: [char; 5] = ['/', '?', '!', '#', '@'];

impl Engine {
    /// Where the transcript of a session is, and its copy, if its agent writes one that can be kept.
    pub(super) fn keeping(&self, tracked: &Tracked) -> Option<TranscriptCopy> {
        let known = self.as_known(tracked);
        let sought = known.transcript(&self.config.preset(&known.agent)?)?;
        Some(TranscriptCopy {
            folder: self.home.kept(tracked.id),
            sought,
            vendor: known.vendor_session.clone()?,
            choice: known.conversation,
            dir: known.dir.clone(),
            alone: Arc::clone(&tracked.keeping),
            turns: tracked.unkept.clone(),
        })
    }

    /// A turn was answered.
    pub(super) fn keep_turn(&mut self, id: SessionId, run: RunNumber, message: MessageId, answer: &str) {
        let prompt = self.ports.journal.message(message).ok().flatten().map(|row| row.text);
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.unkept.push(said(&prompt.unwrap_or_default(), answer));
        }
        self.copy_transcript(id, run);
    }

    /// A run has ended, or was found alive: what it wrote since the last turn is kept, if anything was said.
    pub(super) fn keep_rest(&mut self, id: SessionId, run: RunNumber) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let (done, _) = tracked.session.inbox().settled();
        let by_hand = match tracked.session.life() {
            Life::Held { .. } => true,
            Life::Stopping { purpose, .. } => *purpose != Purpose::Headless,
            Life::Starting { .. }
            | Life::Running { .. }
            | Life::Idle { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => false,
        };
        if by_hand || tracked.session.talk().is_answered(done) {
            self.copy_transcript(id, run);
        }
    }

    /// A daemon finds a run that lives.
    pub(super) fn keep_found(&mut self, id: SessionId) {
        let run = self.sessions.get(&id).and_then(|tracked| tracked.session.live_run());
        if let Some(run) = run {
            self.keep_rest(id, run);
        }
    }

    fn copy_transcript(&mut self, id: SessionId, run: RunNumber) {
        let keeping = self.sessions.get(&id).filter(|_| self.alone.is_none());
        let keeping = keeping.and_then(|tracked| self.keeping(tracked));
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let turns = std::mem::take(&mut tracked.unkept);
        let Some(keeping) = keeping else { return };
        let handle = self.handle.clone();
        let told = move |saved| handle.tell(LoopInput::Kept { id, run, turns, saved });
        self.ports.files.keep(keeping, Box::new(told));
    }

    /// A transcript was looked at. What could not be looked at is looked for the next time.
    pub(super) fn transcript_copied(
        &mut self,
        id: SessionId,
        run: RunNumber,
        turns: Vec<SaidTurn>,
        saved: io::Result<Saved>,
    ) {
        let saved = saved.unwrap_or_else(|error| {
            warn!(%id, run = run.0, "the transcript of its conversation was not copied: {error}");
            if let Some(tracked) = self.sessions.get_mut(&id) {
                tracked.unkept.splice(0..0, turns);
            }
            Saved::No
        });
        self.of_run(id, run, RunEvent::Saved { saved: saved == Saved::Yes });
    }

    /// The transcript was missing or damaged, and was put back.
    pub(super) fn was_put_back(&mut self, id: SessionId, run: RunNumber) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let vendor = self.as_known(tracked).vendor_session.clone();
        warn!(%id, run = run.0, vendor, "the transcript of its conversation was missing or damaged, and was put back");
        let data = json!({ "vendor_session": vendor }).as_object().cloned().unwrap_or_default();
        let why = "the transcript of its conversation was missing or damaged".to_owned();
        let (at, run) = (self.ports.clock.wall(), tracked.run_id(run));
        let kind = EventKind::ConversationPutBack;
        let mut batch = Batch::new();
        batch.event(AuditEvent { at, session: Some(id), run, kind, why, data });
        self.commit(None, batch);
    }
}

/// What the transcript contains if it contains this turn.
fn said(prompt: &str, answer: &str) -> SaidTurn {
    if prompt.trim_start().starts_with(COMMANDS) {
        return SaidTurn { texts: Vec::new() };
    }
    let begin = |text: &str| squeezed(text).chars().take(LONGEST_SOUGHT).collect::<String>();
    let texts = [prompt, answer].map(begin).into_iter().filter(|text| !text.is_empty());
    SaidTurn { texts: texts.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_known_by_the_beginnings_of_its_texts_and_a_command_by_none() {
        let texts = |prompt, answer| said(prompt, answer).texts;
        assert_eq!(texts("a b\nc", " d "), ["abc", "d"]);
        let long = "x".repeat(100);
        assert_eq!(texts(&long, ""), [&long[..60]]);
        assert_eq!(texts("/clear", "done"), Vec::<String>::new());
    }
}

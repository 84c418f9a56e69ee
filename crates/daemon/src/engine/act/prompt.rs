//! Agents that get their message on the command line: a run is for one message, which is known when it
//! starts.

use crate::define::preset::PROMPT;
use crate::engine::Engine;
use crate::engine::session::Tracked;
use crate::engine::speak::file_is_gone;
use pinfold_agents::{MessageSender, Prompt, prompt_text};
use pinfold_core::life::StartRefused;
use pinfold_core::{Event, MessageEvent, MessageId, RunNumber};
use pinfold_shim::Start;
use pinfold_store::{Facts, SessionId};
use tracing::warn;

impl Engine {
    /// Whether the agent of a session gets its message on the command line.
    pub(super) fn is_told_by_argument(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|tracked| tracked.definition.is_told_by_argument())
    }

    /// Puts the message that the next run is for into the words of a command; without a message they stay as
    /// they are.
    pub(super) fn with_prompt(&self, tracked: &Tracked, words: &[String]) -> Vec<String> {
        let told = tracked.definition.is_told_by_argument();
        let next = tracked.session.inbox().next_waiting().filter(|_| told);
        let Some(text) = next.and_then(|next| self.text_of(tracked, next)) else {
            return words.to_vec();
        };
        words.iter().map(|word| word.replace(PROMPT, &text)).collect()
    }

    fn text_of(&self, tracked: &Tracked, next: MessageId) -> Option<String> {
        let row = self.ports.journal.message(next).ok().flatten()?;
        let from = row.from.map(|session| MessageSender { own: session == tracked.name, session });
        let marked = tracked.session.spec().policy.mark_repetition;
        let repetition = marked && tracked.session.inbox().is_repeated(next);
        let (text, files) = (row.text, row.files);
        let prompt = Prompt { message: next, delivery: 0, attempt: 1, text, repetition, files, from };
        let chat = self.config.preset(&tracked.definition.agent).map(|preset| preset.chat);
        Some(prompt_text(&prompt, &chat.unwrap_or_default()))
    }

    /// The message that the next run is told, and the files that it names; nothing where it names none.
    pub(super) fn files_of_prompt(&self, tracked: &Tracked) -> Option<(MessageId, Vec<String>)> {
        let told = tracked.definition.is_told_by_argument();
        let next = tracked.session.inbox().next_waiting().filter(|_| told)?;
        let files = self.ports.journal.message(next).ok().flatten()?.files;
        (!files.is_empty()).then_some((next, files))
    }

    /// A file of a message that waits is gone: the message fails, and no agent is started for it.
    pub(super) fn cannot_prompt(&mut self, id: SessionId, message: MessageId, missing: &str) {
        let reason = file_is_gone(missing);
        warn!("{reason}");
        let facts = Facts { reason: Some(reason), ..Facts::default() };
        self.happened(id, &Event::Message(MessageEvent::Undeliverable { message }), &facts, None);
    }

    /// Notes the message that a run is started for; returns a refusal if the run needs one and there is none.
    pub(super) fn has_no_prompt(
        &mut self,
        id: SessionId,
        run: RunNumber,
        start: &Start,
    ) -> Option<StartRefused> {
        let tracked = self.sessions.get_mut(&id)?;
        if start.tape.is_none() || !tracked.definition.is_told_by_argument() {
            return None;
        }
        let next = tracked.session.inbox().next_waiting();
        if let Some(taping) = tracked.live(run).and_then(|run| run.taping.as_deref_mut()) {
            // The message it was decided for may have been cancelled meanwhile.
            taping.fold.prompts(next);
        }
        let text = "its agent runs once for each message, and none is queued".to_owned();
        next.is_none().then_some(StartRefused { errno: None, text })
    }
}

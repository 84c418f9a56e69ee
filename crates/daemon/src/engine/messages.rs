//! Messages: from the sender to the disk, from the disk to the agent, and the answer back.

use super::Engine;
use crate::caller::By;
use crate::define::definition::TurnEndRule;
use crate::engine::feed::FeedNews;
use crate::engine::input::{LoopInput, Post, Sending};
use crate::engine::reply::ReplyHandle;
use crate::engine::speech;
use crate::engine::taping::MessageDelivery;
use pinfold_core::decision::{Answer, Refusal};
use pinfold_core::event::{MessageEvent, TurnEnd};
use pinfold_core::inbox::Read;
use pinfold_core::{Event, MessageId, RunNumber, Wall};
use pinfold_shim::log::Position;
use pinfold_shim::turn::Turn;
use pinfold_shim::{Command, InputRefused};
use pinfold_store::{
    AnswerKept, AnswerTold, Facts, GivenAnswer, Message, MessageState, ReadError, SessionId, TurnPlace, Ulid,
};
use std::sync::Arc;
use tracing::warn;

/// The number of a delivery as shims have it.
fn number(delivery: u64) -> u32 {
    delivery as u32
}

/// What a sender specifies of a message.
struct Words {
    key: Option<String>,
    from: Option<String>,
    text: String,
    files: Vec<String>,
}

/// A new message as the store has it.
fn queued(id: Ulid, session: SessionId, at: Wall, words: Words) -> Message {
    let Words { key, from, text, files } = words;
    Message {
        id,
        session,
        key,
        from,
        text,
        state: MessageState::Queued,
        tries: 0,
        enqueued_at: at,
        done_at: None,
        answer: None,
        kept: AnswerKept::default(),
        taken: None,
        files,
        failure: None,
        place: None,
        damage: None,
    }
}

impl Engine {
    /// Handles a request concerning a session's inbox.
    pub(super) fn post(&mut self, id: SessionId, post: Post, by: Option<Arc<By>>, reply: ReplyHandle) {
        if let Some(early) = self.early(id) {
            return early.push(LoopInput::Post { id, post, by, reply });
        }
        let event = match post {
            Post::Send(sending) => return self.send(id, sending, by.as_deref(), reply),
            Post::Cancel { message } => MessageEvent::Cancelled { message },
            Post::Retry { message } => {
                let row = self.ports.journal.message(message).ok().flatten();
                let Some(failed) = row.filter(|row| row.state == MessageState::Failed) else {
                    reply.give(Answer::Already);
                    return;
                };
                let read = if failed.tries > 0 { Read::Maybe } else { Read::Never };
                MessageEvent::Retried { message, read }
            }
        };
        let facts = Facts { by: by.map(|by| by.words()), ..Facts::default() };
        self.happened(id, &Event::Message(event), &facts, Some(reply));
    }

    fn send(&mut self, id: SessionId, sending: Sending, by: Option<&By>, reply: ReplyHandle) {
        let Sending { text, key, files, row } = sending;
        let known = match key.as_deref().map(|key| self.known(id, key)).transpose() {
            Ok(known) => known.flatten(),
            // An error does not mean "no such key": the client gets no answer and may ask again.
            Err(error) => return warn!("a key could not be looked up: {error}"),
        };
        if known.is_none() && !self.can_be_told(id, &text) {
            reply.give(Answer::Refused(Refusal::NotAnArgument));
            return;
        }
        if known.is_none() && !self.takes_text(id, text.len() as u64) {
            reply.give(Answer::Refused(Refusal::InboxHeavy));
            return;
        }
        self.hold_before_message(id);
        let message = MessageId::from(self.new_id());
        if let (Some(key), None, Some(tracked)) = (&key, known, self.sessions.get_mut(&id)) {
            tracked.keys.insert(key.clone(), message);
        }
        let from = by.and_then(|by| by.session.as_ref()).map(|(_, name)| name.clone());
        let now = self.ports.clock.now();
        // A client that waits for the answer need not read back what it sent.
        if known.is_none() && !row.is_closed() {
            let (key, from, text, files) = (key.clone(), from.clone(), text.clone(), files.clone());
            _ = row.send(queued(Ulid::from(message), id, now.wall, Words { key, from, text, files }));
        }
        let texts = [(message, text)].into();
        let facts = Facts { texts, files, from, by: by.map(|by| by.words()), ..Facts::default() };
        let event = Event::Message(MessageEvent::Sent { message, key, known });
        self.happened_at(now, id, &event, &facts, Some(reply));
    }

    /// Whether an inbox has room for this much more text; if so, it counts as taken. What has left the inbox
    /// is subtracted only when there seems to be no room: most inboxes never have so much.
    fn takes_text(&mut self, id: SessionId, length: u64) -> bool {
        let Some(tracked) = self.sessions.get(&id) else { return true };
        let most = self.config.settings(&tracked.definition.agent, &tracked.name).inbox_limit;
        let inbox = tracked.session.inbox();
        let empty = inbox.queued() == 0 && inbox.in_flight().is_none();
        let known = if empty { Some(0) } else { tracked.inbox_bytes };
        let fits = |bytes: u64| most == 0 || bytes.saturating_add(length) <= most;
        let counted = || self.ports.journal.waiting_bytes(id);
        let bytes = known.filter(|bytes| fits(*bytes)).unwrap_or_else(counted);
        let takes = fits(bytes);
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.inbox_bytes = Some(if takes { bytes.saturating_add(length) } else { bytes });
        }
        takes
    }

    /// The message with this key: being committed, or stored.
    fn known(&self, id: SessionId, key: &str) -> Result<Option<MessageId>, pinfold_store::ReadError> {
        let pending = self.sessions.get(&id).and_then(|tracked| {
            let message = *tracked.keys.get(key)?;
            let inbox = tracked.session.inbox();
            let current = inbox.in_flight().is_some_and(|turn| turn.message == message);
            // A refused message is not being committed.
            (current || inbox.waiting().any(|queued| queued.message == message)).then_some(message)
        });
        match pending {
            Some(message) => Ok(Some(message)),
            None => self.ports.journal.message_by_key(id, key),
        }
    }

    /// Hands a message to the shim, which hands each delivery to its agent only once.
    pub(super) fn deliver(&mut self, id: SessionId, run: RunNumber, given: MessageDelivery) {
        let MessageDelivery { message, attempt, delivery, .. } = given;
        // By the time this is durable the turn may be over: a daemon that restarts finds a turn under way,
        // and then its end.
        if !self.is_current(id, run, message, number(delivery)) {
            return;
        }
        let row = match self.ports.journal.message(message) {
            Ok(Some(row)) => row,
            Ok(None) => {
                let problem = format!("message {} is not in the database any more", Ulid::from(message));
                return self.cannot_deliver(id, run, message, problem);
            }
            Err(error @ ReadError::Row { .. }) => {
                return self.cannot_deliver(id, run, message, error.to_string());
            }
            Err(error) => return warn!("a message could not be read: {error}"),
        };
        if self.taping(id).is_some_and(|taping| taping.fold.run() == run) {
            return self.prompt(id, run, row, given);
        }
        let Some(tracked) = self.sessions.get(&id) else { return };
        let Some(shim) = &tracked.shim else { return };
        let (input, turns) = tracked.speech(run);
        let bytes = speech::line(input, &row, &tracked.name, attempt);
        let (attempt, says_done) = (number(delivery), turns == TurnEndRule::Done);
        shim.send(&Command::Input { run, message, attempt, bytes, says_done });
    }

    /// Fails the turn of a message whose text cannot be read.
    pub(super) fn cannot_deliver(
        &mut self,
        id: SessionId,
        run: RunNumber,
        message: MessageId,
        problem: String,
    ) {
        warn!("{problem}");
        let event = MessageEvent::TurnEnded { run, message, how: TurnEnd::Failed };
        self.turn_ends(id, event, Facts { reason: Some(problem), ..Facts::default() });
        self.end_if_for_message(id, run);
    }

    /// Whether the turn under way is this delivery in this run.
    fn is_current(&self, id: SessionId, run: RunNumber, message: MessageId, attempt: u32) -> bool {
        let Some(session) = self.sessions.get(&id).map(|tracked| &tracked.session) else { return false };
        let turn = session.inbox().in_flight();
        session.live_run() == Some(run)
            && turn.is_some_and(|turn| (turn.message, number(turn.delivery)) == (message, attempt))
    }

    /// The agent's stdin took a message: the turn has begun, and for some agents it is also over.
    pub(super) fn input_taken(
        &mut self,
        id: SessionId,
        run: RunNumber,
        message: MessageId,
        attempt: u32,
        from: Position,
    ) {
        if !self.is_current(id, run, message, attempt) {
            return;
        }
        let turns = self.sessions.get(&id).map_or(TurnEndRule::Line, |tracked| tracked.speech(run).1);
        let place = TurnPlace { run, from: from.0, to: None };
        let facts = Facts { places: [(message, place)].into(), ..Facts::default() };
        let event = match turns {
            TurnEndRule::Done => MessageEvent::Taken { run, message },
            TurnEndRule::Line => MessageEvent::TurnEnded { run, message, how: TurnEnd::Answered },
        };
        self.happened(id, &Event::Message(event), &facts, None);
    }

    /// The agent said that the turn is over; its answer is stored with that.
    pub(super) fn turn_done(&mut self, id: SessionId, turn: &Turn) {
        let Some(done) = &turn.done else { return };
        let (run, message) = (turn.run, turn.message);
        if !self.is_current(id, run, message, turn.attempt) {
            return;
        }
        if let Some(named) = done.named
            && self.is_message_of(id, named)
        {
            return self.log_not_counted(id, Some(named));
        }
        if !done.whole {
            warn!(message_id = %Ulid::from(message), "the answer is cut: it is too long");
        }
        let place = TurnPlace { run, from: turn.from.0, to: Some(done.to.0) };
        let told = AnswerTold { before: 0, cut: !done.whole };
        let answer = GivenAnswer { rest: speech::answer(&done.answer), told };
        let facts = Facts {
            answers: [(message, answer)].into(),
            places: [(message, place)].into(),
            ..Facts::default()
        };
        let event = MessageEvent::TurnEnded { run, message, how: TurnEnd::Answered };
        self.happened(id, &Event::Message(event), &facts, None);
    }

    /// The agent said that a turn is over while none was under way.
    pub(super) fn stray_done(&mut self, id: SessionId, run: RunNumber, named: Option<MessageId>) {
        let tracked = self.sessions.get_mut(&id);
        let Some(tracked) = tracked.filter(|tracked| tracked.session.live_run() == Some(run)) else { return };
        // The next one may come within a turn, where nothing tells it from the answer.
        if named.is_none() && !std::mem::replace(&mut tracked.stray_mark, true) {
            warn!(
                session = tracked.name,
                "put the message's ID after PINFOLD_DONE (`--input json` has it), or an answer can be stored under the \
                 wrong message"
            );
            self.feed.note(id, FeedNews::Live);
        }
        self.log_not_counted(id, named);
    }

    pub(super) fn log_not_counted(&self, id: SessionId, named: Option<MessageId>) {
        let Some(name) = self.sessions.get(&id).map(|tracked| &tracked.name) else { return };
        match named {
            Some(named) => {
                let message_id = Ulid::from(named);
                warn!(session = name, %message_id, "it printed PINFOLD_DONE for a message that is not in flight: not counted");
            }
            None => {
                warn!(session = name, "it printed PINFOLD_DONE without a message in flight: not counted");
            }
        }
    }

    /// Whether an id is that of a message of this session. If that cannot be read, it counts as one: an
    /// answer under the wrong message is worse than a late one.
    pub(super) fn is_message_of(&self, id: SessionId, named: MessageId) -> bool {
        match self.ports.journal.message(named) {
            Ok(row) => row.is_some_and(|row| row.session == id),
            Err(error) => {
                warn!("a message could not be read: {error}");
                true
            }
        }
    }

    /// Takes in what the shim recorded of the turn under way, before its run is judged.
    pub(super) fn settle_turn(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id).map(|tracked| &tracked.session) else { return };
        if session.inbox().in_flight().is_none() || session.live_run().is_none() {
            return;
        }
        let Some(turn) = self.ports.shims.latest_turn(&self.home, id) else { return };
        self.input_taken(id, turn.run, turn.message, turn.attempt, turn.from);
        self.turn_done(id, &turn);
    }

    pub(super) fn input_refused(&self, id: SessionId, run: RunNumber, why: InputRefused) {
        let Some(tracked) = self.sessions.get(&id).filter(|tracked| tracked.session.live_run() == Some(run))
        else {
            return;
        };
        let why = match why {
            InputRefused::Full => "too much waits for it already",
            InputRefused::Closed => "it does not read its standard input any more",
        };
        warn!(session = tracked.name, run = run.0, "it cannot be given a message in this run: {why}");
    }
}

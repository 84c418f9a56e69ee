//! What is written to an agent with a tape: one utterance at a time, by number, and only when what led to it
//! is durable.
//!
//! Nothing here remembers what was said: the tape does. An intent stays in a list until the fold meets it on
//! the tape, and is tried again whenever something has changed; the number ensures that it is said once.

use super::Engine;
use crate::crash;
use crate::engine::input::LoopInput;
use crate::engine::taping::{HeardTape, MessageDelivery};
use pinfold_agents::{CannotSay, Consent, Intent, MessageSender, Prompt, RequestReply, Utterance};
use pinfold_core::talk::{Permit, RequestAnswer};
use pinfold_core::{Life, RunNumber};
use pinfold_shim::tape::Position;
use pinfold_shim::{Command, Label, Say, SayNumber, SayRefused};
use pinfold_store::{Message, SessionId};
use tracing::{debug, warn};

/// The result of an attempt to say something.
enum Tried {
    Say(Box<Utterance>),
    /// Try again later.
    Later,
    /// It need not be said any more.
    Never,
    /// The protocol cannot express it.
    NotOffered,
    /// It can never be said.
    Fails(CannotSay),
}

impl Engine {
    /// Says the next thing that is to be said, if possible now.
    pub(super) fn speak(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get(&id).filter(|tracked| tracked.pending.is_empty()) else {
            return;
        };
        let (Life::Running { run, .. } | Life::Stopping { run, .. }) = *tracked.session.life() else {
            return;
        };
        let ends = matches!(tracked.session.life(), Life::Stopping { .. });
        let in_turn = tracked.session.inbox().in_flight().is_some();
        if tracked.shim.as_ref().is_none_or(|shim| shim.leaving) {
            return;
        }
        let Some(taping) = self.taping(id).filter(|taping| taping.asked.is_none() && !taping.shut) else {
            return;
        };
        if let Some(intent) = taping.fold.wants().filter(|_| !ends) {
            // What the agent said is not answered before it is stored.
            if taping.changed.is_some() {
                return self.store_fold(id);
            }
            if let Tried::Say(utterance) = attempt(taping, &intent, in_turn) {
                return self.say(id, run, *utterance);
            }
        }
        if ends {
            // Nothing new is begun with an agent that is to leave.
            taping.intents.retain(|intent| matches!(intent, Intent::Interrupt | Intent::Close));
        }
        self.speak_first(id, run, in_turn);
    }

    /// Says the first waiting intent that can be said now.
    fn speak_first(&mut self, id: SessionId, run: RunNumber, in_turn: bool) {
        let Some(taping) = self.taping(id) else { return };
        for intent in taping.intents.clone() {
            let Some(taping) = self.taping(id) else { return };
            match attempt(taping, &intent, in_turn) {
                Tried::Say(utterance) => return self.say(id, run, *utterance),
                Tried::Later => continue,
                Tried::Never => {}
                Tried::NotOffered if intent == Intent::Interrupt => self.interrupt_process(id, run),
                Tried::NotOffered => debug!(%id, label = %intent.label(), "its protocol has no word for it"),
                Tried::Fails(why) => self.cannot_say(id, run, &intent, why),
            }
            if let Some(taping) = self.taping(id) {
                taping.intents.retain(|known| *known != intent);
            }
        }
    }

    /// Ends a turn by signal; if the run is the turn, by ending the run.
    fn interrupt_process(&self, id: SessionId, run: RunNumber) {
        let Some(spec) = self.sessions.get(&id).map(|tracked| tracked.session.spec()) else { return };
        self.tell_shim(
            id,
            &match spec.run_per_message {
                true => Command::Stop { run, grace: spec.policy.stop_grace },
                false => Command::Interrupt { run },
            },
        );
    }

    fn say(&mut self, id: SessionId, run: RunNumber, utterance: Utterance) {
        let Some(taping) = self.taping(id) else { return };
        let number = taping.fold.last_said() + 1;
        let Utterance { label, bytes, heard, close } = utterance;
        let Ok(label) = Label::new(label.to_string()) else { return };
        taping.asked = Some(number);
        let (number, heard) = (SayNumber(number), heard.map(Position));
        crash::point("say.before");
        self.tell_shim(id, &Command::Say(Box::new(Say { run, number, label, bytes, heard, close })));
        crash::point("say.sent");
    }

    /// An utterance was refused: its number is still free.
    pub(super) fn not_said(&mut self, id: SessionId, run: RunNumber, number: u64, why: SayRefused) {
        let Some(taping) = self.taping(id).filter(|taping| taping.fold.run() == run) else { return };
        taping.asked.take_if(|asked| *asked == number);
        match why {
            // There is more on the tape, or will be: try again once that is read.
            SayRefused::MoreWasPrinted => self.read_all(id),
            SayRefused::Closed => {
                taping.shut = true;
                warn!(%id, run = run.0, "it does not read its standard input any more");
            }
            // The shim reports when there is room again.
            SayRefused::TooMuchWaits | SayRefused::TapeBroken { .. } => {}
            SayRefused::Other { code } => warn!(%id, run = run.0, code, "its shim does not say it"),
        }
    }

    fn cannot_say(&mut self, id: SessionId, run: RunNumber, intent: &Intent, why: CannotSay) {
        match intent {
            Intent::Prompt(prompt) => self.cannot_deliver(id, run, prompt.message, why.to_string()),
            Intent::Answer(_) | Intent::Handshake { .. } | Intent::Interrupt | Intent::Close => {
                warn!(%id, run = run.0, label = %intent.label(), "it cannot be said: {why}");
            }
        }
    }

    /// Queues a message for the agent; one that is already on the tape is not said again.
    pub(super) fn prompt(&mut self, id: SessionId, run: RunNumber, row: Message, given: MessageDelivery) {
        // One that is told by argument has its message already: its files were looked for before the start.
        let told = self.sessions.get(&id).is_some_and(|tracked| tracked.definition.is_told_by_argument());
        if row.files.is_empty() || told {
            return self.prompt_now(id, run, row, given);
        }
        let (handle, files) = (self.handle.clone(), row.files.clone());
        let told = move |missing| {
            handle.tell(LoopInput::FilesSeen { id, run, row: Box::new(row), given, missing });
        };
        self.ports.files.missing(files, Box::new(told));
    }

    /// The files of a message were looked for; a missing one fails the message.
    pub(super) fn files_seen(
        &mut self,
        id: SessionId,
        run: RunNumber,
        row: Message,
        given: MessageDelivery,
        missing: Option<String>,
    ) {
        let turn = self.sessions.get(&id).and_then(|tracked| tracked.session.inbox().in_flight());
        if turn.is_none_or(|turn| turn.delivery != given.delivery) {
            return;
        }
        if let Some(missing) = missing {
            return self.cannot_deliver(id, run, given.message, file_is_gone(&missing));
        }
        self.prompt_now(id, run, row, given);
        self.speak(id);
    }

    /// Whether the agent is told that it may have seen a message before.
    pub(super) fn marks_repetition(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_none_or(|tracked| tracked.session.spec().policy.mark_repetition)
    }

    fn prompt_now(&mut self, id: SessionId, run: RunNumber, row: Message, given: MessageDelivery) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let own = tracked.name.clone();
        let from = row.from.map(|session| MessageSender { own: session == own, session });
        let MessageDelivery { message, attempt, delivery, repetition } = given;
        let by_argument = tracked.definition.is_told_by_argument();
        let Some(taping) = self.taping(id) else { return };
        if taping.fold.open().any(|(open, _)| open.delivery == delivery) {
            return;
        }
        if by_argument && taping.fold.prompted() != Some(message) {
            // Its command line has another message, which was cancelled: this one gets a run of its own.
            warn!(%id, run = run.0, "it was started for another message");
            let grace = std::time::Duration::ZERO;
            return self.tell_shim(id, &Command::Stop { run, grace });
        }
        let (text, files) = (row.text, row.files);
        taping.want(Intent::Prompt(Prompt { message, delivery, attempt, text, repetition, files, from }));
    }

    /// Queues the answer to a request for the agent.
    pub(super) fn reply(&mut self, id: SessionId, run: RunNumber, key: &str, answer: &RequestAnswer) {
        let Ok(request) = key.parse() else { return };
        let Some(taping) = self.taping(id).filter(|taping| taping.fold.run() == run) else { return };
        let verdict = match answer.verdict {
            Permit::Allow => Consent::Allow,
            Permit::Deny => Consent::Deny,
        };
        let (words, always) = (answer.words.clone(), answer.always);
        taping.want(Intent::Answer(RequestReply { request, verdict, words, always }));
    }

    /// Tells the agent that nothing more will come. It is said now or never: the signal follows.
    pub(super) fn close(&mut self, id: SessionId, run: RunNumber) {
        let Some(taping) = self.taping(id).filter(|taping| taping.fold.run() == run) else { return };
        taping.intents = vec![Intent::Close];
        if taping.asked.is_none() && !taping.shut {
            self.speak_first(id, run, false);
        }
    }

    /// Ends the turn under way.
    pub(super) fn interrupt(&mut self, id: SessionId, run: RunNumber) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let session = &tracked.session;
        if !session.is_interrupted() && session.takeover().is_none() && !session.is_leaving() {
            // The turn it was to end is already over; the next one is not meant.
            return;
        }
        match self.taping(id).filter(|taping| taping.fold.run() == run) {
            Some(taping) => taping.want(Intent::Interrupt),
            None => self.tell_shim(id, &Command::Interrupt { run }),
        }
    }
}

fn attempt(taping: &HeardTape, intent: &Intent, in_turn: bool) -> Tried {
    match taping.fold.say(taping.fold.last_said() + 1, intent) {
        Ok(utterance) => Tried::Say(Box::new(utterance)),
        // The turn it is to end has not begun yet, or is over.
        Err(CannotSay::NoTurn) if in_turn => Tried::Later,
        Err(CannotSay::NoTurn | CannotSay::NoSuchRequest) => Tried::Never,
        Err(
            CannotSay::NotReady
            | CannotSay::TurnUnderWay
            | CannotSay::NotWanted
            | CannotSay::Closed
            | CannotSay::Unknown,
        ) => Tried::Later,
        Err(CannotSay::NotOffered) => Tried::NotOffered,
        Err(why @ (CannotSay::TooLong | CannotSay::Panicked)) => Tried::Fails(why),
    }
}

/// Why a message fails that names a file which is gone.
pub(in crate::engine) fn file_is_gone(file: &str) -> String {
    format!("file `{file}` does not exist any more")
}

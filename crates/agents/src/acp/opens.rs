//! The handshake: what the agent can do, and which session is opened.

use super::fails;
use super::state::{Acp, LOAD, NEW, Opened, Purpose, RESUME};
use super::wire::{Initialized, SessionOpened};
use crate::note::{self, Note};
use crate::observation::SessionRefused;
use crate::rpc::RpcError;
use crate::translate::View;
use crate::turn::{Failure, FailureKind};
use crate::word::{Want, Word};

/// The protocol version that pinfold speaks.
pub(crate) const VERSION: u64 = 1;
/// Longest session id in bytes; the ledger does not take longer ones either.
const LONGEST_ID: usize = 1 << 10;

/// The agent says what it can do. An agent that can resume a session without replaying it is asked to do
/// that.
pub(crate) fn initialized(line: &Initialized, see: &View<'_>) -> Vec<Word> {
    if let Some(other) = line.protocol_version.filter(|version| *version != VERSION) {
        return gives_up(&format!("it speaks version {other} of the protocol, and not {VERSION}"));
    }
    let can = line.agent_capabilities.as_ref();
    let resume =
        can.and_then(|can| can.session_capabilities.as_ref()).is_some_and(|can| can.resume.is_some());
    let load = can.is_some_and(|can| can.load_session == Some(true));
    match (see.ledger.session(), resume, load) {
        (None, ..) => vec![Word::Want(Want::Handshake(NEW))],
        (Some(_), true, _) => vec![Word::Want(Want::Handshake(RESUME))],
        (Some(_), false, true) => vec![Word::Want(Want::Handshake(LOAD))],
        (Some(_), false, false) => {
            let text = "it cannot go on with a session: it begins another one".to_owned();
            vec![Word::Note(Note::Agent { text }), Word::Want(Want::Handshake(NEW))]
        }
    }
}

/// A session is open.
pub(crate) fn opened(state: &mut Acp, purpose: Purpose, line: SessionOpened, see: &View<'_>) -> Vec<Word> {
    let known = see.ledger.session().filter(|_| purpose != Purpose::New).map(str::to_owned);
    let told = known.is_some();
    match known.or(line.session_id).filter(|id| !id.is_empty() && id.len() <= LONGEST_ID) {
        Some(id) => {
            state.opened = Some(Opened { id, told });
            vec![Word::Ready]
        }
        None => gives_up("it opened a session, and did not say which"),
    }
}

/// The agent refused a step of the handshake. It would wait forever and cannot be spoken to, so it is told to
/// leave.
pub(crate) fn refused(purpose: Purpose, error: &RpcError) -> Vec<Word> {
    let Failure { kind, text } = fails::failure(error);
    let mut words = gives_up(&text);
    match (purpose, kind) {
        (_, FailureKind::Login) => words.push(Word::Login(text)),
        // That may pass, and says nothing about the session.
        (
            Purpose::Load | Purpose::Resume,
            FailureKind::Limit | FailureKind::Server | FailureKind::Overloaded,
        ) => {}
        (Purpose::Load | Purpose::Resume, _) => {
            let why = if is_busy(error) { SessionRefused::Busy } else { SessionRefused::Unknown };
            words.push(Word::SessionRefused(why));
        }
        (Purpose::Initialize | Purpose::New | Purpose::Prompt, _) => {}
    }
    words
}

fn gives_up(text: &str) -> Vec<Word> {
    let text = note::short(text, fails::LONGEST_ERROR);
    vec![Word::Note(Note::Agent { text }), Word::Want(Want::Close)]
}

/// Returns whether the error is Codex's word for a session that another process writes.
fn is_busy(error: &RpcError) -> bool {
    let reason = error.data.as_ref().and_then(|data| data.get("reason")?.as_str());
    reason == Some("thread_active_writer")
}

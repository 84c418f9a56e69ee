//! The handshake: what the agent can do, and which session is opened.

use super::fails;
use super::state::{Acp, CallPurpose, LOAD, NEW, OpenSession, RESUME};
use super::wire::{Initialized, SessionOpened};
use crate::note::{self, LogNote};
use crate::observation::SessionRefused;
use crate::rpc::RpcError;
use crate::translate::RunView;
use crate::turn::{FailureKind, TurnFailure};
use crate::word::{AgentWord, Want};

/// The protocol version that pinfold speaks.
pub(crate) const VERSION: u64 = 1;
/// Longest session id in bytes; the ledger does not take longer ones either.
const LONGEST_ID: usize = 1 << 10;

/// The agent says what it can do. An agent that can resume a session without replaying it is asked to do
/// that.
pub(crate) fn initialized(line: &Initialized, see: &RunView<'_>) -> Vec<AgentWord> {
    if let Some(other) = line.protocol_version.filter(|version| *version != VERSION) {
        return gives_up(&format!("it speaks version {other} of the protocol, and not {VERSION}"));
    }
    let can = line.agent_capabilities.as_ref();
    let resume =
        can.and_then(|can| can.session_capabilities.as_ref()).is_some_and(|can| can.resume.is_some());
    let load = can.is_some_and(|can| can.load_session == Some(true));
    match (see.ledger.session(), resume, load) {
        (None, ..) => vec![AgentWord::Want(Want::Handshake(NEW))],
        (Some(_), true, _) => vec![AgentWord::Want(Want::Handshake(RESUME))],
        (Some(_), false, true) => vec![AgentWord::Want(Want::Handshake(LOAD))],
        (Some(_), false, false) => {
            let text = "it cannot go on with a session: it begins another one".to_owned();
            vec![AgentWord::Note(LogNote::Agent { text }), AgentWord::Want(Want::Handshake(NEW))]
        }
    }
}

/// A session is open.
pub(crate) fn opened(
    state: &mut Acp,
    purpose: CallPurpose,
    line: SessionOpened,
    see: &RunView<'_>,
) -> Vec<AgentWord> {
    let known = see.ledger.session().filter(|_| purpose != CallPurpose::New).map(str::to_owned);
    let told = known.is_some();
    match known.or(line.session_id).filter(|id| !id.is_empty() && id.len() <= LONGEST_ID) {
        Some(id) => {
            state.opened = Some(OpenSession { id, told });
            vec![AgentWord::Ready]
        }
        None => gives_up("it opened a session, and did not say which"),
    }
}

/// The agent refused a step of the handshake. It would wait forever and cannot be spoken to, so it is told to
/// leave.
pub(crate) fn refused(purpose: CallPurpose, error: &RpcError) -> Vec<AgentWord> {
    let TurnFailure { kind, text } = fails::failure(error);
    let mut words = gives_up(&text);
    match (purpose, kind) {
        (_, FailureKind::Login) => words.push(AgentWord::Login(text)),
        // That may pass, and says nothing about the session.
        (
            CallPurpose::Load | CallPurpose::Resume,
            FailureKind::Limit | FailureKind::Server | FailureKind::Overloaded,
        ) => {}
        (CallPurpose::Load | CallPurpose::Resume, _) => {
            let why = if is_busy(error) { SessionRefused::Busy } else { SessionRefused::Unknown };
            words.push(AgentWord::SessionRefused(why));
        }
        (CallPurpose::Initialize | CallPurpose::New | CallPurpose::Prompt, _) => {}
    }
    words
}

fn gives_up(text: &str) -> Vec<AgentWord> {
    let text = note::short(text, fails::LONGEST_ERROR);
    vec![AgentWord::Note(LogNote::Agent { text }), AgentWord::Want(Want::Close)]
}

/// Returns whether the error is Codex's word for a session that another process writes.
fn is_busy(error: &RpcError) -> bool {
    let reason = error.data.as_ref().and_then(|data| data.get("reason")?.as_str());
    reason == Some("thread_active_writer")
}

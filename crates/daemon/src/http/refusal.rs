//! Refusals by the core, in words, with what to do about them.

use super::api_error::ApiError;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::Refusal;
use pinfold_core::inbox::MOST_QUEUED;
use pinfold_core::quoted::quoted;

/// A refusal by the core, with words and advice.
pub(crate) fn refusal(name: &str, refusal: Refusal) -> ApiError {
    ApiError::conflict(refusal_body(name, refusal))
}

/// As `refusal`, but the error object.
pub(crate) fn refusal_body(name: &str, refusal: Refusal) -> ErrorBody {
    let (kind, message) = refused(name, refusal);
    let body = ErrorBody::new(kind, message);
    match way_out(name, refusal) {
        Some(hint) => body.hint(hint),
        None => body,
    }
}

/// The kind and text of a refusal.
fn refused(name: &str, refusal: Refusal) -> (ErrorKind, String) {
    match refusal {
        Refusal::Archived => (ErrorKind::Archived, format!("session `{name}` is archived")),
        Refusal::BeingArchived => (ErrorKind::Archived, format!("session `{name}` is being archived")),
        Refusal::BeingStopped => (ErrorKind::Failed, format!("session `{name}` is being stopped")),
        Refusal::Stopped => (ErrorKind::Failed, format!("session `{name}` is stopped")),
        Refusal::Failed => (ErrorKind::Failed, format!("session `{name}` needs attention")),
        Refusal::NotArchived => (ErrorKind::Failed, format!("session `{name}` is not archived")),
        Refusal::Busy => (ErrorKind::Busy, format!("another process holds the lock of session `{name}`")),
        Refusal::GoingDown => (ErrorKind::Unavailable, "the daemon is going down".into()),
        Refusal::ShimMute => {
            (ErrorKind::Busy, format!("the shim of session `{name}` holds its lock and does not answer"))
        }
        Refusal::NoTerminal => (ErrorKind::Failed, format!("session `{name}` has no terminal program")),
        Refusal::RunsOnce => (ErrorKind::Failed, format!("session `{name}` runs once only")),
        Refusal::NoTurn => (ErrorKind::Failed, format!("session `{name}` has no turn under way")),
        Refusal::NoSuchMessage => (ErrorKind::NotFound, "there is no such message".into()),
        Refusal::NoSuchRequest => {
            (ErrorKind::Busy, format!("session `{name}` asks nothing that is still open"))
        }
        Refusal::InboxFull => {
            (ErrorKind::Busy, format!("the inbox of session `{name}` is full: {MOST_QUEUED} messages wait"))
        }
        Refusal::InboxHeavy => {
            let heavy = "its messages have as much text as may wait there";
            (ErrorKind::Busy, format!("the inbox of session `{name}` is full: {heavy}"))
        }
        Refusal::NotAnArgument => {
            let most = "no zero byte and no more than 120 KiB";
            (
                ErrorKind::Usage,
                format!("the agent of `{name}` gets a message as an argument, which has {most}"),
            )
        }
        Refusal::Connected => (ErrorKind::Busy, format!("a client is connected to `{name}`")),
        Refusal::TurnUnderWay => (ErrorKind::Busy, format!("`{name}` has a turn under way")),
        Refusal::MessageQueued => (ErrorKind::Busy, format!("`{name}` has a message queued")),
        Refusal::Own => (ErrorKind::Busy, format!("`{name}` is the session that asks")),
    }
}

/// What helps, if anything does.
fn way_out(name: &str, refusal: Refusal) -> Option<String> {
    let verb = |verb: &str, does: &str| Some(format!("`pinfold {verb} {}` {does}", quoted(name)));
    match refusal {
        Refusal::Archived => verb("restore", "brings it back"),
        Refusal::BeingStopped => verb("start", "starts it again"),
        Refusal::Stopped => verb("start", "starts it"),
        Refusal::Failed => {
            let own = quoted(name);
            Some(format!("`pinfold start {own}` tries again; `pinfold logs {own}` tells more"))
        }
        Refusal::Busy => verb("why", "says who"),
        Refusal::ShimMute => {
            let lock = format!("session:{name}");
            Some(format!("`pinfold unlock {} --kill` ends it", quoted(&lock)))
        }
        Refusal::InboxFull => verb("why", "says what they wait for"),
        Refusal::InboxHeavy => {
            verb("why", "says what they wait for; `inbox_limit` in config.toml is how much may")
        }
        Refusal::NotAnArgument => {
            Some("put it into a file and send its path; an agent that reads standard input gets any with `prompt = \"stdin\"` in its [agents.NAME.exec]".to_owned())
        }
        Refusal::BeingArchived
        | Refusal::NotArchived
        | Refusal::GoingDown
        | Refusal::NoTerminal
        | Refusal::RunsOnce
        | Refusal::NoTurn
        | Refusal::NoSuchMessage
        | Refusal::NoSuchRequest
        | Refusal::Connected
        | Refusal::TurnUnderWay
        | Refusal::MessageQueued
        | Refusal::Own => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_the_session_and_some_say_what_to_do() {
        let hinted = [
            (Refusal::Archived, ErrorKind::Archived, "`pinfold restore my session`"),
            (Refusal::BeingStopped, ErrorKind::Failed, "`pinfold start my session`"),
            (Refusal::Busy, ErrorKind::Busy, "`pinfold why my session`"),
            (Refusal::ShimMute, ErrorKind::Busy, "`pinfold unlock session:my session --kill`"),
            (Refusal::InboxFull, ErrorKind::Busy, "`pinfold why my session`"),
            (Refusal::InboxHeavy, ErrorKind::Busy, "`inbox_limit` in config.toml"),
        ];
        for (refusal, kind, hint) in hinted {
            let body = refusal_body("my session", refusal);
            let said = body.hint.unwrap_or_default().replace('\'', "");
            assert_eq!(body.kind, kind, "{refusal:?}");
            assert!(said.contains(hint) && body.message.contains("`my session`"), "{refusal:?}: {said}");
        }
        let plain = [
            (Refusal::BeingArchived, ErrorKind::Archived),
            (Refusal::NotArchived, ErrorKind::Failed),
            (Refusal::NoTerminal, ErrorKind::Failed),
            (Refusal::RunsOnce, ErrorKind::Failed),
            (Refusal::NoTurn, ErrorKind::Failed),
            (Refusal::Connected, ErrorKind::Busy),
            (Refusal::TurnUnderWay, ErrorKind::Busy),
            (Refusal::MessageQueued, ErrorKind::Busy),
            (Refusal::Own, ErrorKind::Busy),
        ];
        for (refusal, kind) in plain {
            let body = refusal_body("s", refusal);
            assert_eq!((body.kind, body.hint), (kind, None), "{refusal:?}");
            assert!(body.message.contains("`s`"), "{refusal:?}");
        }
        assert_eq!(refusal_body("s", Refusal::GoingDown).kind, ErrorKind::Unavailable);
        assert_eq!(refusal("s", Refusal::NoSuchMessage).status, ErrorKind::NotFound.status());
        assert_eq!(refusal("s", Refusal::NoTurn).status, 409);
    }
}

//! Errors as clients get them: status, text and advice.

use super::*;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    #[serde(default)]
    colour: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn misread_as<T: DeserializeOwned>(text: &str) -> (u16, String) {
    let failure = parse::<T>(text.as_bytes()).err().expect("it cannot be read");
    (failure.status, failure.body.message)
}

#[test]
fn what_is_not_json_is_a_mistake_and_what_is_none_of_the_fields_a_bad_value() {
    assert_eq!(parse::<Wish>(b"{\"colour\": \"red\"}").ok().unwrap().colour.as_deref(), Some("red"));
    let (status, message) = misread_as::<Wish>("{");
    assert!(status == 400 && message.starts_with("the request cannot be read: "), "{status} {message}");
    assert_eq!(
        misread_as::<Wish>("{\"color\": 1}"),
        (422, "there is no field `color`; the nearest one is `colour`".into())
    );
    assert_eq!(misread_as::<Nothing>("{\"x\": 1}"), (422, "there is no field `x`".into()));
    let (status, message) = misread_as::<Wish>("{\"colour\": 1}");
    assert!(status == 422 && message.contains("invalid type"), "{status} {message}");
}

#[test]
fn a_status_says_whose_mistake_it_is() {
    let body = |kind| ErrorBody::new(kind, "m");
    let rows = [
        (Failure::bad_value(body(ErrorKind::Usage)), 422),
        (Failure::bad_value(body(ErrorKind::NotFound)), ErrorKind::NotFound.status()),
        (Failure::conflict(body(ErrorKind::Failed)), 409),
        (Failure::conflict(body(ErrorKind::NotFound)), ErrorKind::NotFound.status()),
        (Failure::too_many(body(ErrorKind::Busy)), 429),
        (Failure::usage("m", 405), 405),
        (Failure::with_status(body(ErrorKind::Failed), 503), 503),
        (Failure::from(WhyNot::Gone), ErrorKind::NotFound.status()),
    ];
    for (failure, status) in rows {
        let kind = failure.body.kind;
        assert_eq!(failure.into_response().status().as_u16(), status, "{kind:?}");
    }
}

#[test]
fn a_body_that_is_too_large_or_breaks_off_is_told_apart() {
    assert_eq!((too_large().status, slow().body.kind), (413, ErrorKind::Timeout));
    assert!(slow().body.message.contains("10 s"));
}

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

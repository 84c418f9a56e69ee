//! Requests that cannot be read: status and text.

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
fn a_body_that_is_too_large_or_breaks_off_is_told_apart() {
    assert_eq!((too_large().status, slow().body.kind), (413, ErrorKind::Timeout));
    assert!(slow().body.message.contains("10 s"));
}

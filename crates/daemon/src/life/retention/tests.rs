//! What is said of what was forgotten.

use super::*;

#[test]
fn what_went_is_told_with_the_reason() {
    let config = |text| crate::define::config::Config::parse(text).unwrap().retention();
    let retention = config("[retention]\nsize = \"64M\"\n");
    let old = Forgotten { events: 3, runs: 2, messages: 1, by_size: false };
    let large = Forgotten { by_size: true, ..old };
    assert_eq!(
        old.why(retention),
        "3 events, 2 runs and 1 messages were forgotten: they were older than [retention] allows"
    );
    assert_eq!(
        large.why(retention),
        "3 events, 2 runs and 1 messages were forgotten: the database was larger than 64 MiB ([retention])"
    );
    assert_eq!(
        Value::from(old.data()),
        serde_json::json!({ "events": 3, "runs": 2, "messages": 1, "reason": "age" })
    );
    assert_eq!(large.data()["reason"], "size");
}

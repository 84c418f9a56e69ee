//! What is reported about pruning, and when.

use super::*;

#[test]
fn what_went_is_told_with_the_reason() {
    let config = |text| crate::define::config::Config::parse(text).unwrap().retention();
    let retention = config("[retention]\nsize = \"64M\"\n");
    let old = Tally { events: 3, runs: 2, messages: 1, by_size: false };
    let large = Tally { by_size: true, ..old };
    assert_eq!(
        why(old, retention),
        "3 events, 2 runs and 1 messages were forgotten: they were older than [retention] allows"
    );
    assert_eq!(
        why(large, retention),
        "3 events, 2 runs and 1 messages were forgotten: the database was larger than 64 MiB ([retention])"
    );
    assert_eq!(
        Value::from(data(old)),
        serde_json::json!({ "events": 3, "runs": 2, "messages": 1, "reason": "age" })
    );
    assert_eq!(data(large)["reason"], "size");
}

#[test]
fn what_went_is_told_at_once_and_then_once_a_day() {
    let (now, tally) = (Wall(1_800_000_000_000), Tally { runs: 1, ..Tally::default() });
    for (told, rows, due) in [
        (None, 1, true),
        (None, 0, false),
        (Some(now.0 - TOLD_EVERY + 1), 1, false),
        (Some(now.0 - TOLD_EVERY), 1, true),
        (Some(now.0 - TOLD_EVERY), 0, false),
        (Some(now.0 + TOLD_EVERY), 1, true),
    ] {
        let tally = if rows == 0 { Tally::default() } else { tally };
        let untold = Untold { tally, told_at: told.map(Wall) };
        assert_eq!(is_due(untold, now), due, "{untold:?}");
    }
}

#[test]
fn what_is_off_has_no_limit() {
    let retention =
        Retention { events: Some(Duration::from_secs(1)), runs: None, messages: None, size: None };
    let now = Wall(10_000);
    assert_eq!(limits(retention, now), SweepLimits { events: Some(Wall(9_000)), ..SweepLimits::default() });
}

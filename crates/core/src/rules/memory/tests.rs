//! Table tests of cases that other programs got wrong.

use super::*;

const LIMIT: u64 = 100 << 20;

fn play(source: ReadingSource, readings: &[Reading]) -> Vec<MemoryCall> {
    let mut watch = MemoryWatch::default();
    readings
        .iter()
        .map(|reading| {
            let (after, call) = judge(watch, *reading, source, LIMIT, 0.8);
            watch = after;
            call
        })
        .collect()
}

fn mib(n: u64) -> Reading {
    Reading::Bytes(n << 20)
}

#[test]
fn one_warning_from_high_to_low_and_an_end_at_the_limit() {
    let readings = [79, 80, 85, 70, 82, 100].map(mib);
    let expected = [
        MemoryCall::Nothing,
        MemoryCall::Warn,
        MemoryCall::Nothing,
        MemoryCall::Nothing,
        MemoryCall::Warn,
        MemoryCall::Drain,
    ];
    assert_eq!(play(ReadingSource::Cgroup, &readings), expected);
}

#[test]
fn a_sum_over_the_limit_is_confirmed_once_before_anything_ends() {
    assert_eq!(play(ReadingSource::Sum, &[100, 101].map(mib)), [MemoryCall::Confirm, MemoryCall::Nothing]);
    let asked = MemoryWatch { confirming: true, ..MemoryWatch::default() };
    assert_eq!(judge(asked, mib(100), ReadingSource::Shares, LIMIT, 0.8).1, MemoryCall::Drain);
    let (after, call) = judge(asked, mib(40), ReadingSource::Shares, LIMIT, 0.8);
    assert_eq!((after.confirming, call), (false, MemoryCall::Nothing), "forked copies drain nobody");
    let (after, call) = judge(asked, Reading::Unknown, ReadingSource::Shares, LIMIT, 0.8);
    assert_eq!((after.confirming, call), (false, MemoryCall::WarnUnreadable), "unconfirmed is not over");
}

#[test]
fn what_cannot_be_read_is_said_once_and_drains_nobody() {
    let unknown = Reading::Unknown;
    let readings = [unknown, unknown, mib(1), unknown];
    let expected =
        [MemoryCall::WarnUnreadable, MemoryCall::Nothing, MemoryCall::Nothing, MemoryCall::WarnUnreadable];
    assert_eq!(play(ReadingSource::Sum, &readings), expected);
    let asked = MemoryWatch { confirming: true, ..MemoryWatch::default() };
    assert!(
        judge(asked, unknown, ReadingSource::Sum, LIMIT, 0.8).0.confirming,
        "the exact reading is still due"
    );
}

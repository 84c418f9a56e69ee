//! The rows that other programs got wrong.

use super::*;

fn status(anon: &str, shmem: &str, resident: &str) -> Reading {
    let mut text = String::from("Name:\tagent (RssAnon: 9 kB)\nState:\tS (sleeping)\n");
    for (name, value) in [("VmRSS", resident), ("RssAnon", anon), ("RssShmem", shmem)] {
        if value != "-" {
            text.push_str(&format!("{name}:\t{value}\n"));
        }
    }
    text.push_str("RssFile:\t  123456 kB\nThreads:\t1\n");
    parse_status(&text)
}

#[test]
fn the_rows_of_the_status_table() {
    let any = "7000000 kB";
    let old = "4096 kB";
    let fallback = Reading::Bytes(4_194_304);
    let rows = [
        ("1024 kB", "0 kB", any, Reading::Bytes(1_048_576)),
        ("0 kB", "512 kB", any, Reading::Bytes(524_288)),
        ("0 kB", "0 kB", any, Reading::Bytes(0)),
        ("-", "256 kB", any, Reading::Bytes(262_144)),
        ("2048 kB", "-", any, Reading::Bytes(2_097_152)),
        ("-", "-", old, fallback),
        ("notanumber kB", "0 kB", old, fallback),
        ("12abc kB", "0 kB", old, fallback),
        ("3 MB", "0 kB", old, fallback),
        ("3", "0 kB", old, fallback),
        ("3 kB ", "0 kB", old, fallback),
        ("3  kB", "0 kB", old, fallback),
        (" kB", "0 kB", old, fallback),
        ("\n1024 kB", "0 kB", old, fallback),
        ("-5 kB", "0 kB", old, fallback),
        ("+5 kB", "0 kB", old, fallback),
        ("123456789012345678901 kB", "0 kB", old, fallback),
        ("18446744073709551615 kB", "0 kB", old, fallback),
        ("18446744073709551615 kB", "1 kB", old, fallback),
        ("5 kB\nRssAnon:\t5 kB", "0 kB", old, fallback),
        ("1 kB", "junk", old, fallback),
        ("junk", "junk", "-", Reading::Unknown),
        ("junk", "junk", "junk", Reading::Unknown),
        ("-", "-", "junk", Reading::Unknown),
        ("-", "-", "18446744073709551615 kB", Reading::Unknown),
    ];
    for (anon, shmem, resident, expected) in rows {
        assert_eq!(status(anon, shmem, resident), expected, "{anon:?} {shmem:?} {resident:?}");
    }
}

#[test]
fn lines_that_are_not_as_the_kernel_writes_them_fall_back() {
    let fallback = Reading::Bytes(4_194_304);
    assert_eq!(parse_status("VmRSS:\t4096 kB\n  RssAnon:\t1 kB\n"), fallback);
    assert_eq!(parse_status("VmRSS:\t4096 kB\nRssAnon:1 kB\n"), fallback);
    assert_eq!(parse_status("RssAnon:\t1024 kB\r\nRssShmem:\t0 kB\r\n"), Reading::Bytes(1_048_576));
    assert_eq!(parse_status("RssAnon:  1024 kB"), Reading::Bytes(1_048_576));
}

#[test]
fn a_zombie_or_kernel_thread_has_no_memory() {
    assert_eq!(parse_status("Name:\tkworker\nState:\tZ (zombie)\nThreads:\t1\n"), Reading::Bytes(0));
    assert_eq!(parse_status(""), Reading::Bytes(0));
}

const LIMIT: u64 = 100 << 20;

fn play(source: Source, readings: &[Reading]) -> Vec<Call> {
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
    let expected = [Call::Nothing, Call::Warn, Call::Nothing, Call::Nothing, Call::Warn, Call::Drain];
    assert_eq!(play(Source::Cgroup, &readings), expected);
}

#[test]
fn a_sum_over_the_limit_is_confirmed_once_before_anything_ends() {
    assert_eq!(play(Source::Sum, &[100, 101].map(mib)), [Call::Confirm, Call::Nothing]);
    let asked = MemoryWatch { confirming: true, ..MemoryWatch::default() };
    assert_eq!(judge(asked, mib(100), Source::Shares, LIMIT, 0.8).1, Call::Drain);
    let (after, call) = judge(asked, mib(40), Source::Shares, LIMIT, 0.8);
    assert_eq!((after.confirming, call), (false, Call::Nothing), "forked copies drain nobody");
    let (after, call) = judge(asked, Reading::Unknown, Source::Shares, LIMIT, 0.8);
    assert_eq!((after.confirming, call), (false, Call::WarnUnreadable), "unconfirmed is not over");
}

#[test]
fn what_cannot_be_read_is_said_once_and_drains_nobody() {
    let unknown = Reading::Unknown;
    let readings = [unknown, unknown, mib(1), unknown];
    let expected = [Call::WarnUnreadable, Call::Nothing, Call::Nothing, Call::WarnUnreadable];
    assert_eq!(play(Source::Sum, &readings), expected);
    let asked = MemoryWatch { confirming: true, ..MemoryWatch::default() };
    assert!(judge(asked, unknown, Source::Sum, LIMIT, 0.8).0.confirming, "the exact reading is still due");
}

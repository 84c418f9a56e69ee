//! The log on its own: what was written is read back, whatever happened in between.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use pinfold_core::ids::RunNumber;
use pinfold_core::time::Wall;
use pinfold_shim::log::{Log, LogEntry, LogReader, Position, Stream, tail};
use pinfold_shim::{LogLimits, Size};
use std::path::{Path, PathBuf};

const SMALL: LogLimits = LogLimits { file_bytes: 1000, files: 3 };

struct Place {
    _temp: tempfile::TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let temp = tempfile::tempdir().unwrap();
    Place { path: temp.path().join("log"), _temp: temp }
}

fn print(log: &mut Log, run: u64, text: &str) -> (Position, Position) {
    log.append(Wall(run as i64 * 1000), RunNumber(run), Stream::Out, text.as_bytes())
}

fn read(path: &Path, from: Position) -> Vec<LogEntry> {
    let mut reader = LogReader::from(path, from);
    std::iter::from_fn(|| reader.entry().unwrap()).collect()
}

fn text(entries: &[LogEntry]) -> String {
    entries.iter().map(|entry| String::from_utf8_lossy(&entry.bytes)).collect()
}

#[test]
fn entries_are_read_back_with_time_run_stream_and_place() {
    let place = place();
    let mut log = Log::open(&place.path, SMALL);
    let (at, next) = print(&mut log, 1, "one");
    log.append(Wall(5), RunNumber(2), Stream::Error, b"two");
    let entries = read(&place.path, Position(0));
    let first = &entries[0];
    assert_eq!(
        (first.position, first.at, first.run, first.stream),
        (at, Wall(1000), RunNumber(1), Stream::Out)
    );
    assert_eq!((entries[1].position, entries[1].stream), (next, Stream::Error));
    assert_eq!(text(&entries), "onetwo");
    assert_eq!(text(&read(&place.path, next)), "two");
}

#[test]
fn a_reader_follows_the_log_over_all_its_files_and_loses_nothing_that_is_kept() {
    let place = place();
    let mut log = Log::open(&place.path, SMALL);
    let mut reader = LogReader::from(&place.path, Position(0));
    let mut seen = String::new();
    let mut all = String::new();
    for number in 0..500 {
        let line = format!("line {number}\n");
        print(&mut log, 1, &line);
        all.push_str(&line);
        if number % 7 == 0 {
            while let Some(entry) = reader.entry().unwrap() {
                assert_eq!(entry.lost, 0);
                seen.push_str(&String::from_utf8_lossy(&entry.bytes));
            }
        }
    }
    while let Some(entry) = reader.entry().unwrap() {
        seen.push_str(&String::from_utf8_lossy(&entry.bytes));
    }
    assert_eq!(seen, all);
    assert_eq!(reader.position(), log.end());
}

#[test]
fn a_reader_that_comes_too_late_is_told_how_much_is_gone() {
    let place = place();
    let mut log = Log::open(&place.path, SMALL);
    for number in 0..500 {
        print(&mut log, 1, &format!("line {number}\n"));
    }
    let entries = read(&place.path, Position(0));
    assert!(entries[0].lost > 0);
    assert!(entries[1..].iter().all(|entry| entry.lost == 0));
    assert!(text(&entries).ends_with("line 499\n"));
    let sizes: u64 = (0..4).map(|age| size(&place.path, age)).sum();
    assert!(sizes <= 3000, "{sizes}");
}

fn size(path: &Path, age: u32) -> u64 {
    let name = if age == 0 { path.to_owned() } else { format!("{}.{age}", path.display()).into() };
    std::fs::metadata(name).map_or(0, |facts| facts.len())
}

#[test]
fn the_next_writer_goes_on_behind_the_last() {
    let place = place();
    let mut all = String::new();
    let mut end = Position(0);
    for run in 1..60 {
        let mut log = Log::open(&place.path, LogLimits { files: 100, ..SMALL });
        assert!(log.end() >= end);
        let line = format!("run {run}\n");
        print(&mut log, run, &line);
        end = log.end();
        all.push_str(&line);
    }
    assert_eq!(text(&read(&place.path, Position(0))), all);
}

#[test]
fn a_record_that_was_torn_by_a_kill_is_cut_off_by_the_next_writer() {
    let place = place();
    let mut log = Log::open(&place.path, SMALL);
    print(&mut log, 1, "whole\n");
    // Longer than what overwrites it: its end must not be taken for a record.
    print(&mut log, 1, &format!("{}\n", "torn ".repeat(40)));
    std::mem::forget(log);
    let bytes = std::fs::read(&place.path).unwrap();
    for cut in (1..=37).chain([150, 200]) {
        std::fs::write(&place.path, &bytes[..bytes.len() - cut]).unwrap();
        assert_eq!(text(&read(&place.path, Position(0))), "whole\n", "{cut}");
        assert_eq!(text(&tail(&place.path, 9, None).unwrap()), "whole\n", "{cut}");
        let mut log = Log::open(&place.path, SMALL);
        print(&mut log, 2, "next\n");
        drop(log);
        assert_eq!(text(&read(&place.path, Position(0))), "whole\nnext\n", "{cut}");
        let whole = std::fs::metadata(&place.path).unwrap().len();
        assert!(whole < bytes.len() as u64 - 37, "what was torn is still there: {whole} bytes");
    }
}

#[test]
fn the_tail_is_found_from_the_end_over_files_and_by_run() {
    let place = place();
    let mut log = Log::open(&place.path, SMALL);
    for number in 0..100 {
        print(&mut log, number % 2 + 1, &format!("line {number}\n"));
    }
    for settled in [false, true] {
        if settled {
            log.settle();
        }
        let last = text(&tail(&place.path, 30, None).unwrap());
        assert!(last.ends_with("line 98\nline 99\n"));
        assert_eq!(last.lines().count(), 31);
        let odd = text(&tail(&place.path, 3, Some(RunNumber(2))).unwrap());
        assert_eq!(odd, "line 93\nline 95\nline 97\nline 99\n");
    }
    assert_eq!(tail(&place.path.join("none"), 3, None).unwrap_or_default(), []);
}

#[test]
fn a_foreign_file_in_place_of_the_log_is_replaced_and_never_read_as_one() {
    let place = place();
    std::fs::write(&place.path, "this is not a log, but long enough to be taken for one").unwrap();
    assert_eq!(read(&place.path, Position(0)), []);
    let mut log = Log::open(&place.path, SMALL);
    print(&mut log, 1, "mine\n");
    assert_eq!(text(&read(&place.path, Position(0))), "mine\n");
}

#[test]
fn a_log_that_cannot_be_opened_counts_what_is_lost_and_says_so_when_it_can() {
    let place = place();
    std::fs::create_dir(&place.path).unwrap();
    let mut log = Log::open(&place.path, SMALL);
    assert_eq!(print(&mut log, 1, "lost").0, log.end());
    assert_eq!(log.lost(), 4);
    std::fs::remove_dir(&place.path).unwrap();
    print(&mut log, 1, "found");
    let entries = read(&place.path, Position(0));
    assert_eq!((entries[0].stream, entries[0].lost), (Stream::Lost, 4));
    assert_eq!(text(&entries), "found");
}

#[test]
fn what_was_printed_on_a_terminal_is_known_with_its_size() {
    let place = place();
    let mut log = Log::open(&place.path, SMALL);
    let sizes = [None, Some(Size::new(24, 80)), Some(Size::new(Size::MOST, Size::MOST)), None];
    for size in sizes {
        log.printed_on(size);
        print(&mut log, 1, "text");
    }
    let read: Vec<Option<Size>> = read(&place.path, Position(0)).iter().map(|entry| entry.terminal).collect();
    assert_eq!(read, sizes);
}

//! The tape is read as it was written, whatever happened to its files: never other bytes, never a position
//! twice.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use pinfold_core::ids::RunNumber;
use pinfold_core::time::Wall;
use pinfold_kernel::checksum::checksum;
use pinfold_shim::SayNumber;
use pinfold_shim::tape::{Position, SegmentLimits, Tape, TapeContent, TapeReader, forget};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Far longer than anything takes, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(240);
const LIMITS: SegmentLimits = SegmentLimits { segment_bytes: 700, kept_bytes: u64::MAX };

/// Pseudo-random numbers that are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// An entry as given to the writer, or by the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    at: i64,
    run: u64,
    what: Owned,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Owned {
    Out(Vec<u8>),
    Error(Vec<u8>),
    Said(u64, String, Vec<u8>),
    Gap(u64),
    End,
}

impl Owned {
    fn borrowed(&self) -> TapeContent<'_> {
        match self {
            Owned::Out(bytes) => TapeContent::Out(bytes),
            Owned::Error(bytes) => TapeContent::Error(bytes),
            Owned::Said(number, label, bytes) => {
                TapeContent::Said { number: SayNumber(*number), label, bytes }
            }
            Owned::Gap(lost) => TapeContent::Gap(*lost),
            Owned::End => TapeContent::End,
        }
    }

    fn of(what: TapeContent<'_>) -> Self {
        match what {
            TapeContent::Out(bytes) => Owned::Out(bytes.to_vec()),
            TapeContent::Error(bytes) => Owned::Error(bytes.to_vec()),
            TapeContent::Said { number, label, bytes } => Owned::Said(number.0, label.into(), bytes.to_vec()),
            TapeContent::Gap(lost) => Owned::Gap(lost),
            TapeContent::End => Owned::End,
        }
    }
}

fn random_entry(random: &mut Random) -> Kept {
    let longest = [3, 40, 300, 2000][random.below(4) as usize];
    let length = random.below(longest);
    let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
    let what = match random.below(9) {
        0..4 => Owned::Out(bytes),
        4 | 5 => Owned::Error(bytes),
        6 => Owned::Said(random.below(100), format!("prompt {}", random.below(1000)), bytes),
        7 => Owned::Gap(random.below(1 << 40)),
        _ => Owned::End,
    };
    Kept { at: random.below(1 << 50).cast_signed() - 5, run: random.below(9), what }
}

fn append(tape: &mut Tape, entry: &Kept) {
    tape.append(Wall(entry.at), RunNumber(entry.run), entry.what.borrowed()).unwrap();
}

/// Returns what a reader finds: where each entry is, where the next one can be, what is missing before it,
/// and the entry.
fn rest(reader: &mut TapeReader) -> Vec<(u64, u64, u64, Kept)> {
    let mut found = Vec::new();
    while let Some(entry) = reader.entry().unwrap() {
        let kept = Kept { at: entry.at.0, run: entry.run.0, what: Owned::of(entry.what) };
        found.push((entry.position.0, entry.next.0, entry.lost, kept));
    }
    found
}

fn all(folder: &Path) -> Vec<(u64, u64, u64, Kept)> {
    rest(&mut TapeReader::from(folder, Position(0)))
}

/// Writes a tape of random entries in many segments; returns them, and where it ends.
fn written(folder: &Path, seed: u64, count: usize) -> (Vec<Kept>, Position) {
    let mut random = Random(seed);
    let entries: Vec<Kept> = (0..count).map(|_| random_entry(&mut random)).collect();
    let mut tape = Tape::open(folder, LIMITS).unwrap();
    entries.iter().for_each(|entry| append(&mut tape, entry));
    (entries, tape.end())
}

fn segments(folder: &Path) -> Vec<(u64, PathBuf)> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> =
        files.map(|path| (path.file_name().unwrap().to_str().unwrap().parse().unwrap(), path)).collect();
    all.sort();
    all
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for (_, path) in segments(from) {
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Does what a power failure can do: everything after a position is gone.
fn cut(folder: &Path, at: u64) {
    for (base, path) in segments(folder) {
        if base >= at {
            std::fs::remove_file(path).unwrap();
        } else if base + std::fs::metadata(&path).unwrap().len() > at {
            std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(at - base).unwrap();
        }
    }
}

#[test]
fn what_was_written_is_read_from_every_entry_on() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("tape");
    let (entries, end) = written(&folder, 1, 90);
    let found = all(&folder);
    assert!(segments(&folder).len() > 10);
    assert_eq!(found.iter().map(|(.., entry)| entry.clone()).collect::<Vec<_>>(), entries);
    assert!(found.iter().all(|(_, _, lost, _)| *lost == 0));
    assert_eq!(found.last().unwrap().1, end.0);
    for (number, (position, next, ..)) in found.iter().enumerate() {
        assert_eq!(rest(&mut TapeReader::from(&folder, Position(*position))), found[number..]);
        assert_eq!(rest(&mut TapeReader::from(&folder, Position(*next))), found[number + 1..]);
        for inside in [*position, position + 1, (position + next) / 2, next - 1] {
            let mut reader = TapeReader::containing(&folder, Position(inside)).unwrap();
            assert_eq!(rest(&mut reader), found[number..], "{inside} in {position}..{next}");
        }
    }
    let mut reader = TapeReader::from(&folder, Position(0));
    let middle = Position(found[60].0);
    while reader.entry_before(middle).unwrap().is_some() {}
    assert!(reader.position() <= middle && reader.position().0 >= found[59].1);
}

#[test]
fn a_tape_that_was_opened_again_goes_on_where_it_ended() {
    let temp = tempfile::tempdir().unwrap();
    let mut random = Random(2);
    let entries: Vec<Kept> = (0..60).map(|_| random_entry(&mut random)).collect();
    for entry in &entries {
        append(&mut Tape::open(temp.path(), LIMITS).unwrap(), entry);
    }
    assert_eq!(all(temp.path()).into_iter().map(|found| found.3).collect::<Vec<_>>(), entries);
}

#[test]
fn a_tape_cut_at_any_byte_is_read_up_to_there_and_goes_on_above_what_was_stored() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("tape");
    let (_, end) = written(&folder, 3, 11);
    let found = all(&folder);
    assert!(segments(&folder).len() > 3);
    let extra = Kept { at: 1, run: 99, what: Owned::Out(b"of the next run".to_vec()) };
    for at in 0..end.0 {
        let damaged = temp.path().join(at.to_string());
        copy(&folder, &damaged);
        cut(&damaged, at);
        let whole = found.iter().take_while(|(_, next, ..)| *next <= at).count();
        assert_eq!(all(&damaged), found[..whole], "cut at {at}");
        let mut tape = Tape::open(&damaged, LIMITS).unwrap();
        // A segment of which only the head was begun gets one again.
        assert!(tape.end().0 <= at + 32, "cut at {at}: {:?}", tape.end());
        // Half of the time the daemon had stored how far it had come.
        let floor = if at % 2 == 0 { end } else { Position(0) };
        tape.go_on_from(floor).unwrap();
        append(&mut tape, &extra);
        drop(tape);
        let after = all(&damaged);
        assert_eq!(after[..whole], found[..whole], "cut at {at}");
        let [(position, _, _, entry)] = &after[whole..] else { panic!("cut at {at}: {after:?}") };
        assert_eq!(entry, &extra);
        assert!(*position >= floor.0, "cut at {at}");
        // A reader that had read up to the end finds what came since, and nothing else.
        if floor == end {
            assert_eq!(rest(&mut TapeReader::from(&damaged, end)).len(), 1, "cut at {at}");
        }
        std::fs::remove_dir_all(&damaged).unwrap();
    }
}

#[test]
fn damage_costs_the_rest_of_its_segment_and_is_told() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("tape");
    let (_, end) = written(&folder, 4, 60);
    let found = all(&folder);
    let mut random = Random(5);
    for round in 0..400 {
        let files = segments(&folder);
        let (base, path) = &files[random.below(files.len() as u64) as usize];
        let mut bytes = std::fs::read(path).unwrap();
        let whole = bytes.clone();
        let at = random.below(bytes.len() as u64);
        bytes[at as usize] ^= 1 << random.below(8);
        std::fs::write(path, &bytes).unwrap();
        let read = all(&folder);
        let broken = base + at;
        let before = found.iter().take_while(|(_, next, ..)| *next <= broken.max(base + 32)).count();
        // A damaged head hides its segment, but nothing before it.
        let before = if at < 32 { found.iter().take_while(|found| found.0 < *base).count() } else { before };
        assert_eq!(read[..before], found[..before], "round {round}: {broken}");
        let following = files.iter().find(|(other, _)| other > base).map_or(end.0, |(other, _)| *other);
        let behind: Vec<_> = found.iter().filter(|found| found.0 >= following).collect();
        assert_eq!(read.len(), before + behind.len(), "round {round}: {broken}");
        for (read, found) in read[before..].iter().zip(&behind) {
            assert_eq!((read.0, read.1, &read.3), (found.0, found.1, &found.3), "round {round}");
        }
        if let Some(first) = read.get(before) {
            assert!(first.2 > 0, "round {round}: what is missing is told");
        }
        std::fs::write(path, whole).unwrap();
    }
}

#[test]
fn an_entry_is_given_when_its_last_byte_is_there() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("tape");
    let mut random = Random(6);
    let mut tape = Tape::open(&folder, SegmentLimits::default()).unwrap();
    (0..30).for_each(|_| append(&mut tape, &random_entry(&mut random)));
    let found = all(&folder);
    let whole = std::fs::read(&segments(&folder)[0].1).unwrap();
    let slow = temp.path().join("slow");
    std::fs::create_dir(&slow).unwrap();
    let path = slow.join(segments(&folder)[0].1.file_name().unwrap());
    let mut reader = TapeReader::from(&slow, Position(0));
    let mut given = Vec::new();
    for length in 0..=whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        given.extend(rest(&mut reader));
        assert_eq!(given.len(), found.iter().take_while(|found| found.1 <= length as u64).count());
    }
    assert_eq!(given, found);
}

#[test]
fn a_reader_keeps_up_with_a_writer_that_begins_and_drops_segments_meanwhile() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("tape");
    let mut tape = Tape::open(&folder, SegmentLimits { segment_bytes: 2000, kept_bytes: 0 }).unwrap();
    let mut random = Random(7);
    let entries: Vec<Kept> = (0..5000).map(|_| random_entry(&mut random)).collect();
    let heard = AtomicU64::new(0);
    let until = Instant::now() + PATIENCE;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for entry in &entries {
                append(&mut tape, entry);
                tape.heard(Position(heard.load(Ordering::Acquire)));
            }
        });
        let mut reader = TapeReader::from(&folder, Position(0));
        let mut last = Position(0);
        for (number, entry) in entries.iter().enumerate() {
            let found = loop {
                if let Some(found) = reader.entry().unwrap() {
                    break found;
                }
                assert!(Instant::now() < until, "entry {number} did not come");
                std::thread::yield_now();
            };
            assert_eq!((found.lost, &Owned::of(found.what)), (0, &entry.what), "entry {number}");
            assert!(found.position >= last, "entry {number}");
            last = found.next;
            heard.store(last.0, Ordering::Release);
        }
    });
    tape.heard(tape.end());
    assert_eq!(segments(&folder).len(), 1, "what was heard went");
}

#[test]
fn what_was_not_heard_stays_and_of_the_rest_the_last_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    let mut tape = Tape::open(temp.path(), SegmentLimits { segment_bytes: 1000, kept_bytes: 5000 }).unwrap();
    let entry = Kept { at: 0, run: 1, what: Owned::Out(vec![b'x'; 400]) };
    (0..100).for_each(|_| append(&mut tape, &entry));
    assert_eq!((tape.first(), tape.unheard()), (Position(0), tape.end().0));
    assert_eq!(all(temp.path()).len(), 100);
    let half = Position(tape.end().0 / 2);
    tape.heard(half);
    assert!(tape.first() < half && tape.first().0 + 7000 > half.0, "{:?} of {half:?}", tape.first());
    assert_eq!(segments(temp.path())[0].0, tape.first().0);
    // A reader that had not come that far is told what it missed.
    let missed = all(temp.path())[0].2;
    assert_eq!(missed, tape.first().0);
    tape.heard(Position(7));
    assert_eq!(tape.heard_to(), half, "what was heard stays heard");
    tape.heard(Position(u64::MAX));
    assert_eq!((tape.heard_to(), tape.unheard()), (tape.end(), 0));
    let size: u64 = segments(temp.path()).iter().map(|(_, path)| path.metadata().unwrap().len()).sum();
    assert!(size <= 6000, "{size}");
}

#[test]
fn segments_that_were_heard_and_are_old_can_be_forgotten_but_for_the_last() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("tape");
    let (_, end) = written(&folder, 7, 60);
    let bases: Vec<u64> = segments(&folder).into_iter().map(|(base, _)| base).collect();
    assert!(bases.len() > 5, "{bases:?}");
    let (past, future) = (Wall(1), Wall(i64::MAX));
    assert_eq!(forget(&folder, end, past).unwrap(), 0, "none is that old");
    assert_eq!(forget(&folder, Position(bases[2] + 1), future).unwrap(), 2, "what was not heard stays");
    assert_eq!(all(&folder)[0].0, bases[2] + 32);
    assert_eq!(forget(&folder, end, future).unwrap(), bases.len() - 3);
    assert_eq!(segments(&folder).len(), 1);
    assert_eq!(Tape::open(&folder, LIMITS).unwrap().end(), end, "it goes on where it was");
    assert_eq!(forget(&place.path().join("none"), end, future).unwrap(), 0);
}

#[test]
fn what_could_not_be_written_is_said_before_the_next_entry() {
    let temp = tempfile::tempdir().unwrap();
    let mut tape = Tape::open(temp.path(), LIMITS).unwrap();
    tape.lose(RunNumber(1), 5);
    tape.lose(RunNumber(1), 6);
    append(&mut tape, &Kept { at: 3, run: 2, what: Owned::End });
    let found: Vec<_> = all(temp.path()).into_iter().map(|found| (found.3.run, found.3.what)).collect();
    assert_eq!(found, [(1, Owned::Gap(11)), (2, Owned::End)]);
    assert_eq!(tape.lost(), 0);
}

/// Returns an entry as the tape's design page describes it.
fn by_hand(kind: u8, run: u64, number: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = (content.len() as u32).to_le_bytes().to_vec();
    bytes.extend([kind, 0, 0, 0]);
    bytes.extend(77_i64.to_le_bytes());
    bytes.extend(run.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    let sum = checksum(&[&bytes, content].concat());
    bytes.extend(sum.to_le_bytes());
    bytes.extend(content);
    bytes
}

#[test]
fn the_layout_is_the_one_that_is_described_and_later_kinds_are_passed_over() {
    let temp = tempfile::tempdir().unwrap();
    let mut head = b"PFTAPE\0\x01".to_vec();
    head.extend(4096_u64.to_le_bytes());
    head.extend([0; 8]);
    head.extend(checksum(&head).to_le_bytes());
    let said = by_hand(3, 5, 8, b"prompt 1 2\0{}\n");
    let bytes = [head, by_hand(200, 5, 0, b"later"), by_hand(1, 5, 0, b"out"), said].concat();
    let path = temp.path().join("00000000000000004096");
    std::fs::write(&path, &bytes).unwrap();
    let found: Vec<_> = all(temp.path()).into_iter().map(|found| (found.0, found.3.what)).collect();
    let first = 4096 + 32 + 45;
    let said = Owned::Said(8, "prompt 1 2".into(), b"{}\n".to_vec());
    assert_eq!(found, [(first, Owned::Out(b"out".to_vec())), (first + 43, said.clone())]);
    // The writer writes the same.
    let mut tape = Tape::open(temp.path(), SegmentLimits::default()).unwrap();
    append(&mut tape, &Kept { at: 77, run: 5, what: said });
    let again = by_hand(3, 5, 8, b"prompt 1 2\0{}\n");
    assert_eq!(std::fs::read(&path).unwrap(), [bytes, again].concat());
}

#[test]
fn a_segment_that_was_only_begun_is_begun_again() {
    let temp = tempfile::tempdir().unwrap();
    let (entries, end) = written(temp.path(), 8, 20);
    std::fs::write(temp.path().join(format!("{:020}", end.0)), b"PFTAPE").unwrap();
    assert_eq!(all(temp.path()).len(), entries.len());
    let mut tape = Tape::open(temp.path(), LIMITS).unwrap();
    append(&mut tape, &entries[0]);
    assert_eq!(all(temp.path()).len(), entries.len() + 1);
}

//! Tapes of runs, as the loop reads them: a stretch at a time. What the shim has just written is still in the
//! kernel's memory and is read at once; everything else is read on a thread that does nothing else.

use super::Then;
use pinfold_agents::{EntryKind, Label};
use pinfold_core::{RunNumber, Wall};
use pinfold_shim::tape::{Position, TapeContent as Kind, TapeEntry, TapeReader};
use pinfold_store::SessionId;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::warn;

/// How much output is read at once: the loop has other tapes to hear.
const STRETCH: usize = 256 << 10;
/// How many entries are read at once, however short.
const MOST_ENTRIES: usize = 4096;
/// One in this many of the process's descriptors is for open tapes: a tape that is not kept open is opened
/// again for every line.
const SHARE: u64 = 4;
const FEWEST_OPEN: usize = 64;
const MOST_OPEN: usize = 4096;

/// Reads tapes.
pub(crate) trait Tapes {
    /// Reads what a tape has from a position on. Results come in the order of the calls.
    fn read(&self, wanted: TapeStretch, then: Then<Passage>);

    /// A tape is not read any more for now.
    fn forget(&self, id: SessionId);
}

/// The part of a tape to read.
pub(crate) struct TapeStretch {
    pub(crate) id: SessionId,
    pub(crate) folder: PathBuf,
    /// The run: bytes of other runs are skipped.
    pub(crate) run: RunNumber,
    pub(crate) from: u64,
    /// The end of the tape when the shim last reported it, if no more is wanted: nothing is looked for after
    /// it.
    pub(crate) to: Option<u64>,
}

/// A part of a tape.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    pub(crate) entries: Vec<Taped>,
    /// Where reading continues.
    pub(crate) next: u64,
    /// Whether there may be more already.
    pub(crate) more: bool,
    /// Why it cannot be read.
    pub(crate) problem: Option<Errno>,
}

/// An entry of a tape, in memory.
#[derive(Debug, Clone)]
pub(crate) struct Taped {
    pub(crate) position: u64,
    pub(crate) end: u64,
    pub(crate) run: RunNumber,
    pub(crate) at: Wall,
    pub(crate) what: EntryKind,
    pub(crate) bytes: Vec<u8>,
    /// How many bytes of the tape are missing before it.
    pub(crate) lost: u64,
}

impl Taped {
    /// The entry as a fold takes it.
    pub(crate) fn entry(&self) -> pinfold_agents::FoldEntry<'_> {
        pinfold_agents::FoldEntry {
            position: self.position,
            end: self.end,
            run: self.run,
            at: self.at,
            what: self.what.clone(),
            bytes: &self.bytes,
        }
    }

    fn of(entry: &TapeEntry<'_>, run: RunNumber) -> Taped {
        let (what, bytes): (EntryKind, &[u8]) = match entry.what {
            Kind::Out(bytes) => (EntryKind::Out, bytes),
            Kind::Error(bytes) => (EntryKind::Err, bytes),
            Kind::Said { number, label, .. } => {
                (EntryKind::Said { number: number.0, label: Label::from_text(label.as_bytes()) }, &[])
            }
            Kind::Gap(lost) => (EntryKind::Gap { lost }, &[]),
            Kind::End => (EntryKind::End, &[]),
        };
        let bytes = if entry.run == run { bytes.to_vec() } else { Vec::new() };
        let (position, end) = (entry.position.0, entry.next.0);
        Taped { position, end, run: entry.run, at: entry.at, what, bytes, lost: entry.lost }
    }
}

/// Tapes on this machine's disk.
#[derive(Default)]
pub(crate) struct DiskTapes {
    open: Arc<Mutex<Open>>,
    /// The thread that reads; started when there is something to read.
    orders: Mutex<Option<Sender<Order>>>,
}

/// Tapes that are being read.
type Open = BTreeMap<SessionId, TapeReader>;

enum Order {
    Read(TapeStretch, Then<Passage>),
    Forget(SessionId),
}

impl DiskTapes {
    fn send(&self, order: Order) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if orders.is_none() {
            let (sender, receiver) = channel();
            match begin(receiver, Arc::clone(&self.open)) {
                Ok(()) => *orders = Some(sender),
                Err(error) => warn!("tapes cannot be read: {error}"),
            }
        }
        match (&*orders, order) {
            (Some(orders), order) => _ = orders.send(order),
            // The waiting caller is told that nothing can be read; the next order tries again.
            (None, Order::Read(wanted, then)) => {
                then(Passage { next: wanted.from, problem: Some(Errno::AGAIN), ..Passage::default() });
            }
            (None, Order::Forget(_)) => {}
        }
    }

    /// Reads what the shim has reported if that needs neither a disk nor the reading thread.
    fn read_from_memory(&self, wanted: &TapeStretch) -> Option<Passage> {
        let to = Position(wanted.to?);
        let mut open = self.open.try_lock().ok()?;
        let reader = open.get_mut(&wanted.id).filter(|reader| reader.position().0 == wanted.from)?;
        reader.fetch(to).then(|| stretch(reader, wanted.run, to))
    }
}

impl Tapes for DiskTapes {
    fn read(&self, wanted: TapeStretch, then: Then<Passage>) {
        match self.read_from_memory(&wanted) {
            Some(passage) => then(passage),
            None => self.send(Order::Read(wanted, then)),
        }
    }

    fn forget(&self, id: SessionId) {
        if self.orders.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.send(Order::Forget(id));
        }
    }
}

fn begin(orders: Receiver<Order>, open: Arc<Mutex<Open>>) -> io::Result<()> {
    let read = move || {
        let most = most_open();
        for order in orders {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            match order {
                Order::Read(wanted, then) => {
                    let passage = read(&mut open, most, &wanted);
                    drop(open);
                    then(passage);
                }
                Order::Forget(id) => _ = open.remove(&id),
            }
        }
    };
    std::thread::Builder::new().name("tapes".into()).spawn(read).map(drop)
}

/// How many tapes are kept open.
fn most_open() -> usize {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let share = descriptors.map_or(usize::MAX, |most| usize::try_from(most / SHARE).unwrap_or(usize::MAX));
    share.clamp(FEWEST_OPEN, MOST_OPEN)
}

fn read(open: &mut Open, most: usize, wanted: &TapeStretch) -> Passage {
    if open.len() >= most && !open.contains_key(&wanted.id) {
        open.clear();
    }
    let anew = || TapeReader::from(&wanted.folder, Position(wanted.from));
    let reader = open.entry(wanted.id).or_insert_with(anew);
    if reader.position().0 != wanted.from {
        *reader = anew();
    }
    let passage = stretch(reader, wanted.run, Position(wanted.to.unwrap_or(u64::MAX)));
    if passage.problem.is_some() {
        open.remove(&wanted.id);
    }
    passage
}

fn stretch(reader: &mut TapeReader, run: RunNumber, to: Position) -> Passage {
    let (mut entries, mut bytes) = (Vec::new(), 0);
    let (more, problem) = loop {
        match reader.entry_before(to) {
            Ok(Some(entry)) => {
                let entry = Taped::of(&entry, run);
                bytes += entry.bytes.len();
                entries.push(entry);
            }
            Ok(None) => break (false, None),
            Err(errno) => break (false, Some(errno)),
        }
        if bytes >= STRETCH || entries.len() >= MOST_ENTRIES {
            break (true, None);
        }
    };
    Passage { entries, next: reader.position().0, more, problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_shim::tape::{SegmentLimits, Tape};
    use pinfold_store::Ulid;
    use std::sync::mpsc;

    const RUN: RunNumber = RunNumber(2);

    #[test]
    fn a_tape_is_read_in_stretches_and_the_bytes_of_other_runs_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tape");
        let mut tape = Tape::open(&path, SegmentLimits::default()).unwrap();
        tape.append(Wall(1), RunNumber(1), Kind::Out(b"old")).unwrap();
        for _ in 0..10 {
            tape.append(Wall(2), RUN, Kind::Out(&[b'x'; 60_000])).unwrap();
        }
        tape.append(Wall(3), RUN, Kind::End).unwrap();
        let (tapes, id) = (DiskTapes::default(), SessionId(Ulid::new(1, 1)));
        let (told, hears) = mpsc::channel();
        let (mut from, mut all) = (0, Vec::new());
        loop {
            let (wanted, told) =
                (TapeStretch { id, folder: path.clone(), run: RUN, from, to: None }, told.clone());
            tapes.read(wanted, Box::new(move |passage| told.send(passage).unwrap()));
            let passage = hears.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
            assert!(passage.entries.iter().map(|entry| entry.bytes.len()).sum::<usize>() < STRETCH + 60_001);
            from = passage.next;
            all.extend(passage.entries);
            if !passage.more {
                break;
            }
        }
        tapes.forget(id);
        assert_eq!((all.len(), from), (12, tape.end().0));
        assert_eq!((all[0].bytes.len(), all[1].bytes.len(), &all[11].what), (0, 60_000, &EntryKind::End));
    }

    #[test]
    fn what_is_behind_the_end_that_was_told_is_read_when_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tape");
        let mut tape = Tape::open(&path, SegmentLimits::default()).unwrap();
        tape.append(Wall(1), RUN, Kind::Out(b"first")).unwrap();
        let told = tape.end().0;
        tape.append(Wall(1), RUN, Kind::Out(b"second")).unwrap();
        let (id, mut open) = (SessionId(Ulid::new(1, 1)), BTreeMap::new());
        let mut lines = |from, to| {
            let wanted = TapeStretch { id, folder: path.clone(), run: RUN, from, to };
            let Passage { entries, next, more, problem } = read(&mut open, 1, &wanted);
            assert_eq!((more, problem), (false, None));
            (entries.into_iter().map(|entry| entry.bytes).collect::<Vec<_>>(), next)
        };
        assert_eq!(lines(0, Some(told)), (vec![b"first".to_vec()], told));
        assert_eq!(lines(told, None), (vec![b"second".to_vec()], tape.end().0));
    }

    /// Whether this file system tells what it has in memory; not all of them do.
    fn knows_its_memory(folder: &std::path::Path) -> bool {
        let path = folder.join("probe");
        std::fs::write(&path, "x").unwrap();
        let (file, mut byte) = (std::fs::File::open(&path).unwrap(), [0]);
        let mut pieces = [io::IoSliceMut::new(&mut byte)];
        rustix::io::preadv2(&file, &mut pieces, 0, rustix::io::ReadWriteFlags::NOWAIT) == Ok(1)
    }

    #[test]
    fn lines_just_written_are_read_at_once_and_each_of_them_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tape");
        let limits = SegmentLimits { segment_bytes: 4096, ..SegmentLimits::default() };
        let mut tape = Tape::open(&path, limits).unwrap();
        let (tapes, id) = (DiskTapes::default(), SessionId(Ulid::new(1, 1)));
        let (told, hears) = mpsc::channel();
        let (mut from, mut all, mut at_once) = (0, Vec::new(), 0);
        for number in 0..200 {
            tape.append(Wall(1), RUN, Kind::Out(format!("line {number}").as_bytes())).unwrap();
            let (to, told) = (Some(tape.end().0), told.clone());
            let wanted = TapeStretch { id, folder: path.clone(), run: RUN, from, to };
            tapes.read(wanted, Box::new(move |passage| told.send(passage).unwrap()));
            let now = hears.try_recv();
            at_once += usize::from(now.is_ok());
            let passage = now.or_else(|_| hears.recv_timeout(std::time::Duration::from_secs(60))).unwrap();
            from = passage.next;
            all.extend(passage.entries.into_iter().map(|entry| String::from_utf8(entry.bytes).unwrap()));
        }
        let lines: Vec<String> = (0..200).map(|number| format!("line {number}")).collect();
        assert_eq!(all, lines);
        // The first read of each segment opens it on the thread.
        assert!(at_once >= 150 || !knows_its_memory(folder.path()), "only {at_once} at once");
    }
}

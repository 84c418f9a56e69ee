//! Runs with a tape: what is printed and what is said, in order; when the agent waits, and what the daemon is
//! told.

use crate::printing::SmallDisk;
use crate::rights::needs;
use crate::world::{Daemon, PATIENCE, World, shell, wait_until, welcome};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::tape::{Position, TapeContent, TapeReader};
use pinfold_shim::{
    Command, Flow, Keeping, Label, Report, SaidUpTo, Say, SayNumber, SayRefused, Start, TapeLimits,
    TapeReport,
};
use std::path::Path;
use std::time::{Duration, Instant};

const RUN: RunNumber = RunNumber(1);
/// Answers each line with a line and its number.
const ANSWERS: &str = "n=0; while read -r line; do n=$((n+1)); echo \"$n $line\"; done; echo end";

/// Returns how to start a shell command with a tape.
pub(crate) fn taped(run: u64, unheard: u64, script: &str) -> Start {
    let tape = Some(TapeLimits { unheard, floor: Position(0) });
    Start { tape, ..shell(run, script) }
}

pub(crate) fn word(number: u64, text: &str) -> Say {
    let label = Label::new(format!("prompt {number} 1")).unwrap();
    let bytes = text.as_bytes().to_vec();
    Say { run: RUN, number: SayNumber(number), label, bytes, heard: None, close: false }
}

pub(crate) fn say(daemon: &mut Daemon, say: Say) {
    daemon.send(&Command::Say(Box::new(say)));
}

/// The contents of a tape: output, input, gaps, and whether its end is there.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) out: Vec<u8>,
    pub(crate) error: Vec<u8>,
    pub(crate) said: Vec<(u64, String)>,
    pub(crate) gap: u64,
    pub(crate) ends: usize,
    pub(crate) end: Position,
}

impl Found {
    pub(crate) fn on(folder: &Path, of: RunNumber) -> Self {
        let mut found = Self::default();
        let mut reader = TapeReader::from(folder, Position(0));
        while let Some(entry) = reader.entry().unwrap() {
            assert_eq!(entry.lost, 0);
            match entry.what {
                _ if entry.run != of => {}
                TapeContent::Out(bytes) => found.out.extend_from_slice(bytes),
                TapeContent::Error(bytes) => found.error.extend_from_slice(bytes),
                TapeContent::Said { number, label, .. } => found.said.push((number.0, label.to_owned())),
                TapeContent::Gap(lost) => found.gap += lost,
                TapeContent::End => found.ends += 1,
            }
        }
        found.end = reader.position();
        found
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }
}

impl World {
    pub(crate) fn tape(&self, session: &str) -> Found {
        Found::on(&self.opening(session).tape.unwrap(), RUN)
    }
}

fn said(daemon: &mut Daemon) -> SaidUpTo {
    daemon.expect("Said", |report| match report {
        Report::Tape(TapeReport::Said { said, .. }) => Some(*said),
        Report::Tape(TapeReport::Refused { why, .. }) => panic!("{why:?}"),
        _ => None,
    })
}

fn refused(daemon: &mut Daemon) -> SayRefused {
    daemon.expect("a refusal", |report| match report {
        Report::Tape(TapeReport::Refused { why, .. }) => Some(*why),
        _ => None,
    })
}

fn flow(daemon: &mut Daemon, wanted: fn(Flow) -> bool) -> Flow {
    daemon.expect("the flow", |report| match report {
        Report::Tape(TapeReport::State { flow, .. }) => Some(*flow).filter(|flow| wanted(*flow)),
        _ => None,
    })
}

fn up_to(said: u64, written: u64) -> SaidUpTo {
    SaidUpTo { said: SayNumber(said), written: SayNumber(written) }
}

#[test]
fn what_is_printed_and_said_is_on_the_tape_in_order_and_not_in_the_log() {
    let world = World::new();
    let mut daemon = world.shim("api");
    assert!(daemon.welcome.can.tape && daemon.welcome.can.hold && daemon.welcome.can.guest);
    daemon.start(taped(1, 1 << 20, &format!("echo hello; echo oops >&2; {ANSWERS}")));
    say(&mut daemon, word(1, "one\n"));
    assert_eq!(said(&mut daemon), up_to(1, 1));
    wait_until("it has answered", || world.tape("api").text().contains("1 one"));
    say(&mut daemon, Say { close: true, ..word(2, "two\n") });
    let exited = daemon.exited();
    let found = world.tape("api");
    assert_eq!(found.text(), "hello\n1 one\n2 two\nend\n");
    assert_eq!(found.error, b"oops\n");
    assert_eq!(found.said, [(1, "prompt 1 1".into()), (2, "prompt 2 1".into())]);
    assert_eq!((found.gap, found.ends), (0, 1));
    let end = exited.tape.unwrap();
    assert_eq!((end.end, end.said), (found.end, up_to(2, 2)));
    assert_eq!(world.records("api"), [exited]);
    assert!(daemon.passed.iter().any(|report| matches!(report, Report::Tape(TapeReport::Grown { .. }))));
    assert!(!daemon.passed.iter().any(|report| matches!(report, Report::Output(_))));
    assert_eq!(world.log("api", pinfold_shim::log::Stream::Out), b"");
    let folder = world.opening("api").tape.unwrap();
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_second_run_goes_on_behind_the_first_and_above_what_is_stored() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(taped(1, 1 << 20, "echo one"));
    let first = daemon.exited().tape.unwrap().end;
    daemon.start(taped(2, 1 << 20, "echo two"));
    let second = daemon.exited().tape.unwrap();
    assert!(second.end > first && second.said == up_to(0, 0));
    let floor = Position(second.end.0 + 12_345);
    let tape = Some(TapeLimits { unheard: 1 << 20, floor });
    daemon.start(Start { tape, ..taped(3, 0, "echo three") });
    assert!(daemon.exited().tape.unwrap().end > floor);
    let folder = world.opening("api").tape.unwrap();
    let mut reader = TapeReader::from(&folder, floor);
    let entry = reader.entry().unwrap().unwrap();
    assert_eq!((entry.run, entry.what), (RunNumber(3), TapeContent::Out(b"three\n")));
    // A run without a tape writes to the log, as always.
    daemon.start(shell(4, "echo four"));
    assert_eq!(daemon.exited().tape, None);
    assert_eq!(world.log("api", pinfold_shim::log::Stream::Out), b"four\n");
}

#[test]
fn a_number_that_is_not_the_next_writes_nothing_and_is_answered_with_what_was_said() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(taped(1, 1 << 20, ANSWERS));
    for number in [2, 1, 1, 7, 0, 2, 1, 2, 3] {
        say(&mut daemon, word(number, &format!("word {number}\n")));
    }
    let answers: Vec<u64> = (0..9).map(|_| said(&mut daemon).said.0).collect();
    assert_eq!(answers, [0, 1, 1, 1, 1, 2, 2, 2, 3]);
    daemon.send(&Command::CloseInput { run: RUN });
    daemon.exited();
    assert_eq!(world.tape("api").text(), "1 word 1\n2 word 2\n3 word 3\nend\n");
    assert_eq!(world.tape("api").said.len(), 3);
    // A word for a run that has ended is answered with its end.
    say(&mut daemon, word(4, "late\n"));
    assert_eq!(daemon.exited().run, RUN);
}

#[test]
fn each_word_reaches_the_agent_once_whatever_daemons_come_and_go() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(taped(1, 1 << 20, ANSWERS));
    daemon.started();
    for number in 1..=30 {
        say(&mut daemon, word(number, &format!("w{number}\n")));
        if number % 3 == 0 {
            // The daemon dies before it has heard anything, and the next one repeats the last input.
            daemon.link = world.connect("api", 1 + number);
            let seen = welcome(&mut daemon.link);
            let known = seen.tape.unwrap().said.said.0;
            assert!(known <= number, "{known} of {number}");
            (known..=number).for_each(|again| say(&mut daemon, word(again, &format!("w{again}\n"))));
        }
    }
    say(&mut daemon, Say { close: true, ..word(31, "") });
    assert_eq!(daemon.exited().tape.unwrap().said, up_to(31, 31));
    let expected: String = (1..=30).map(|number| format!("{number} w{number}\n")).collect();
    assert_eq!(world.tape("api").text(), expected + "end\n");
}

#[test]
fn what_is_said_on_a_condition_is_refused_if_more_was_printed() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(taped(1, 1 << 20, &format!("echo first; {ANSWERS}")));
    wait_until("it printed", || world.tape("api").text() == "first\n");
    let before = Position(32);
    say(&mut daemon, Say { heard: Some(before), ..word(1, "one\n") });
    assert_eq!(refused(&mut daemon), SayRefused::MoreWasPrinted);
    let heard = Some(world.tape("api").end);
    say(&mut daemon, Say { heard, ..word(1, "one\n") });
    assert_eq!(said(&mut daemon).said, SayNumber(1));
    wait_until("it answered", || world.tape("api").text().contains("1 one"));
    // A word said since does not count as printed, but its answer does.
    say(&mut daemon, Say { heard, ..word(2, "two\n") });
    assert_eq!(refused(&mut daemon), SayRefused::MoreWasPrinted);
    daemon.send(&Command::CloseInput { run: RUN });
    daemon.exited();
    assert_eq!(world.tape("api").text(), "first\n1 one\nend\n");
}

#[test]
fn what_the_agent_does_not_read_waits_within_bounds_and_does_not_count_as_written() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let go = world.path("go");
    let script =
        format!("until test -e {}; do sleep 0.01; done; read -r first; head -c 400000", go.display());
    daemon.start(taped(1, 64 << 20, &script));
    daemon.started();
    let long = format!("{}\n", "x".repeat(400_000));
    for number in 1..=2 {
        say(&mut daemon, word(number, &long));
        assert_eq!(said(&mut daemon), up_to(number, 0));
    }
    say(&mut daemon, word(3, &long));
    assert_eq!(refused(&mut daemon), SayRefused::TooMuchWaits);
    assert_eq!(world.tape("api").said.len(), 2);
    std::fs::write(&go, "").unwrap();
    assert_eq!(daemon.exited().tape.unwrap().said.said, SayNumber(2));
    assert_eq!(world.tape("api").out.len(), 400_000);
}

#[test]
fn a_closed_input_takes_nothing_and_a_run_without_a_tape_is_told_so() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(taped(1, 1 << 20, "read -r line; exec 0<&-; echo closed; sleep 1000"));
    say(&mut daemon, Say { close: true, ..word(1, "x\n") });
    assert_eq!(said(&mut daemon), up_to(1, 1));
    say(&mut daemon, word(2, "y\n"));
    assert_eq!(refused(&mut daemon), SayRefused::Closed);
    daemon.send(&Command::Stop { run: RUN, grace: Duration::from_secs(30) });
    daemon.exited();
    daemon.start(shell(2, "sleep 1000"));
    daemon.started();
    say(&mut daemon, Say { run: RunNumber(2), ..word(1, "x\n") });
    assert_eq!(refused(&mut daemon), SayRefused::Closed);
}

#[test]
fn an_agent_waits_while_too_much_is_not_heard_and_nothing_is_lost() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(taped(1, 200_000, "head -c 5000000 /dev/zero; echo the end"));
    assert_eq!(flow(&mut daemon, |_| true), Flow::Full);
    let folder = world.opening("api").tape.unwrap();
    let mut reader = TapeReader::from(&folder, Position(0));
    let (mut zeroes, mut flows) = (0, 0);
    loop {
        while let Some(entry) = reader.entry().unwrap() {
            assert_eq!(entry.lost, 0);
            if let TapeContent::Out(bytes) = entry.what {
                zeroes += bytes.iter().filter(|byte| **byte == 0).count();
            }
        }
        daemon.send(&Command::Heard { run: RUN, to: reader.position() });
        let ended = daemon.expect("what comes next", |report| match report {
            Report::Exited(exited) => Some(Some(exited.tape)),
            Report::Tape(TapeReport::Grown { .. }) => Some(None),
            Report::Tape(TapeReport::State { flow, .. }) => {
                flows += usize::from(*flow == Flow::Flows);
                None
            }
            _ => None,
        });
        if ended.is_some() {
            break;
        }
    }
    while let Some(entry) = reader.entry().unwrap() {
        if let TapeContent::Out(bytes) = entry.what {
            zeroes += bytes.iter().filter(|byte| **byte == 0).count();
        }
    }
    assert_eq!(zeroes, 5_000_000);
    assert!(flows > 0);
}

#[test]
fn what_is_printed_byte_by_byte_is_followed_up_to_the_end_that_was_told() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let script = "i=0; while [ $i -lt 500 ]; do printf x; i=$((i+1)); done";
    daemon.start(taped(1, 1 << 20, script));
    let mut reader = TapeReader::from(&world.opening("api").tape.unwrap(), Position(0));
    let (mut printed, mut ended) = (Vec::new(), false);
    while !ended {
        let (end, last) = daemon.expect("how far it has grown", |report| match report {
            Report::Exited(exited) => Some((exited.tape.unwrap().end, true)),
            Report::Tape(TapeReport::Grown { end, .. }) => Some((*end, false)),
            _ => None,
        });
        while let Some(entry) = reader.entry_before(end).unwrap() {
            if let TapeContent::Out(bytes) = entry.what {
                printed.extend_from_slice(bytes);
            }
        }
        assert_eq!(reader.position().max(Position(32)), end, "what was told is there");
        ended = last;
    }
    assert_eq!(printed, [b'x'; 500]);
}

/// Kibibytes of memory that a process has to itself.
fn anonymous(pid: u32) -> u64 {
    let text = crate::world::read(format!("/proc/{pid}/smaps_rollup").as_ref());
    let line = text.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

fn length_of(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|facts| facts.len()).sum()
}

#[test]
fn a_hundred_megabytes_that_nobody_hears_stop_at_the_bound_and_a_stop_is_heard() {
    const BOUND: u64 = 64 << 20;
    let world = World::new();
    let mut daemon = world.shim("api");
    let script = "trap 'echo; echo bye; exit 7' TERM; head -c 100000000 /dev/zero; echo more; read x";
    daemon.start(taped(1, BOUND, script));
    let (_, pid, _) = daemon.started();
    // No daemon is connected.
    rustix::net::shutdown(&daemon.link, rustix::net::Shutdown::Both).unwrap();
    let folder = world.opening("api").tape.unwrap();
    wait_until("the tape is full", || length_of(&folder) > BOUND);
    let memory = anonymous(daemon.child.id());
    println!("{memory} KiB of memory with {BOUND} bytes that are not heard");
    assert!(memory < 2048, "{memory} KiB");
    daemon.link = world.connect("api", 2);
    let seen = welcome(&mut daemon.link);
    let standing = seen.tape.unwrap();
    assert_eq!((standing.flow, standing.heard, standing.run), (Flow::Full, Position(0), RUN));
    assert!(standing.end.0 > BOUND && standing.end.0 < BOUND + (128 << 10));
    assert!(crate::world::lives(pid));
    daemon.send(&Command::Stop { run: RUN, grace: PATIENCE });
    let exited = daemon.exited();
    assert_eq!((exited.ended.exit, exited.ended.forced), (Exit::Code(7), false));
    let found = world.tape("api");
    assert!(found.out.ends_with(b"\nbye\n"));
    assert_eq!((found.gap, found.ends), (0, 1));
}

#[test]
fn a_run_that_is_being_ended_is_read_on_and_what_does_not_fit_is_a_gap() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(taped(1, 100_000, "trap '' TERM; head -c 20000000 /dev/zero; exit 3"));
    assert_eq!(flow(&mut daemon, |_| true), Flow::Full);
    daemon.send(&Command::Stop { run: RUN, grace: PATIENCE });
    let exited = daemon.exited();
    assert_eq!((exited.ended.exit, exited.ended.forced), (Exit::Code(3), false));
    let found = world.tape("api");
    assert_eq!(found.out.len() as u64 + found.gap, 20_000_000, "every byte is there or counted");
    assert!(found.out.len() > 8_000_000 && found.out.len() < 12_000_000, "{}", found.out.len());
    assert_eq!((found.ends, exited.tape.unwrap().end), (1, found.end));
}

#[test]
fn a_line_of_thirty_megabytes_is_on_the_tape_whole() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(taped(1, 64 << 20, "head -c 30000000 /dev/zero | tr '\\0' x; echo; echo behind it"));
    let exited = daemon.exited();
    let memory = anonymous(daemon.child.id());
    assert!(memory < 2048, "{memory} KiB");
    let found = world.tape("api");
    assert_eq!(found.out.iter().filter(|byte| **byte == b'x').count(), 30_000_000);
    assert!(found.out.ends_with(b"x\nbehind it\n"));
    assert_eq!(exited.tape.unwrap().end, found.end);
}

#[test]
fn what_the_agent_left_in_its_pipes_is_on_the_tape_when_its_end_is_told_also_without_a_daemon() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(taped(1, 1000, "read -r line; head -c 60000 /dev/zero; exit 4"));
    daemon.started();
    say(&mut daemon, word(1, "go\n"));
    said(&mut daemon);
    rustix::net::shutdown(&daemon.link, rustix::net::Shutdown::Both).unwrap();
    // It ends, and the shim leaves.
    use crate::world::Ends;
    daemon.child.ended();
    let [exited] = &world.records("api")[..] else { panic!("one end") };
    assert_eq!(exited.ended.exit, Exit::Code(4));
    let found = world.tape("api");
    assert_eq!((found.out.len(), found.ends), (60_000, 1));
    assert_eq!(exited.tape.unwrap().end, found.end);
    assert_eq!(exited.tape.unwrap().said, up_to(1, 1));
}

#[test]
fn an_agent_waits_while_the_tape_cannot_be_written_and_goes_on_when_it_can() {
    needs!(Mount);
    let world = World::new();
    let disk = world.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let _disk = SmallDisk::mount(&disk);
    let guard = world.lock("api");
    let mut opening = world.opening("api");
    opening.tape = Some(disk.join("tape"));
    let (child, mut link) = pinfold_shim::client::spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let seen = welcome(&mut link);
    drop(guard.surrender());
    let mut daemon = Daemon { child, link, welcome: seen, passed: Vec::new() };
    daemon.send(&Command::Go);
    std::fs::write(disk.join("ballast"), vec![0; 150_000]).unwrap();
    daemon.start(taped(1, 1 << 20, "head -c 200000 /dev/zero; echo space again; read -r line; exit 4"));
    let broken = flow(&mut daemon, |_| true);
    assert_eq!(broken, Flow::Broken { errno: rustix::io::Errno::NOSPC.raw_os_error() });
    say(&mut daemon, word(1, "x\n"));
    assert!(matches!(refused(&mut daemon), SayRefused::TapeBroken { .. }));
    // The next daemon is told as well.
    daemon.link = world.connect("api", 2);
    assert_eq!(welcome(&mut daemon.link).tape.unwrap().flow, broken);
    std::fs::remove_file(disk.join("ballast")).unwrap();
    assert_eq!(flow(&mut daemon, |flow| flow == Flow::Flows), Flow::Flows);
    say(&mut daemon, word(1, "x\n"));
    assert_eq!(daemon.exited().ended.exit, Exit::Code(4));
    let found = Found::on(&disk.join("tape"), RUN);
    assert_eq!((found.out.len(), found.gap), (200_012, 0));
    assert!(found.out.ends_with(b"space again\n"));
}

#[test]
fn a_run_is_ended_also_while_the_tape_cannot_be_written() {
    needs!(Mount);
    let world = World::new();
    let disk = world.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let _disk = SmallDisk::mount(&disk);
    let guard = world.lock("api");
    let mut opening = world.opening("api");
    opening.tape = Some(disk.join("tape"));
    let (child, mut link) = pinfold_shim::client::spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let seen = welcome(&mut link);
    drop(guard.surrender());
    let mut daemon = Daemon { child, link, welcome: seen, passed: Vec::new() };
    daemon.send(&Command::Go);
    daemon.start(taped(1, 64 << 20, "trap '' TERM; head -c 3000000 /dev/zero; exit 5"));
    flow(&mut daemon, |flow| matches!(flow, Flow::Broken { .. }));
    daemon.send(&Command::Stop { run: RUN, grace: PATIENCE });
    let exited = daemon.exited();
    assert_eq!((exited.ended.exit, exited.ended.forced), (Exit::Code(5), false));
    let found = Found::on(&disk.join("tape"), RUN);
    assert_eq!(exited.tape.unwrap().end, found.end);
}

#[test]
fn a_tape_without_a_place_is_refused_and_a_terminal_has_none() {
    let world = World::new();
    let guard = world.lock("api");
    let mut opening = world.opening("api");
    opening.tape = None;
    let (child, mut link) = pinfold_shim::client::spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let seen = welcome(&mut link);
    assert!(!seen.can.tape && seen.can.hold);
    assert!(matches!(seen.keeping, Keeping::Standing));
    drop(guard.surrender());
    let mut daemon = Daemon { child, link, welcome: seen, passed: Vec::new() };
    daemon.send(&Command::Go);
    daemon.start(taped(1, 1 << 20, "echo no"));
    daemon.expect("a refusal", |report| matches!(report, Report::StartFailed { .. }).then_some(()));
    let terminal = Some(pinfold_shim::Size::new(24, 80));
    daemon.start(Start { terminal, ..taped(2, 1 << 20, "echo yes") });
    assert_eq!(daemon.exited().tape, None);
    assert!(world.log("api", pinfold_shim::log::Stream::Out).starts_with(b"yes"));
}

#[test]
fn a_silent_run_with_a_full_tape_costs_no_time() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(taped(1, 100_000, "head -c 1000000 /dev/zero"));
    flow(&mut daemon, |flow| flow == Flow::Full);
    daemon.let_settle();
    let ticks = || {
        let stat = crate::world::read(format!("/proc/{}/stat", daemon.child.id()).as_ref());
        let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    let quiet = daemon.link.receive(Some(Instant::now() + Duration::from_secs(1)));
    assert!(matches!(quiet, Err(pinfold_shim::client::ReceiveError::TimeUp)), "{quiet:?}");
    assert!(ticks() - before <= 1);
}

//! What agents print: always read, bounded on disk, shown to clients that keep up.

use crate::rights::needs;
use crate::world::{PATIENCE, World, lives, shell, wait_until};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::log::{LogReader, Position, Stream};
use pinfold_shim::{Command, LogLimits, Report, Start};
use std::time::{Duration, Instant};

/// Kibibytes of memory that a process has to itself.
fn anonymous(pid: u32) -> u64 {
    let text = crate::world::read(format!("/proc/{pid}/smaps_rollup").as_ref());
    let line = text.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn ten_megabytes_of_stderr_block_nobody() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "head -c 10000000 /dev/zero >&2; echo done"));
    assert_eq!(daemon.exited().ended.exit, Exit::Code(0));
    assert!(world.log("api", Stream::Error).len() > 7_000_000);
    assert_eq!(world.log("api", Stream::Out), b"done\n");
}

#[test]
fn what_is_left_in_the_pipes_at_the_end_is_read_before_the_exit_is_told() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let go = world.path("go").display().to_string();
    let print = "head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2";
    daemon.start(shell(1, &format!("until test -e {go}; do sleep 0.01; done; {print}")));
    let (_, pid, _) = daemon.started();
    // The shim is stopped while the agent prints and ends: when it goes on, both have happened.
    let shim = rustix::process::Pid::from_child(&daemon.child);
    rustix::process::kill_process(shim, rustix::process::Signal::STOP).unwrap();
    let stat = format!("/proc/{}/stat", daemon.child.id());
    wait_until("the shim sleeps", || crate::world::read(stat.as_ref()).contains(") T "));
    std::fs::write(&go, "").unwrap();
    wait_until("the agent has ended", || !lives(pid));
    rustix::process::kill_process(shim, rustix::process::Signal::CONT).unwrap();
    assert_eq!(daemon.exited().ended.exit, Exit::Code(0));
    let printed = |stream| world.log("api", stream).len();
    assert_eq!((printed(Stream::Out), printed(Stream::Error)), (60_000, 60_000));
}

#[test]
fn a_daemon_that_never_reads_stops_nothing() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "head -c 50000000 /dev/zero; echo; echo the end; exit 3"));
    // Nothing is read meanwhile: the record shows the end.
    let until = Instant::now() + PATIENCE;
    while world.records("api").is_empty() {
        assert!(Instant::now() < until, "no end was recorded");
        std::thread::yield_now();
    }
    let peak = anonymous(daemon.child.id());
    assert!(peak < 2048, "{peak} KiB");
    let exited = daemon.exited();
    assert_eq!(exited.ended.exit, Exit::Code(3));
    let grown = daemon.passed.iter().any(|report| matches!(report, Report::LogGrown { .. }));
    let sent: usize = daemon
        .passed
        .iter()
        .map(|report| match report {
            Report::Output(output) => output.bytes.len(),
            _ => 0,
        })
        .sum();
    assert!(sent < 2_000_000, "{sent}");
    // What was not sent is in the log; the exit report says up to where.
    assert!(grown || exited.log > Position(8 << 20));
    assert!(world.log("api", Stream::Out).ends_with(b"\nthe end\n"));
}

#[test]
fn a_chatty_agent_fills_neither_disk_nor_memory_and_the_end_of_its_log_is_there() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let script = "timeout 3 cat /dev/zero; echo; echo the end";
    let limits = LogLimits { file_bytes: 1 << 20, files: 3 };
    daemon.start(Start { log: limits, ..shell(1, script) });
    let mut bytes = 0;
    let mut peak = 0;
    let pid = daemon.child.id();
    daemon.expect("the end", |report| {
        if let Report::Output(output) = report {
            bytes += output.bytes.len();
            if bytes % 4096 == 0 {
                peak = peak.max(anonymous(pid));
            }
        }
        matches!(report, Report::Exited(_)).then_some(())
    });
    daemon.passed.clear();
    assert!(peak < 2048, "{peak} KiB");
    let log = world.opening("api").log;
    let files = ["", ".1", ".2", ".3"].map(|end| {
        let path = format!("{}{end}", log.display());
        std::fs::metadata(path).map_or(0, |facts| facts.len())
    });
    assert!(files[..3].iter().all(|length| *length <= 1 << 20), "{files:?}");
    assert_eq!(files[3], 0);
    assert!(world.log("api", Stream::Out).ends_with(b"\nthe end\n"));
    let position = LogReader::from(&log, Position(0)).position();
    assert_eq!(position, Position(0));
}

#[test]
fn what_a_daemon_misses_it_finds_in_the_log_and_nothing_twice() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "seq 1 400000; read line; seq 400001 400010"));
    // Not reading for a while makes the shim drop output.
    let until = Instant::now() + PATIENCE;
    let log = world.opening("api").log;
    let printed: Vec<u8> = (1..=400_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    while world.log("api", Stream::Out).len() < printed.len() {
        assert!(Instant::now() < until);
    }
    daemon.send(&Command::CloseInput { run: RunNumber(1) });
    let mut seen = Vec::new();
    let mut next = Position(0);
    let fill = |seen: &mut Vec<u8>, next: &mut Position, to: Position| {
        let mut reader = LogReader::from(&log, *next);
        while reader.position() < to {
            let Some(entry) = reader.entry().unwrap() else { break };
            seen.extend_from_slice(&entry.bytes);
        }
        *next = (*next).max(reader.position());
    };
    daemon.expect("the end", |report| match report {
        Report::Output(output) => {
            fill(&mut seen, &mut next, output.at);
            if output.at >= next {
                seen.extend_from_slice(&output.bytes);
                next = output.next;
            }
            None
        }
        Report::LogGrown { to } => {
            fill(&mut seen, &mut next, *to);
            None
        }
        Report::Exited(exited) => {
            fill(&mut seen, &mut next, exited.log);
            Some(())
        }
        _ => None,
    });
    let all: Vec<u8> = (1..=400_010).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    assert!(seen == all, "{} of {} bytes", seen.len(), all.len());
}

#[test]
fn output_is_not_sent_to_a_daemon_that_does_not_want_it() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.send(&Command::Follow { on: false });
    daemon.start(shell(1, "seq 1 1000"));
    daemon.exited();
    assert!(daemon.passed.iter().all(|report| !matches!(report, Report::Output(_))));
    assert!(world.log("api", Stream::Out).ends_with(b"\n1000\n"));
}

/// A file system of 256 KiB that is gone with the test.
pub(crate) struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    pub(crate) fn mount(path: &std::path::Path) -> Self {
        let mut mount = std::process::Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=256k", "pinfold-test"]).arg(path).status();
        assert!(mounted.unwrap().success(), "a small tmpfs is mounted");
        Self(path.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn an_agent_goes_on_when_the_log_cannot_be_written_and_the_log_says_what_was_lost() {
    needs!(Mount);
    let world = World::new();
    let disk = world.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let _disk = SmallDisk::mount(&disk);
    let guard = world.lock("api");
    let mut opening = world.opening("api");
    opening.log = disk.join("log");
    let (child, mut link) = pinfold_shim::client::spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let welcome = crate::world::welcome(&mut link);
    drop(guard.surrender());
    let mut daemon = crate::world::Daemon { child, link, welcome, passed: Vec::new() };
    daemon.send(&Command::Go);
    std::fs::write(disk.join("ballast"), vec![0; 100_000]).unwrap();
    let script =
        format!("head -c 1000000 /dev/zero; rm {}/ballast; echo space again; exit 4", disk.display());
    daemon.start(shell(1, &script));
    assert_eq!(daemon.exited().ended.exit, Exit::Code(4));
    let mut reader = LogReader::from(&opening.log, Position(0));
    let (mut lost, mut kept, mut text) = (0, 0, Vec::new());
    while let Some(entry) = reader.entry().unwrap() {
        lost += entry.lost;
        kept += entry.bytes.len() as u64;
        text.extend_from_slice(&entry.bytes);
    }
    assert!(lost > 0);
    assert_eq!(lost + kept, 1_000_000 + 12, "every byte is there or counted");
    assert!(text.ends_with(b"space again\n"));
}

#[test]
fn silence_costs_no_time() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "read line; exit 0"));
    daemon.started();
    let ticks = || {
        let stat = crate::world::read(format!("/proc/{}/stat", daemon.child.id()).as_ref());
        let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    let until = Instant::now() + Duration::from_secs(1);
    // For a second nothing is received, and the shim does nothing.
    let quiet = daemon.link.receive(Some(until));
    assert!(matches!(quiet, Err(pinfold_shim::client::ReceiveError::TimeUp)));
    assert!(ticks() - before <= 1);
}

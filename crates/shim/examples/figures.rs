//! Measures shims: memory of idle ones, time to start an agent, time from an end to the next start.
//!
//! `cargo run --release -p pinfold-shim --example figures -- PATH/TO/pinfold-shim [COUNT]`
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a measurement that fails has nothing to say"
)]

use pinfold_core::ids::RunNumber;
use pinfold_lock::{Folder, Request, Resource, SessionName};
use pinfold_shim::client::{Opening, ShimConnection, spawn, sweep};
use pinfold_shim::{Command, Contain, Report, Start, Tie};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().expect("the path of pinfold-shim");
    let count: usize = arguments.next().map_or(50, |count| count.parse().unwrap());
    let temp = tempfile::tempdir().unwrap();
    let folder = Folder::open(temp.path().join("locks")).unwrap();
    println!("binary {} bytes", std::fs::metadata(&program).unwrap().len());
    for contain in [Contain::Reaper, Contain::Group] {
        let mut shims: Vec<(Child, ShimConnection)> = Vec::new();
        let mut times = Vec::new();
        for number in 0..count {
            let name = format!("s{number}-{contain:?}");
            let begin = Instant::now();
            shims.push(begin_one(&program, &folder, temp.path(), &name, contain));
            times.push(begin.elapsed());
            if number == 0 || number + 1 == count {
                // An idle shim has settled down after a second.
                std::thread::sleep(Duration::from_secs(1));
                memory(&shims.iter().map(|(child, _)| child.id()).collect::<Vec<_>>());
            }
        }
        show(&format!("{contain:?}: lock, shim, agent's exec"), &mut times);
        restarts(&mut shims[0].1, contain);
        for follow in [true, false] {
            chatty(&mut shims[0], follow);
        }
        for (child, _) in &mut shims {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        for number in 0..count {
            // Agents end a moment after their shims; one that does not leaves an empty folder.
            let _ = sweep(&temp.path().join(format!("s{number}-{contain:?}.sock")));
        }
    }
}

fn begin_one(
    program: &str,
    folder: &Folder,
    home: &Path,
    name: &str,
    contain: Contain,
) -> (Child, ShimConnection) {
    let session = Resource::Session(SessionName::new(name).unwrap());
    let guard = folder.try_acquire(&session, &Request::default()).unwrap();
    let opening = Opening {
        program: program.into(),
        arguments: Vec::new(),
        session: name.into(),
        listen: home.join(format!("{name}.sock")),
        listens: pinfold_shim::Listens::Late,
        records: home.join(format!("{name}.exits")),
        log: home.join(format!("{name}.log")),
        tape: None,
        tie: Tie::Free,
        foreground: None,
        crash_at: None,
    };
    let (child, mut link) = spawn(&opening, &[(folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    link.send(&Command::Go).unwrap();
    link.send(&Command::Start(Box::new(start(1, "1000", contain)))).unwrap();
    wait(&mut link, |report| matches!(report, Report::Started { .. }));
    drop(guard.surrender());
    (child, link)
}

fn start(run: u64, seconds: &str, contain: Contain) -> Start {
    Start {
        run: RunNumber(run),
        run_id: format!("figures-{}-{run}-{}", std::process::id(), seconds.replace('.', "-")),
        arguments: vec!["/bin/sleep".into(), seconds.into()],
        contain,
        ..Start::default()
    }
}

fn wait(link: &mut ShimConnection, mut wanted: impl FnMut(&Report) -> bool) {
    loop {
        match link.receive(Some(Instant::now() + Duration::from_secs(20))).unwrap() {
            Some(report) if wanted(&report) => return,
            Some(_) => {}
            None => panic!("the shim has gone"),
        }
    }
}

/// From the agent's end, as far as it can be told from outside, to the next agent's exec.
fn restarts(link: &mut ShimConnection, contain: Contain) {
    link.send(&Command::Stop { run: RunNumber(1), grace: Duration::from_secs(5) }).unwrap();
    wait(link, |report| matches!(report, Report::Exited(_)));
    let mut times = Vec::new();
    let mut run = 1;
    for _ in 0..50 {
        run += 1;
        link.send(&Command::Start(Box::new(start(run, "1000", contain)))).unwrap();
        wait(link, |report| matches!(report, Report::Started { .. }));
        let begin = Instant::now();
        link.send(&Command::Stop { run: RunNumber(run), grace: Duration::from_secs(5) }).unwrap();
        wait(link, |report| matches!(report, Report::Exited(_)));
        run += 1;
        link.send(&Command::Start(Box::new(start(run, "1000", contain)))).unwrap();
        wait(link, |report| matches!(report, Report::Started { .. }));
        times.push(begin.elapsed());
        link.send(&Command::Ack { run: RunNumber(run - 1) }).unwrap();
        link.send(&Command::Stop { run: RunNumber(run), grace: Duration::from_secs(5) }).unwrap();
        wait(link, |report| matches!(report, Report::Exited(_)));
    }
    show(&format!("{contain:?}: SIGTERM, end, durable record, next exec"), &mut times);
}

/// How much an agent gets rid of in two seconds, and what the shim has left of it in memory.
fn chatty((child, link): &mut (Child, ShimConnection), follow: bool) {
    let run = RunNumber(if follow { 1000 } else { 1001 });
    link.send(&Command::Follow { on: follow }).unwrap();
    let arguments = ["/usr/bin/timeout", "2", "/bin/cat", "/dev/zero"].map(Into::into).to_vec();
    let start = Start { run, run_id: format!("figures-{}", run.0), arguments, ..Start::default() };
    let before = cpu(child.id());
    link.send(&Command::Start(Box::new(start))).unwrap();
    let (mut last, mut sent) = (0, 0);
    wait(link, |report| {
        match report {
            Report::Output(output) => sent += output.bytes.len(),
            Report::Exited(exited) => last = exited.log.0,
            _ => {}
        }
        matches!(report, Report::Exited(_))
    });
    let used = cpu(child.id()) - before;
    println!(
        "chatty for 2 s, followed {follow}: {} MB logged in all, {} MB sent, {} ms of the shim's time",
        last / 1_000_000,
        sent / 1_000_000,
        used * 10
    );
    memory(&[child.id()]);
}

fn cpu(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn memory(shims: &[u32]) {
    let mut sums = [0_u64; 4];
    for pid in shims {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
        for (sum, name) in sums.iter_mut().zip(["Private_Dirty:", "Anonymous:", "Pss:", "Rss:"]) {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            *sum += line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        }
    }
    let [dirty, anonymous, pss, rss] = sums.map(|sum| sum / shims.len() as u64);
    println!(
        "{:4} shims, each KiB: private dirty {dirty}, anonymous {anonymous}, pss {pss}, rss {rss}",
        shims.len()
    );
}

fn show(what: &str, times: &mut [Duration]) {
    times.sort();
    let (first, middle, last) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    println!("{what}: min {first:.2?}, median {middle:.2?}, max {last:.2?} of {}", times.len());
}

//! Many sessions at once, and agents that print as fast as they can.

use crate::processes::open_files;
use crate::world::{Ends, World, number};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const MANY: usize = 200;
const CLIENTS: usize = 8;

#[test]
fn two_hundred_starts_at_once_give_no_agent_a_lock_of_another() {
    let world = World::new();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let world = &world;
            scope.spawn(move || {
                for n in (client..MANY).step_by(CLIENTS) {
                    let dir = world.path(&format!("d{n}"));
                    std::fs::create_dir(&dir).unwrap();
                    let dir = dir.to_str().unwrap();
                    world.ok(&["new", &format!("s{n}"), "--dir", dir, "--", "sleep", "100000"]);
                }
            });
        }
    });
    let sessions = world.sessions();
    assert_eq!(sessions.len(), MANY);
    let mut holders: BTreeMap<String, u32> = BTreeMap::new();
    for (name, session) in &sessions {
        assert_eq!(session["state"], "running", "{name}: {session}");
        let agent: Vec<u32> = open_files(number(&session["pid"])).iter().map(|(number, _)| *number).collect();
        assert_eq!(agent, [0, 1, 2], "{name}");
        let shim = number(&session["shim_pid"]);
        for (_, file) in open_files(shim) {
            if Path::new(&file).starts_with(world.home.join("locks")) && file.contains("/s-") {
                let other = holders.insert(file.clone(), shim);
                assert!(other.is_none_or(|other| other == shim), "{file} is open in {shim} and {other:?}");
            }
        }
    }
    assert_eq!(holders.len(), MANY, "a session lock each");
    assert_eq!(world.members().values().map(Vec::len).sum::<usize>(), MANY);
    world.ok(&["down"]);
    world.assert_no_members();
}

fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => size_of(&entry.path()),
        Ok(facts) => facts.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[test]
fn a_chatty_agent_fills_no_disk_slows_nobody_and_its_last_words_are_there() {
    let seconds = 10;
    let world = World::new();
    let words = "0123456789abcdef".repeat(16);
    let script = format!("timeout {seconds} yes {words}; echo the end; exec sleep 100000");
    world.json(&["new", "a", "--", "sh", "-c", &script]);
    let begun = Instant::now();
    let mut times = Vec::new();
    let mut largest = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        times.push(world.ok(&["ls"]).took);
        largest = largest.max(size_of(&world.home.join("sessions")));
    }
    world.printed("a", "the end");
    times.sort_unstable();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    println!("`ls` {} times: median {median:?}, worst {worst:?}; {largest} bytes on disk", times.len());
    assert!(median < Duration::from_secs(5), "{median:?}");
    // Two files of 8 MiB, and one more for the moment in which the oldest is removed.
    assert!(largest < 25 << 20, "{largest}");
    assert!(largest > 1 << 20, "it was not chatty: {largest}");
    assert_eq!(world.ok(&["logs", "a", "-n", "1"]).stdout.trim(), "the end");
    world.ok(&["stop", "a"]);
    let exit = &world.events_of("a", "run_exited")[0];
    assert_eq!(exit["output"].as_array().unwrap().last().unwrap(), "the end");
    world.check_history();
}

#[test]
fn a_burst_of_ten_megabytes_on_stderr_deadlocks_nobody() {
    let world = World::new();
    let script = "head -c 10485760 /dev/zero | tr '\\0' x >&2; echo >&2; echo done; exec sleep 100000";
    world.guarded("a", &[], script);
    world.printed("a", "done");
    assert_eq!(world.show("a")["state"], "running");
    world.ok(&["stop", "a"]);
    world.check_history();
}

#[test]
fn a_follower_that_does_not_read_holds_up_nobody() {
    let world = World::new();
    let words = "0123456789abcdef".repeat(16);
    let script = format!("timeout 1 yes {words}; echo the end; exec sleep 100000");
    world.json(&["new", "a", "--", "sh", "-c", &script]);
    let mut stuck = world.command(&["logs", "a", "-f"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    world.printed("a", "the end");
    world.ok(&["ls"]);
    world.ok(&["stop", "a"]);
    stuck.kill().unwrap();
    stuck.ended();
}

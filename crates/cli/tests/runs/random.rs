//! The daemon is killed at random moments while sessions crash, stop, start and end.

use crate::processes::{self, Held};
use crate::world::{World, number};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many kills in the default mode; `PINFOLD_KILLS` asks for more.
const KILLS: u64 = 200;
/// A kill comes at any moment within this time after the daemon's start.
const WITHIN: Duration = Duration::from_millis(120);

/// Random numbers that can be repeated.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Ends the disturbance, even if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const SESSIONS: [(&str, &str); 8] = [
    ("stays", "exec sleep 100000"),
    ("stays-too", "exec sleep 100000"),
    ("crashes", "sleep 0.05; exit 1"),
    ("crashes-at-once", "exit 3"),
    ("dies", "sleep 0.02; kill -SEGV $$"),
    ("ends", "sleep 0.03; exit 0"),
    ("has-children", "setsid sleep 100000 & sleep 0.1; exit 1"),
    ("is-deaf", "trap '' TERM; while :; do sleep 0.2; done"),
];

fn disturb(world: &World, seed: u64, over: &AtomicBool) {
    let mut dice = Dice(seed | 1);
    while !over.load(Ordering::Relaxed) {
        let (name, _) = SESSIONS[dice.below(SESSIONS.len() as u64) as usize];
        let verb = ["start", "stop", "restart", "start"][dice.below(4) as usize];
        let words = if verb == "stop" { vec![verb, name, "--timeout", "100ms"] } else { vec![verb, name] };
        // The daemon may be killed meanwhile: any answer will do, as long as no agent is doubled.
        world.run(&words);
    }
}

/// What may be killed.
#[derive(Debug, Clone, Copy)]
enum Victims {
    Daemon,
    /// The daemon, any shim, or any process of a run.
    Anything,
}

impl Victims {
    /// Opens the process to kill, and checks that it is still the same one: the pid may belong to another by now.
    fn choose(self, world: &World, daemon: Held, dice: &mut Dice) -> Option<Held> {
        let kind = match self {
            Victims::Daemon => 0,
            Victims::Anything => dice.below(3),
        };
        let members: Vec<u32> = world.members().into_values().flatten().collect();
        if kind == 0 || members.is_empty() {
            return Some(daemon);
        }
        let member = members[dice.below(members.len() as u64) as usize];
        if kind == 1 {
            return Held::open(member).filter(|held| world.is_member(held.pid));
        }
        let shim = Held::open(shim_of(member)?)?;
        (shim_of(member) == Some(shim.pid) && world.is_member(member)).then_some(shim)
    }
}

/// The shim above a process of a run.
fn shim_of(member: u32) -> Option<u32> {
    let mut at = member;
    for _ in 0..10 {
        at = processes::parent(at)?;
        let name = std::fs::read_to_string(format!("/proc/{at}/comm")).ok()?;
        if name.trim() == "pinfold-shim" {
            return Some(at);
        }
    }
    None
}

fn kill_at_random(victims: Victims, kills: u64) {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
    println!("seed {seed}");
    let world = World::new();
    for (name, script) in SESSIONS {
        world.guarded(name, &["--stop-grace", "100ms"], script);
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for n in 1..=2 {
            let (world, over) = (&world, &over);
            scope.spawn(move || disturb(world, seed.wrapping_mul(n), over));
        }
        let _end = Over(&over);
        let mut dice = Dice(seed | 1);
        for _ in 0..kills {
            let Some(daemon) = Held::open(number(&world.json(&["up"])["pid"])) else { continue };
            std::thread::sleep(Duration::from_micros(dice.below(WITHIN.as_micros() as u64)));
            if let Some(victim) = victims.choose(&world, daemon, &mut dice) {
                victim.kill();
                victim.wait();
            }
            assert_eq!(world.doubles(), "", "seed {seed}");
        }
    });
    world.ok(&["up"]);
    for (name, _) in SESSIONS {
        // Whatever was under way comes to an end.
        world.wait(name, "running,stopped,backoff,failed,idle");
    }
    world.check_history();
    world.ok(&["down"]);
    world.assert_no_members();
    world.ok(&["up"]);
    let events = world.check_history();
    let runs = events.iter().filter(|event| event["kind"] == "run_started").count();
    let adopted = events.iter().filter(|event| event["kind"] == "adopted").count();
    println!("{victims:?}: {kills} kills, {runs} runs, {adopted} adopted, 0 doubled, 0 without an end");
}

fn kills(otherwise: u64) -> u64 {
    std::env::var("PINFOLD_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn no_kill_of_the_daemon_doubles_or_loses_anything() {
    kill_at_random(Victims::Daemon, kills(KILLS));
}

#[test]
fn no_kill_of_anything_doubles_or_loses_anything() {
    kill_at_random(Victims::Anything, kills(KILLS / 2));
}

//! Homes of all kinds, drawn at random, with every verb: nothing that pinfold did not make is changed or removed.
//!
//! `PINFOLD_HOMES` sets how many (200), `PINFOLD_SEED` which.

use super::{homes, snapshot};
use crate::world::{World, finish_within, verbs_in};
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How many parts run at once, each as a test.
const PARTS: usize = 4;
/// No verb on a home takes longer.
const LIMIT: Duration = crate::processes::PATIENCE;

/// Random numbers that are the same for the same seed (splitmix64).
struct Draw(u64);

impl Draw {
    fn number(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % below as u64).unwrap()
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.number(of.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.number(100) < percent
    }
}

/// Every verb in the binary's help, with arguments that make it do something.
fn verbs(world: &World) -> Vec<Vec<&'static str>> {
    let names = verbs_in(&world.ok(&["--help"]).stdout);
    names.iter().filter_map(|name| words(name)).collect()
}

fn words(verb: &str) -> Option<Vec<&'static str>> {
    Some(match verb {
        // It makes its own home.
        "demo" => return None,
        // They are about the program itself.
        "completions" | "man" | "help" | "version" => return None,
        "rename" => vec!["rename", "x", "x2"],
        "search" => vec!["search", "hello"],
        "tui" => vec!["tui", "--frame", "80x24"],
        "usage" => vec!["usage"],
        "accounts" => vec!["accounts"],
        "export" => vec!["export"],
        "apply" => vec!["apply", "sessions.toml"],
        "reload" => vec!["reload"],
        // Installing would write outside of the home.
        "service" => vec!["service", "install", "--print", "--manager", "systemd"],
        "up" => vec!["up"],
        "down" => vec!["down"],
        "status" => vec!["status"],
        "new" => vec!["new", "x", "--mode", "on-demand", "--", "true"],
        "run" => vec!["run", "y", "--", "true"],
        "set" => vec!["set", "x", "--tag", "t"],
        "ls" => vec!["ls", "--all"],
        "show" => vec!["show", "x"],
        "tree" => vec!["tree"],
        "why" => vec!["why", "x"],
        // It would follow an existing session.
        "attach" => vec!["attach", "nobody"],
        "send" => vec!["send", "x", "hello"],
        "inbox" => vec!["inbox", "x"],
        "interrupt" => vec!["interrupt", "x"],
        "answer" => vec!["answer", "x", "allow"],
        "logs" => vec!["logs", "x"],
        "events" => vec!["events"],
        "start" => vec!["start", "x"],
        "stop" => vec!["stop", "x"],
        "restart" => vec!["restart", "x"],
        "archive" => vec!["archive", "x"],
        "restore" => vec!["restore", "x"],
        "purge" => vec!["purge", "--dry-run"],
        "rm" => vec!["rm", "x", "--yes"],
        "wait" => vec!["wait", "x", "--for", "running", "--timeout", "10ms"],
        "backup" => vec!["backup", "copy.db"],
        "restore-backup" => vec!["restore-backup", "copy.db"],
        "lock" => vec!["lock", "session:z", "--", "true"],
        "agents" => vec!["agents"],
        "locks" => vec!["locks"],
        "metrics" => vec!["metrics"],
        "who" => vec!["who", "."],
        "unlock" => vec!["unlock", "session:z", "--kill"],
        unknown => panic!("a new verb: say what `{unknown}` is called with here"),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Empty,
    Foreign,
    Linked,
    HalfMade,
    Before,
    Current,
}

const KINDS: [Kind; 6] =
    [Kind::Empty, Kind::Foreign, Kind::Linked, Kind::HalfMade, Kind::Before, Kind::Current];

/// Files that a user may have anywhere, even in a folder of ours.
const PLANTS: [&str; 12] = [
    "notes.txt",
    "runs/exp1/model.ckpt",
    "runs/1234-5/shims/x",
    ".pinfold-runs/1234-5/keep",
    ".pinfold-runs/mine/keep",
    "sessions/mine/notes",
    "locks/mine",
    "shims/mine",
    ".git/config",
    "homes/mine",
    "src/main.py",
    "pinfold.db.mine",
];
const MODES: [u32; 7] = [0o700, 0o755, 0o777, 0o750, 0o711, 0o1777, 0o775];

/// One of the zoo: its name, and everything around it that is not ours.
struct Animal {
    kind: Kind,
    home: PathBuf,
    foreign: BTreeMap<PathBuf, snapshot::Seen>,
    /// A folder that must stay exactly as it is.
    closed: Option<PathBuf>,
}

fn set_mode(path: &Path, bits: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
}

/// Copies some of a real home's files, all of them with `share` 100.
fn copy_some(from: &Path, to: &Path, share: usize, draw: &mut Draw) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let target = to.join(path.file_name().unwrap());
        let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
        if !draw.chance(share) {
            continue;
        }
        if kind.is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_some(&path, &target, share, draw);
        } else if kind.is_file() {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn plant(home: &Path, draw: &mut Draw) -> Vec<PathBuf> {
    let mut planted = Vec::new();
    for name in PLANTS {
        let path = home.join(name);
        let chosen = draw.chance(30) && std::fs::create_dir_all(path.parent().unwrap()).is_ok();
        // Two folders may be links to the same one, in which one plant's folder has the name of another plant.
        if chosen && !path.is_dir() {
            std::fs::write(&path, format!("mine: {name}")).unwrap();
            set_mode(&path, draw.one(&[0o600, 0o644, 0o755, 0o444]));
            planted.push(path);
        }
    }
    planted
}

impl Animal {
    fn born(place: &Path, kind: Kind, samples: &[PathBuf; 2], draw: &mut Draw) -> Animal {
        let (body, victim) = (place.join("body"), place.join("victim"));
        for folder in [&body, &victim] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(victim.join("diary"), "dear diary").unwrap();
        std::fs::create_dir_all(victim.join("1234-5")).unwrap();
        set_mode(&victim, 0o755);
        let mut home = body.clone();
        let mut kept = vec![victim.clone(), victim.join("diary"), victim.join("1234-5")];
        let [before, current] = samples;
        match kind {
            Kind::Empty => {}
            Kind::Foreign => {
                std::fs::write(body.join("README"), "a project").unwrap();
                plant(&body, draw);
            }
            Kind::Linked => {
                home = place.join("link");
                symlink(draw.one(&["body", "victim", "nowhere"]), &home).unwrap();
                kept.push(home.clone());
                if draw.chance(50) {
                    copy_some(current, &body, 100, draw);
                    link_parts(&body, draw);
                }
            }
            Kind::HalfMade => {
                copy_some(draw.one(&[before, current]), &body, 60, draw);
                link_parts(&body, draw);
                kept.extend(plant(&body, draw));
            }
            Kind::Before => {
                copy_some(before, &body, 100, draw);
                kept.extend(plant(&body, draw));
            }
            Kind::Current => {
                copy_some(current, &body, 100, draw);
                kept.extend(plant(&body, draw));
            }
        }
        set_mode(&body, draw.one(&MODES));
        let foreign = kept.iter().filter_map(|path| Some((path.clone(), snapshot::look(path)?))).collect();
        let closed = (kind == Kind::Foreign).then_some(body);
        Animal { kind, home, foreign, closed }
    }
}

/// Replaces some of a home's own files by links to other files.
fn link_parts(body: &Path, draw: &mut Draw) {
    let files = [
        "pinfold.db",
        "daemon.log",
        "daemon.lock",
        "audit.jsonl",
        "witness",
        "daemon.place",
        ".pinfold-home",
        "reserve",
        "config.toml",
    ];
    let folders = ["sessions", "shims", "locks", ".pinfold-runs", "runs"];
    for (names, target) in [(&files[..], "../victim/diary"), (&folders[..], "../victim")] {
        for name in names.iter().filter(|_| draw.chance(12)).collect::<Vec<_>>() {
            let path = body.join(name);
            _ = std::fs::remove_file(&path);
            _ = std::fs::remove_dir_all(&path);
            symlink(target, &path).unwrap();
        }
    }
}

/// A home of the version before and one of this version, both with contents.
fn samples(world: &World) -> [PathBuf; 2] {
    let made = |name: &str, program: &Path| {
        let home = world.path(name);
        for words in [
            &["new", "x", "--mode", "on-demand", "--", "true"][..],
            &["send", "x", "hello"],
            &["run", "r", "--", "true"],
            &["down"],
        ] {
            let mut command = Command::new(program);
            command.args(words).current_dir(&world.root).stdin(std::process::Stdio::null());
            for (name, value) in world.command(&[]).get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            let answer = finish_within(command.env("PINFOLD_HOME", &home), LIMIT);
            assert_eq!(answer.code, 0, "{words:?}: {answer:?}");
        }
        home
    };
    [made("before", &homes::before()), made("current", &world.binary)]
}

/// Runs every verb on one home, in a random order.
fn through(world: &World, animal: &Animal, verbs: &[Vec<&'static str>], draw: &mut Draw) {
    let mut order: Vec<usize> = (0..verbs.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, draw.number(at + 1));
    }
    // A daemon for every verb of every home would take too long.
    let daemons = draw.chance(15);
    for index in order {
        let mut words = vec!["--home", animal.home.to_str().unwrap()];
        if !daemons {
            words.push("--no-start");
        }
        if draw.chance(5) {
            words.push("--trust");
        }
        words.extend(&verbs[index]);
        if !daemons && verbs[index][0] == "up" {
            continue;
        }
        let mut command = world.command(&words);
        command.current_dir(animal.home.parent().unwrap()).env_remove("PINFOLD_HOME");
        let answer = finish_within(&mut command, LIMIT);
        check(animal, &format!("{words:?}: {answer:?}"));
    }
    if daemons {
        _ = world.run(&["--home", animal.home.to_str().unwrap(), "--no-start", "down"]);
        check(animal, "the end");
        crate::processes::end_around(animal.home.parent().unwrap());
    }
}

fn check(animal: &Animal, after: &str) {
    let harm = snapshot::harm(&animal.foreign);
    assert!(harm.is_empty(), "{:?}, {after}\n{harm:#?}", animal.kind);
}

fn tour(part: usize) {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let seed = number("PINFOLD_SEED", u64::try_from(now % (1 << 40)).unwrap());
    let count = usize::try_from(number("PINFOLD_HOMES", 200)).unwrap().div_ceil(PARTS);
    println!("PINFOLD_SEED={seed}, homes {part} of {PARTS}");
    let mut draw = Draw(seed ^ (part as u64) << 48);
    let world = World::new();
    let (verbs, samples) = (verbs(&world), samples(&world));
    for index in 0..count {
        let place = world.path(&format!("zoo-{index}"));
        let kind = KINDS[(index + part) % KINDS.len()];
        let animal = Animal::born(&place, kind, &samples, &mut draw);
        println!("home {index}: {kind:?}");
        let closed = animal.closed.as_deref().map(snapshot::of);
        through(&world, &animal, &verbs, &mut draw);
        if let (Some(before), Some(body)) = (closed, &animal.closed) {
            assert_eq!(snapshot::of(body), before, "something came into a directory that is not a home");
        }
    }
}

#[test]
fn random_homes_keep_what_is_not_ours_first() {
    tour(0);
}

#[test]
fn random_homes_keep_what_is_not_ours_second() {
    tour(1);
}

#[test]
fn random_homes_keep_what_is_not_ours_third() {
    tour(2);
}

#[test]
fn random_homes_keep_what_is_not_ours_fourth() {
    tour(3);
}

//! Every verb on a disk without a free byte, and on one without a free inode: looking and stopping work,
//! anything new is refused with the reason, nothing is half made, and nothing acknowledged is lost.

use super::disk::{SmallDisk, until};
use crate::processes::{Held, lives};
use crate::rights::needs;
use crate::world::{Answer, World, finish_within, held, number, verbs_in};
use std::process::{Command, Stdio};
use std::time::Duration;

const SOON: Duration = crate::processes::PATIENCE;
const MESSAGE: &str = "acknowledged";

/// What a verb must do on such a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Must {
    Work,
    /// Exit code 1, a sentence that says that the disk is full, and a hint.
    Refuse,
    /// End with this code, as on any disk.
    End(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lacks {
    Bytes,
    Inodes,
}

/// How a verb is called; `None` for a verb that is missing here.
fn words(verb: &str) -> Option<&'static [&'static str]> {
    Some(match verb {
        "up" => &["up"],
        "down" => &["down"],
        "demo" => &["demo"],
        "status" => &["status"],
        "new" => &["new", "fresh", "--", "cat"],
        "run" => &["run", "job", "--", "true"],
        "set" => &["set", "runs", "--memory", "1G"],
        "ls" => &["ls"],
        "show" => &["show", "runs"],
        "tree" => &["tree"],
        "why" => &["why", "runs"],
        "attach" => &["attach", "screen", "--read-only"],
        "send" => &["send", "collects", "one more"],
        "inbox" => &["inbox", "collects"],
        "interrupt" => &["interrupt", "works"],
        "answer" => &["answer", "runs", "allow"],
        "logs" => &["logs", "runs"],
        "events" => &["events"],
        "start" => &["start", "spare"],
        "stop" => &["stop", "runs"],
        "restart" => &["restart", "again"],
        "archive" => &["archive", "again"],
        "restore" => &["restore", "old"],
        "purge" => &["purge"],
        "rm" => &["rm", "older", "--yes"],
        "wait" => &["wait", "runs", "--for", "running"],
        "backup" => &["backup", "copy.db"],
        "restore-backup" => &["restore-backup", "before.db"],
        "lock" => &["lock", "key:new", "--", "true"],
        "agents" => &["agents"],
        "locks" => &["locks"],
        "metrics" => &["metrics"],
        "who" => &["who", "."],
        "unlock" => &["unlock", "session:victim", "--kill"],
        "rename" => &["rename", "again", "again-2"],
        "completions" => &["completions", "bash"],
        "man" => &["man"],
        "help" => &["help"],
        "version" => &["version"],
        "tui" => &["tui", "--frame", "80x24"],
        "usage" => &["usage"],
        "accounts" => &["accounts"],
        "search" => &["search", "hello"],
        "apply" => &["apply", "sessions.toml"],
        "export" => &["export"],
        "reload" => &["reload"],
        "service" => &["service", "install", "--print", "--manager", "systemd"],
        _ => return None,
    })
}

fn must(verb: &str, lacks: Lacks) -> Must {
    match (verb, lacks) {
        ("up" | "status" | "ls" | "show" | "tree" | "why" | "inbox" | "logs" | "events" | "wait", _)
        | ("agents" | "locks" | "metrics" | "who" | "stop" | "unlock" | "down", _)
        | ("completions" | "man" | "help" | "version" | "search" | "export" | "reload" | "service", _)
        | ("tui" | "usage" | "accounts", _) => Must::Work,
        // There is no such file.
        ("apply", _) => Must::End(78),
        ("new" | "run" | "lock" | "backup" | "start" | "demo", _) => Must::Refuse,
        ("answer", _) => Must::End(1),
        // The daemon is up.
        ("restore-backup", _) => Must::End(75),
        ("attach", Lacks::Inodes) => Must::End(2),
        (_, Lacks::Bytes) => Must::Refuse,
        (_, Lacks::Inodes) => Must::Work,
    }
}

/// All verbs, as the program lists them; those that end something come last.
fn verbs(world: &World) -> Vec<String> {
    let mut all = verbs_in(&world.ok(&["--help"]).stdout);
    all.sort_by_key(|verb| ["stop", "unlock", "down"].iter().position(|last| last == verb));
    all
}

/// A small disk with everything of a user: home, locks, temporary files, the working directory.
struct Place {
    world: World,
    disk: SmallDisk,
    lacks: Lacks,
}

impl Place {
    fn new(lacks: Lacks) -> Place {
        let disk = match lacks {
            Lacks::Bytes => SmallDisk::with("size=14m"),
            Lacks::Inodes => SmallDisk::with("size=64m,nr_inodes=150"),
        };
        let mut world = World::new();
        world.home = disk.path("home");
        for folder in ["work", "temp"] {
            std::fs::create_dir(disk.path(folder)).unwrap();
        }
        let place = Place { world, disk, lacks };
        for name in ["runs", "again", "victim"] {
            place.ok(&["new", name, "--", "sh", "-c", "echo hello; exec sleep 1000"]);
        }
        place.ok(&["new", "screen", "--pty", "--", "sleep", "1000"]);
        for name in ["collects", "spare", "old", "older"] {
            place.ok(&["new", name, "--mode", "on-demand", "--", "cat"]);
        }
        place.ok(&[
            "new",
            "works",
            "--turns",
            "done",
            "--",
            "sh",
            "-c",
            "trap '' INT; read x; exec sleep 1000",
        ]);
        place.ok(&["archive", "old", "older"]);
        place.ok(&["stop", "collects"]);
        place.ok(&["send", "works", "begin"]);
        place.ok(&["send", "collects", MESSAGE]);
        place.ok(&["backup", "before.db"]);
        assert!(until(SOON, || place.ok(&["--json", "inbox", "works"]).contains("delivered")));
        place
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.world.command(words);
        command.env("PINFOLD_LOCKS", self.disk.path("locks")).env("TMPDIR", self.disk.path("temp"));
        command.current_dir(self.disk.path("work"));
        command
    }

    fn run(&self, words: &[&str]) -> Answer {
        finish_within(&mut self.command(words), SOON)
    }

    fn ok(&self, words: &[&str]) -> String {
        let answer = self.run(words);
        assert_eq!(answer.code, 0, "{words:?}: {answer:?}");
        answer.stdout
    }

    fn exhaust(&self) -> usize {
        match self.lacks {
            Lacks::Inodes => {
                self.disk.use_up_inodes();
                0
            }
            Lacks::Bytes => {
                assert!(until(SOON, || self.world.home.join("reserve").exists()), "no room is kept");
                _ = std::fs::remove_file(self.world.home.join("reserve"));
                self.disk.fill();
                let text = "x".repeat(100_000);
                let taken = (0..200).take_while(|_| self.run(&["send", "collects", &text]).code == 0).count();
                self.disk.fill();
                taken
            }
        }
    }

    /// Fills the disk again: some verbs free space.
    fn exhaust_again(&self) {
        match self.lacks {
            Lacks::Inodes => self.disk.use_up_inodes(),
            Lacks::Bytes => self.disk.fill(),
        }
    }

    /// Runs `run`, which waits for the disk and says so, until it is ended.
    fn try_run(&self, words: &[&str]) -> Answer {
        let mut command = Command::new("timeout");
        command.args(["--signal=INT", "--kill-after=10", "2"]).arg(&self.world.binary).args(words);
        let plain = self.command(words);
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.disk.path("work")).stdin(Stdio::null());
        finish_within(&mut command, SOON)
    }

    fn try_verb(&self, verb: &str) -> Answer {
        let words = words(verb).unwrap_or_else(|| panic!("`{verb}` is not tried on a full disk: add it"));
        let answer = if verb == "run" { self.try_run(words) } else { self.run(words) };
        let first = answer.stderr.lines().chain(answer.stdout.lines()).next().unwrap_or_default();
        println!("{:?} | {verb} | {} | {first}", self.lacks, answer.code);
        answer
    }

    fn judge(&self, verb: &str, answer: &Answer) {
        let says = ["disk is full", "No space left"].iter().any(|words| answer.stderr.contains(words));
        match must(verb, self.lacks) {
            Must::Work => assert_eq!(answer.code, 0, "{verb}: {answer:?}"),
            Must::End(code) => assert_eq!(answer.code, code, "{verb}: {answer:?}"),
            Must::Refuse if verb == "run" => assert!(answer.code != 0 && says, "{verb}: {answer:?}"),
            Must::Refuse => {
                assert_eq!((answer.code, says), (1, true), "{verb}: {answer:?}");
                assert!(verb == "start" || answer.stderr.contains("hint: "), "{verb}: {answer:?}");
            }
        }
    }
}

/// The names of everything in a folder that belongs to sessions and copies.
fn made(place: &Place) -> Vec<String> {
    let names = |folder: &str| {
        let entries = std::fs::read_dir(place.disk.path(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let mut all = [names("home/sessions"), names("work")].concat();
    all.sort();
    all
}

fn daemon(place: &Place) -> Held {
    let status: serde_json::Value = serde_json::from_str(&place.ok(&["--json", "status"])).unwrap();
    held(number(&status["pid"]))
}

fn every_verb_answers(lacks: Lacks) {
    let place = Place::new(lacks);
    let shown: serde_json::Value = serde_json::from_str(&place.ok(&["--json", "show", "runs"])).unwrap();
    let pid = number(&shown["pid"]);
    let daemon = daemon(&place);
    let taken = place.exhaust();
    let before = made(&place);
    for verb in verbs(&place.world) {
        place.exhaust_again();
        let answer = place.try_verb(&verb);
        place.judge(&verb, &answer);
        let new: Vec<_> = made(&place).into_iter().filter(|name| !before.contains(name)).collect();
        assert!(new.is_empty(), "{verb} has half-made {new:?}");
    }
    assert!(!lives(pid), "the agent lives");
    assert!(daemon.ends_within(SOON), "the daemon is not down");
    if lacks == Lacks::Bytes {
        down_and_full(&place);
    }
    place.disk.free();
    all_goes_on(&place, taken);
}

/// Without a daemon, and with a log that has no room left, on a disk without a free byte: verbs that need a
/// daemon say what is wrong.
fn down_and_full(place: &Place) {
    place.disk.free();
    place.ok(&["up"]);
    let daemon = daemon(place);
    place.ok(&["down"]);
    assert!(daemon.ends_within(SOON), "the daemon is not down");
    _ = std::fs::remove_file(place.world.home.join("reserve"));
    place.disk.fill();
    for verb in ["up", "ls", "why"] {
        let answer = place.try_verb(verb);
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.stderr.contains("hint: the disk is full"), "{answer:?}");
    }
    assert_eq!(place.try_verb("status").code, 69);
    assert_eq!(place.try_verb("down").code, 0);
}

fn all_goes_on(place: &Place, taken: usize) {
    place.ok(&["up"]);
    let inbox: serde_json::Value = serde_json::from_str(&place.ok(&["--json", "inbox", "collects"])).unwrap();
    let texts: Vec<&str> =
        inbox.as_array().unwrap().iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(texts[0], MESSAGE);
    assert!(texts.iter().filter(|text| text.len() == 100_000).count() >= taken, "{taken} were taken");
    // `purge` may have archived it.
    place.run(&["restore", "spare"]);
    for words in [&["new", "fresh", "--", "cat"][..], &["lock", "key:new", "--", "true"], &["start", "spare"]]
    {
        place.ok(words);
    }
    assert!(place.ok(&["why", "runs"]).contains("stopped by a person"));
    place.ok(&["down"]);
}

#[test]
fn on_a_disk_without_a_byte_every_verb_answers_and_nothing_acknowledged_is_lost() {
    needs!(Mount);
    every_verb_answers(Lacks::Bytes);
}

#[test]
fn on_a_disk_without_an_inode_every_verb_answers_and_nothing_acknowledged_is_lost() {
    needs!(Mount);
    every_verb_answers(Lacks::Inodes);
}

//! One changed byte anywhere in a home: what was acknowledged reads back unchanged, or is named as damaged.

use crate::world::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// `PINFOLD_FLIPS` asks for more; `PINFOLD_SEED` repeats a seed that failed.
const FLIPS: usize = 200;
const THREADS: usize = 4;

/// splitmix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.roll() % limit as u64).unwrap()
    }
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// A home at rest with known contents.
struct Prepared {
    world: World,
    known: Known,
}

/// What was acknowledged.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    sessions: BTreeMap<String, Value>,
    inboxes: BTreeMap<String, Vec<Value>>,
    events: Vec<Value>,
}

/// How the daemon of a prepared home ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Down,
    Killed,
}

const AGENT: &str = "while read -r line; do echo \"PINFOLD_DONE answer to $line\"; done";

fn prepare(end: End) -> Prepared {
    let world = World::new();
    world.ok(&["new", "chat", "--mode", "on-demand", "--turns", "done", "--", "sh", "-c", AGENT]);
    for number in 0..6 {
        world.ok(&["send", "chat", &format!("question {number} with words of its own"), "--wait"]);
    }
    world.ok(&["stop", "chat"]);
    world.ok(&["new", "late", "--mode", "on-demand", "--tag", "kept", "--", "cat"]);
    world.ok(&["stop", "late"]);
    for number in 0..6 {
        let key = format!("key {number}");
        world.ok(&["send", "late", &format!("queued {number} and not delivered"), "--key", &key]);
    }
    let known = read(&world).unwrap_or_else(|answer| panic!("{answer}"));
    assert_eq!(known.inboxes["chat"][3]["answer"], "answer to question 3 with words of its own");
    assert_eq!(known.inboxes["late"].len(), 6);
    match end {
        End::Down => _ = world.ok(&["down"]),
        End::Killed => world.kill_daemon(),
    }
    Prepared { world, known }
}

/// Reads everything through the verbs; the error is an answer that names damage.
fn read(world: &World) -> Result<Known, String> {
    let sessions = ask(world, &["ls", "--all"])?;
    let mut known = Known { sessions: BTreeMap::new(), inboxes: BTreeMap::new(), events: Vec::new() };
    for session in list(&sessions) {
        let name = session["name"].as_str().unwrap_or_default().to_owned();
        known.sessions.insert(name, settled(session));
    }
    for name in ["chat", "late"] {
        let inbox = ask(world, &["inbox", name])?;
        known.inboxes.insert(name.to_owned(), list(&inbox).to_vec());
    }
    known.events = list(&ask(world, &["events"])?).to_vec();
    Ok(known)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn ask(world: &World, words: &[&str]) -> Result<Value, String> {
    let answer = world.run(&[&["--json"], words].concat());
    match answer.code {
        0 => Ok(answer.json()),
        65 => Err(format!("{words:?}: {}", answer.stderr)),
        _ => panic!("neither right nor damaged: {words:?}: {answer:?}\n{}", world.daemon_log()),
    }
}

/// The acknowledged part of a session, without what changes by itself.
fn settled(session: &Value) -> Value {
    let fields = ["id", "name", "agent", "dir", "mode", "state", "inbox", "command", "tags", "created_at"];
    fields.iter().map(|field| ((*field).to_owned(), session[field].clone())).collect()
}

/// Checks that each thing is equal or named as damaged; nothing is missing silently.
fn compare(known: &Known, found: &Known) -> Result<(), String> {
    for (name, session) in &known.sessions {
        if found.sessions.get(name).map(as_if_whole).as_ref() != Some(session) {
            return Err(format!("session {name}: {session} became {:?}", found.sessions.get(name)));
        }
    }
    for (name, inbox) in &known.inboxes {
        rows(inbox, &found.inboxes[name], |row| row["state"] == "damaged")?;
    }
    rows(&known.events, &found.events, |row| row["kind"] == "damaged")
}

/// The session with its damaged messages counted as queued.
fn as_if_whole(session: &Value) -> Value {
    let mut session = session.clone();
    let inbox = session["inbox"].as_object_mut().unwrap();
    let damaged = inbox.remove("damaged").and_then(|count| count.as_u64()).unwrap_or(0);
    inbox["queued"] = (inbox["queued"].as_u64().unwrap() + damaged).into();
    session
}

fn rows(known: &[Value], found: &[Value], damaged: impl Fn(&Value) -> bool) -> Result<(), String> {
    let mut named = found.iter().filter(|row| damaged(row)).count();
    for row in known.iter().filter(|row| !found.contains(row)) {
        named = named.checked_sub(1).ok_or_else(|| format!("{row} is gone or changed: {found:#?}"))?;
    }
    Ok(())
}

/// A byte to change.
#[derive(Debug, Clone)]
struct Flip {
    end: End,
    file: PathBuf,
    at: usize,
    by: u8,
}

fn files_below(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files_below(&entry.path(), into);
        } else if kind.is_file() {
            into.push(entry.path());
        }
    }
}

/// Half of the flips are in the database and its log, half of those after `down`; the rest are everywhere else.
fn draw(dice: &mut Dice, number: usize, homes: &[(End, &Prepared); 2]) -> Flip {
    let (end, home) = homes[number % 2];
    let mut files = Vec::new();
    files_below(&home.world.home, &mut files);
    files.retain(|file| file.metadata().unwrap().len() > 0 && !file.ends_with("reserve"));
    files.sort();
    let database = |file: &&PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        ["pinfold.db", "pinfold.db-wal"].contains(&name.as_str())
    };
    let of_database: Vec<&PathBuf> = files.iter().filter(database).collect();
    let others: Vec<&PathBuf> =
        files.iter().filter(|file| !database(file) && !file.ends_with("pinfold.db-shm")).collect();
    let choices = if (number / 2).is_multiple_of(2) { of_database } else { others };
    let file = choices[dice.below(choices.len())];
    let bytes = std::fs::read(file).unwrap();
    // The part that was never written is as large as all the rest.
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(bytes.len(), |last| last + 1);
    let by = u8::try_from(1 + dice.below(255)).unwrap();
    Flip { end, file: file.strip_prefix(&home.world.home).unwrap().to_owned(), at: dice.below(used), by }
}

fn try_one(flip: &Flip, home: &Prepared) -> Result<&'static str, String> {
    let world = World::new();
    copy(&home.world.home, &world.home);
    let path = world.home.join(&flip.file);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[flip.at] ^= flip.by;
    std::fs::write(&path, bytes).unwrap();
    let found = read(&world);
    let verdict = match found {
        Err(_) => Ok("named"),
        Ok(found) if found.events.starts_with(&home.known.events) => {
            compare(&home.known, &found).map(|()| "equal")
        }
        Ok(found) => compare(&home.known, &found).map(|()| "named"),
    };
    _ = world.run(&["down"]);
    verdict
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (kind, target) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_flipped_byte_changes_nothing_in_silence() {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let seed = variable("PINFOLD_SEED").unwrap_or(clock as u64);
    let flips = variable("PINFOLD_FLIPS").unwrap_or(FLIPS);
    println!("PINFOLD_SEED={seed} PINFOLD_FLIPS={flips}");
    let (down, killed) = (prepare(End::Down), prepare(End::Killed));
    let mut dice = Dice(seed);
    let homes = [(End::Down, &down), (End::Killed, &killed)];
    let all: Vec<Flip> = (0..flips).map(|number| draw(&mut dice, number, &homes)).collect();
    let next = AtomicUsize::new(0);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut wrong = Vec::new();
            while let Some(flip) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let home = if flip.end == End::Down { &down } else { &killed };
                match try_one(flip, home) {
                    Ok(verdict) => println!("{verdict}: {flip:?}"),
                    Err(what) => wrong.push(format!("{flip:?}: {what}")),
                }
            }
            wrong
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "seed {seed}, {} of {flips}:\n{}", wrong.len(), wrong.join("\n"));
}

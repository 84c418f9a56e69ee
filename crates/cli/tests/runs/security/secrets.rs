//! Values of variables: given, kept apart, and gone when they are removed.

use crate::processes;
use crate::world::World;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

const SECRET: &str = "hunter2-hunter2-hunter2";
pub(super) const NOWHERE: [PathBuf; 0] = [];
const OTHER: &str = "correct-horse-battery";

/// The files below a folder that contain a text.
pub(super) fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_with(&path, text));
        } else if entry.file_type().unwrap().is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

fn given(value: &str) -> String {
    format!("TOK={value}")
}

/// An agent that writes down the value it was given, at each start.
const TELLS: [&str; 3] = ["sh", "-c", "echo \"$TOK\" >>\"$ROOT/told\"; exec sleep 1000"];

fn new(world: &World, name: &str, value: &str) {
    let options = ["new", name, "--env", "ROOT", "--env", &given(value), "--"];
    world.ok(&[&options[..], &TELLS[..]].concat());
}

/// The values that the agents were given, once this many have started.
fn told(world: &World, count: usize) -> Vec<String> {
    let until = Instant::now() + processes::PATIENCE;
    loop {
        let text = std::fs::read_to_string(world.path("told")).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() >= count {
            return lines;
        }
        assert!(Instant::now() < until, "only {lines:?}");
    }
}

#[test]
fn nothing_of_a_removed_sessions_values_is_left_below_the_home() {
    let world = World::new();
    new(&world, "gone", SECRET);
    told(&world, 1);
    assert!(!files_with(&world.home, SECRET).is_empty(), "it is kept somewhere");
    world.ok(&["archive", "gone"]);
    world.ok(&["rm", "gone", "--yes"]);
    assert_eq!(files_with(&world.home, SECRET), NOWHERE, "while the daemon is up");
    world.ok(&["down"]);
    assert_eq!(files_with(&world.home, SECRET), NOWHERE);
}

#[test]
fn nothing_of_a_value_that_was_replaced_is_left_below_the_home() {
    let world = World::new();
    new(&world, "a", SECRET);
    world.ok(&["set", "a", "--env", &given(OTHER)]);
    assert_eq!(files_with(&world.home, SECRET), NOWHERE);
    world.ok(&["restart", "a"]);
    assert_eq!(told(&world, 2), [SECRET, OTHER]);
    world.ok(&["set", "a", "--idle", "10s"]);
    world.ok(&["down"]);
    assert_eq!(files_with(&world.home, SECRET), NOWHERE);
    world.ok(&["up"]);
    assert_eq!(told(&world, 3)[2], OTHER, "and the new one is still there");
}

#[test]
fn values_are_in_one_private_file_and_nowhere_else() {
    let world = World::new();
    new(&world, "a", SECRET);
    told(&world, 1);
    for words in
        [&["show", "a"] as &[&str], &["ls"], &["why", "a"], &["events"], &["logs", "a"], &["inbox", "a"]]
    {
        let (plain, json) = (world.ok(words), world.ok(&[&["--json"], words].concat()));
        assert!(!format!("{plain:?}{json:?}").contains(SECRET), "{words:?}");
    }
    let found = files_with(&world.home, SECRET);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(!found[0].to_str().unwrap().contains("pinfold.db"), "it is in the database");
    assert_eq!(std::fs::metadata(&found[0]).unwrap().mode() & 0o777, 0o600);
    assert!(world.show("a")["env"].as_array().unwrap().contains(&"TOK".into()), "its name is shown");
}

#[test]
fn a_crash_of_the_daemon_loses_no_value_of_a_session_that_was_acknowledged() {
    let world = World::new();
    new(&world, "a", SECRET);
    world.kill_daemon();
    world.ok(&["restart", "a"]);
    assert_eq!(told(&world, 2), [SECRET, SECRET]);
    world.ok(&["set", "a", "--env", &given(OTHER)]);
    world.kill_daemon();
    world.ok(&["restart", "a"]);
    assert_eq!(told(&world, 3)[2], OTHER);
}

#[test]
fn a_file_that_no_session_names_is_gone_after_the_next_start() {
    let world = World::new();
    new(&world, "a", SECRET);
    let kept = files_with(&world.home, SECRET).remove(0);
    world.ok(&["down"]);
    let orphan = kept.with_file_name("01JCZZZZZZZZZZZZZZZZZZZZZZ");
    std::fs::copy(&kept, &orphan).unwrap();
    world.ok(&["up"]);
    assert_eq!(files_with(&world.home, SECRET), [kept]);
}

#[test]
fn a_session_whose_values_were_lost_is_not_started_without_them() {
    let world = World::new();
    new(&world, "a", SECRET);
    told(&world, 1);
    world.ok(&["down"]);
    std::fs::remove_file(files_with(&world.home, SECRET).remove(0)).unwrap();
    world.ok(&["up"]);
    let refused = world.run(&["show", "a"]);
    assert_eq!(refused.code, 65, "{refused:?}");
    assert!(refused.stderr.contains("env-values"), "{refused:?}");
    assert_eq!(told(&world, 1).len(), 1, "it ran once, and not without its values");
}

#[test]
fn a_backup_has_the_values_and_brings_them_back() {
    let world = World::new();
    new(&world, "a", SECRET);
    told(&world, 1);
    let copy = world.path("copy");
    world.ok(&["backup", copy.to_str().unwrap()]);
    assert_eq!(std::fs::metadata(&copy).unwrap().mode() & 0o777, 0o600);
    world.ok(&["archive", "a"]);
    world.ok(&["rm", "a", "--yes"]);
    world.ok(&["down"]);
    assert_eq!(files_with(&world.home, SECRET), NOWHERE);
    world.ok(&["restore-backup", copy.to_str().unwrap()]);
    world.ok(&["restart", "a"]);
    assert_eq!(told(&world, 2)[1], SECRET);
    let found = files_with(&world.home, SECRET);
    assert_eq!(found.len(), 1, "in its file, and not in the database: {found:?}");
}

#[test]
fn values_in_a_database_of_the_version_before_are_moved_out_and_wiped() {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/before");
    let before = std::env::var_os("PINFOLD_BEFORE").map_or_else(usual, PathBuf::from).join("pinfold");
    assert!(before.is_file(), "{} is missing: `./test before` makes it", before.display());
    let mut world = World::new();
    let now = std::mem::replace(&mut world.binary, before);
    new(&world, "a", SECRET);
    told(&world, 1);
    world.ok(&["set", "a", "--tag", "x"]);
    world.ok(&["down"]);
    assert!(!files_with(&world.home, SECRET).is_empty(), "the version before has it in its database");
    world.binary = now;
    world.ok(&["up"]);
    assert_eq!(told(&world, 2)[1], SECRET, "it is started with what it was given");
    let outside = || {
        let found = files_with(&world.home, SECRET);
        found.into_iter().filter(|path| !path.parent().unwrap().ends_with("env-values")).collect::<Vec<_>>()
    };
    let until = Instant::now() + processes::PATIENCE;
    while !outside().is_empty() {
        assert!(Instant::now() < until, "it is still in {:?}", outside());
    }
    world.ok(&["down"]);
    world.ok(&["up"]);
    assert_eq!(told(&world, 3)[2], SECRET);
    assert_eq!(outside(), NOWHERE);
}

/// A file of variables with this mode.
fn env_file(world: &World, text: &str, mode: u32) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = world.path("variables");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn variables_are_read_from_a_file_and_one_that_is_open_to_others_is_warned_of() {
    let world = World::new();
    let text = format!("# secrets\n\nTOK={SECRET}\nOTHER=from the file\nROOT={}\n", world.root.display());
    let file = env_file(&world, &text, 0o600);
    let options = ["new", "a", "--env-file", &file, "--env", "OTHER=given", "--"];
    world
        .ok(&[&options[..], &["sh", "-c", "echo \"$TOK $OTHER\" >\"$ROOT/told\"; exec sleep 1000"]].concat());
    assert_eq!(told(&world, 1), [format!("{SECRET} given")]);
    for mode in [0o640, 0o604, 0o620, 0o666] {
        let file = env_file(&world, &text, mode);
        let warned = world.ok(&[
            "new",
            &format!("b{mode:o}"),
            "--env-file",
            &file,
            "--mode",
            "on-demand",
            "--",
            "true",
        ]);
        assert!(warned.stderr.contains(&format!("open to others (mode 0{mode:o})")), "{mode:o}: {warned:?}");
        assert!(!format!("{warned:?}").contains(SECRET), "{warned:?}");
    }
    let file = env_file(&world, "A=1\n=2\n", 0o600);
    let refused = world.run(&["new", "b", "--env-file", &file, "--", "true"]);
    assert!(refused.code == 78 && refused.stderr.contains("line 2"), "{refused:?}");
    assert_eq!(world.run(&["new", "b", "--env-file", "/no/such/file", "--", "true"]).code, 78);
}

#[test]
fn names_of_pinfolds_own_and_names_that_are_none_cannot_be_given() {
    let world = World::new();
    for word in [
        "PINFOLD_HOME=/x",
        "PINFOLD_LOCKS=/x",
        "PINFOLD_LOCK_RUNS=1",
        "PINFOLD_ANYTHING=",
        "A\nB=1",
        "A\u{1b}[31m=1",
    ] {
        for verb in ["new", "run"] {
            let refused = world.run(&[verb, "a", "--env", word, "--", "true"]);
            assert_eq!(refused.code, 2, "{verb} {word:?}: {refused:?}");
            assert!(!refused.stderr.contains('\u{1b}'), "{refused:?}");
        }
    }
}

//! Answers that are too long for a row: complete wherever one is asked for, whichever process dies meanwhile,
//! and gone with their messages.

use crate::world::World;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const LONG: usize = 3_000_000;
/// The longest possible answer.
const LONGEST: u64 = 32 << 20;

pub(crate) fn folder(world: &World) -> PathBuf {
    world.home.join("sessions").join(world.show("a")["id"].as_str().unwrap()).join("answers")
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn world() -> World {
    let world = World::new();
    world.with_player("");
    world.play("a");
    world
}

/// Sends a message once, and waits for the answer: sending it again with its key gives the same answer.
pub(crate) fn answer(world: &World, text: &str) -> String {
    let said = world.ok(&["send", "a", text, "--key", text, "--wait", "240s"]).stdout;
    said.strip_suffix('\n').unwrap().to_owned()
}

fn aged(path: &Path) {
    let at = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
    std::fs::File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
}

#[test]
fn a_long_answer_is_whole_but_in_lists_private_in_every_backup_and_goes_with_rm() {
    let world = world();
    let text = format!("answer_{LONG}");
    assert!(answer(&world, &text) == "x".repeat(LONG));
    let row = world.inbox("a").remove(0);
    assert_eq!((row["answer"].as_str().unwrap().len(), &row["answer_bytes"]), (4096, &json!(LONG)));
    let folder = folder(&world);
    assert_eq!(names(&folder), [row["id"].as_str().unwrap()]);
    let file = folder.join(row["id"].as_str().unwrap());
    for (path, mode) in [(&file, 0o600), (&folder, 0o700)] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
    }
    let copy = world.path("copy.db").display().to_string();
    world.ok(&["backup", &copy]);
    world.ok(&["down"]);
    // Whatever happens to the home, the backup has it.
    std::fs::remove_file(&file).unwrap();
    world.ok(&["restore-backup", &copy]);
    world.ok(&["up"]);
    assert!(answer(&world, &text) == "x".repeat(LONG), "what was put back has all of it");
    assert!(answer(&world, "answer_2000000") == "x".repeat(2_000_000));
    assert_eq!(names(&folder).len(), 1);
    world.ok(&["stop", "a"]);
    world.ok(&["archive", "a"]);
    world.ok(&["rm", "a", "--yes"]);
    world.until("nothing is left", || names(&folder).is_empty().then_some(()));
}

#[test]
fn an_answer_whose_file_is_gone_is_said_to_be_damaged() {
    let world = world();
    let text = format!("answer_{LONG}");
    answer(&world, &text);
    let file = folder(&world).join(world.inbox("a")[0]["id"].as_str().unwrap());
    std::fs::remove_file(&file).unwrap();
    let told = world.run(&["send", "a", &text, "--key", &text, "--wait", "240s"]);
    assert_eq!(told.code, 65, "{told:?}");
    assert_eq!(world.inbox("a")[0]["answer_bytes"], json!(LONG), "lists have the rest");
}

/// The answer comes in parts, and the daemon that hears the end is not the one that heard the beginning.
#[test]
fn an_answer_in_parts_is_whole_whoever_hears_them() {
    for parts in [5, 30] {
        let world = world();
        let text = format!("texts_{parts}");
        let id = world.told("a", &text);
        world.message("a", &id, "delivered");
        let draft = folder(&world).join(format!("{id}.part"));
        world.until("some of it is kept", || draft.exists().then_some(()));
        for _ in 0..2 {
            world.kill_daemon();
            world.ok(&["up"]);
        }
        std::fs::write(world.path("go"), "").unwrap();
        let row = world.message("a", &id, "done");
        assert_eq!((&row["answer_bytes"], row.get("answer_cut")), (&json!(parts * 100_000), None), "{parts}");
        let whole = world.ok(&["--json", "send", "a", &text, "--wait", "240s"]).stdout;
        assert!(whole.contains(&"x".repeat(parts * 100_000)));
        world.until("no draft is left", || (!draft.exists()).then_some(()));
        world.check_history();
    }
}

#[test]
fn an_answer_over_the_bound_is_cut_and_that_is_said() {
    let world = world();
    std::fs::write(world.path("go"), "").unwrap();
    let told = world.ok(&["send", "a", "texts_400", "--wait", "240s"]);
    assert_eq!(told.stdout.len() as u64, LONGEST + 1);
    assert!(told.stderr.contains("the answer is cut"), "{}", told.stderr);
    let row = world.inbox("a").remove(0);
    assert_eq!((&row["answer_bytes"], &row["answer_cut"]), (&json!(LONGEST), &json!(true)));
}

#[test]
fn files_that_no_message_has_are_removed_and_no_others() {
    let world = world();
    answer(&world, &format!("answer_{LONG}"));
    let (folder, id) = (folder(&world), world.inbox("a")[0]["id"].as_str().unwrap().to_owned());
    world.ok(&["down"]);
    let strange = ["01JCAAAAAAAAAAAAAAAAAAAAAA", "01JCAAAAAAAAAAAAAAAAAAAAAB.part", &format!("{id}.part")];
    for name in strange.iter().chain(&["young.part", "notes.txt"]) {
        std::fs::write(folder.join(name), "x").unwrap();
    }
    let young = folder.join("01JCAAAAAAAAAAAAAAAAAAAAAC");
    std::fs::write(&young, "x").unwrap();
    strange.iter().for_each(|name| aged(&folder.join(name)));
    aged(&folder.join(&id));
    aged(&folder.join("notes.txt"));
    world.ok(&["up"]);
    world.until("they are gone", || strange.iter().all(|name| !folder.join(name).exists()).then_some(()));
    assert!(folder.join(&id).exists() && young.exists() && folder.join("notes.txt").exists());
}

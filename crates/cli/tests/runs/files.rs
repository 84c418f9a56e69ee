//! Files and folders: their owner, their permissions, and what happens when they are damaged.

use crate::rights::needs;
use crate::world::{World, finish};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(below(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn nobody_else_can_read_anything_even_under_an_open_umask() {
    let world = World::new();
    let script = "umask 000; exec \"$@\"";
    let binary = env!("CARGO_BIN_EXE_pinfold");
    let mut shell = std::process::Command::new("sh");
    shell.args([
        "-c",
        script,
        "sh",
        binary,
        "--json",
        "new",
        "a",
        "--",
        "sh",
        "-c",
        "umask; exec sleep 100000",
    ]);
    shell
        .env("PINFOLD_HOME", &world.home)
        .env("PINFOLD_LOCKS", world.path("locks"))
        .env("XDG_STATE_HOME", world.path("state"))
        .current_dir(&world.root);
    let answer = finish(&mut shell);
    assert_eq!(answer.code, 0, "{answer:?}");
    // The agent's own files are its own affair.
    assert_eq!(world.printed("a", "0"), "000");
    world.ok(&["stop", "a"]);
    for path in below(&world.home).into_iter().chain(below(&world.path("locks"))) {
        let facts = std::fs::symlink_metadata(&path).unwrap();
        let wanted = if facts.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(facts.permissions().mode() & 0o777, wanted, "{}", path.display());
    }
}

#[test]
fn a_home_that_is_open_to_others_is_tightened_and_said_so() {
    let world = World::new();
    std::fs::create_dir(&world.home).unwrap();
    std::fs::set_permissions(&world.home, std::fs::Permissions::from_mode(0o755)).unwrap();
    let answer = world.ok(&["ls"]);
    assert!(answer.stderr.contains("0755"), "{answer:?}");
    assert_eq!(std::fs::metadata(&world.home).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn the_home_of_another_user_is_refused() {
    needs!(OtherUser);
    let world = World::new();
    std::fs::create_dir(&world.home).unwrap();
    std::os::unix::fs::chown(&world.home, Some(12345), Some(12345)).unwrap();
    for verb in [&["ls"][..], &["up"], &["status"], &["new", "a", "--", "true"]] {
        let answer = world.run(&[&["--json"], verb].concat());
        assert_eq!(
            (answer.code, &answer.json()["error"]["kind"]),
            (77, &"not_permitted".into()),
            "{answer:?}"
        );
    }
    assert_eq!(std::fs::read_dir(&world.home).unwrap().count(), 0);
}

#[test]
fn a_damaged_database_is_refused_and_left_as_it_is() {
    let world = World::new();
    world.json(&["new", "a", "--mode", "on-demand", "--", "true"]);
    world.ok(&["down"]);
    let file = world.home.join("pinfold.db");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[..64].fill(0x5A);
    std::fs::write(&file, &bytes).unwrap();
    for verb in [&["up"][..], &["ls"], &["new", "b", "--", "true"]] {
        let answer = world.run(&[&["--json"], verb].concat());
        assert_eq!((answer.code, &answer.json()["error"]["kind"]), (65, &"damaged".into()), "{answer:?}");
        assert!(answer.stderr.contains("hint: "), "{answer:?}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "{verb:?}");
    }
}

#[test]
fn a_database_of_a_later_version_is_refused_and_left_as_it_is() {
    let world = World::new();
    world.ok(&["up"]);
    world.ok(&["down"]);
    let file = world.home.join("pinfold.db");
    // The user version of an SQLite file is at offset 60, big endian.
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[60..64].copy_from_slice(&9999_u32.to_be_bytes());
    std::fs::write(&file, &bytes).unwrap();
    let answer = world.run(&["--json", "up"]);
    assert_eq!((answer.code, &answer.json()["error"]["kind"]), (65, &"damaged".into()), "{answer:?}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_home_with_a_path_that_is_too_long_for_a_socket_works() {
    let mut world = World::new();
    world.home = world.root.join("a-rather-long-name-of-a-folder-".repeat(6));
    world.json(&["new", "a", "--", "sleep", "100000"]);
    let pid = world.pid("a");
    world.kill_daemon();
    world.ok(&["up"]);
    world.wait("a", "running");
    assert_eq!(world.pid("a"), pid);
    assert_eq!(world.events_of("a", "adopted").len(), 1);
    // Agents and programs that know nothing about this can connect as well.
    for socket in [
        crate::processes::variable(pid, "PINFOLD_SOCKET"),
        world.json(&["status"])["socket"].as_str().map(str::to_owned),
    ] {
        assert!(std::os::unix::net::UnixStream::connect(socket.unwrap()).is_ok());
    }
    assert_eq!(world.members().len(), 1);
    world.ok(&["down"]);
    assert!(!crate::processes::lives(pid));
}

#[test]
fn two_homes_have_two_daemons_and_two_sessions_of_one_name() {
    let (one, two) = (World::new(), World::new());
    one.json(&["new", "a", "--", "sleep", "100000"]);
    two.json(&["new", "a", "--", "sleep", "100000"]);
    assert_ne!(one.daemon_pid(), two.daemon_pid());
    assert_ne!(one.pid("a"), two.pid("a"));
    one.ok(&["down"]);
    assert_eq!(two.show("a")["state"], "running");
}

#[test]
fn the_log_of_the_daemon_is_bounded_while_it_runs() {
    let world = World::new();
    world.ok(&["up"]);
    // With an unusable lock folder, the daemon complains at every start.
    let log = world.home.join("daemon.log");
    let padding = "x".repeat((1 << 20) + 1);
    let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
    std::io::Write::write_all(&mut file, padding.as_bytes()).unwrap();
    std::fs::rename(world.path("locks"), world.path("locks-away")).unwrap();
    std::fs::write(world.path("locks"), "not a folder").unwrap();
    std::fs::create_dir(world.path("work")).unwrap();
    let dir = world.path("work");
    world.run(&["new", "a", "--dir", dir.to_str().unwrap(), "--", "sleep", "100000"]);
    world.run(&["start", "a"]);
    assert!(std::fs::metadata(&log).unwrap().len() < 1 << 20, "{}", world.daemon_log());
    assert!(std::fs::metadata(log.with_extension("log.1")).unwrap().len() > 1 << 20);
}

#[test]
fn one_damaged_record_parks_one_session_loudly() {
    let world = World::new();
    world.json(&["new", "good", "--", "sleep", "100000"]);
    world.json(&["new", "bad", "--mode", "on-demand", "--", "true"]);
    let pid = world.pid("good");
    world.ok(&["down", "--keep"]);
    let database = rusqlite::Connection::open(world.home.join("pinfold.db")).unwrap();
    assert_eq!(database.execute("UPDATE sessions SET core = '{' WHERE name = 'bad'", []), Ok(1));
    drop(database);
    world.ok(&["up"]);
    world.wait("good", "running");
    assert_eq!(world.pid("good"), pid);
    for verb in [&["show", "bad"][..], &["start", "bad"], &["new", "bad", "--", "true"]] {
        let answer = world.run(&[&["--json"], verb].concat());
        assert_eq!((answer.code, &answer.error()["kind"]), (65, &"damaged".into()), "{answer:?}");
    }
    assert_eq!(world.json(&["status"])["damaged"], serde_json::json!(["bad"]));
    world.ok(&["stop", "good"]);
    world.check_history();
}

//! Nothing that pinfold did not make is changed or removed.

use super::snapshot;
use crate::world::{Answer, Ends, World, finish};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn set_mode(path: &Path, bits: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
}

/// A typical project, with folders named like ours.
fn project(root: &Path) {
    for folder in ["runs/exp1", "runs/1234-5", "sessions/mon", "locks", "shims", ".git"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in ["runs/exp1/model.ckpt", "runs/1234-5/log", "sessions/mon/notes", "locks/key", "config.toml"]
    {
        std::fs::write(root.join(file), "weights").unwrap();
    }
    set_mode(root, 0o755);
}

#[test]
fn a_project_is_refused_as_home_and_nothing_in_it_changes() {
    let world = World::new();
    let ml = world.path("ml");
    project(&ml);
    let before = snapshot::of(&ml);
    let verbs = [
        &["run", "x", "--", "true"][..],
        &["up"],
        &["ls"],
        &["locks"],
        &["lock", "session:x", "--", "true"],
        &["--trust", "up"],
    ];
    for words in verbs {
        let mut command = world.command(&[&["--home", "."], words].concat());
        let answer = finish(command.current_dir(&ml));
        assert_eq!(answer.code, 78, "{words:?}: {answer:?}");
        assert!(answer.stderr.contains("is not a home of pinfold"), "{answer:?}");
        assert_eq!(snapshot::of(&ml), before, "{words:?}");
    }
}

/// The contents of a file as if its daemon had run on another machine.
fn of_another_boot(file: &Path) -> Vec<u8> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let (boot, other) = (boot.trim().as_bytes(), b"00000000-0000-4000-8000-000000000000");
    let mut bytes = std::fs::read(file).unwrap();
    while let Some(at) = bytes.windows(boot.len()).position(|window| window == boot) {
        bytes[at..at + boot.len()].copy_from_slice(other);
    }
    bytes
}

/// A home that comes with a repository: a database with a session that always runs.
fn cloned(world: &World, session: &str) -> std::path::PathBuf {
    world.ok(&["new", "evil", "--mode", "always", "--", "sh", "-c", session]);
    world.ok(&["down"]);
    let clone = world.path("clone/.pinfold");
    std::fs::create_dir_all(&clone).unwrap();
    for name in ["pinfold.db", "pinfold.db-wal", "witness"] {
        if world.home.join(name).exists() {
            std::fs::write(clone.join(name), of_another_boot(&world.home.join(name))).unwrap();
        }
    }
    set_mode(&clone, 0o755);
    clone
}

#[test]
fn the_home_of_a_clone_runs_nothing_until_its_user_trusts_it_once() {
    let world = World::new();
    let clone = cloned(&world, "echo ran >>$PINFOLD_HOME/../ran; exec sleep 1000");
    let before = snapshot::of(&clone);
    let at_clone = |words: &[&str]| -> Answer {
        finish(world.command(&[&["--home", "clone/.pinfold"], words].concat()).env_remove("PINFOLD_HOME"))
    };
    for words in [&["ls"][..], &["up"], &["new", "x", "--", "true"], &["locks"]] {
        let answer = at_clone(words);
        assert_eq!(answer.code, 78, "{words:?}: {answer:?}");
        assert!(
            answer.stderr.contains("was not made here") && answer.stderr.contains("--trust"),
            "{answer:?}"
        );
    }
    assert_eq!(snapshot::of(&clone), before);
    assert!(!world.path("clone/ran").exists());
    assert_eq!(at_clone(&["--trust", "ls"]).code, 0);
    assert_eq!(at_clone(&["ls"]).code, 0, "once is enough");
    assert_eq!(at_clone(&["down"]).code, 0);
}

#[test]
fn a_marker_that_came_along_is_not_believed() {
    let world = World::new();
    let clone = cloned(&world, "exec sleep 1000");
    std::fs::copy(world.home.join(".pinfold-home"), clone.join(".pinfold-home")).unwrap();
    let unknown = |name: &str| {
        let mut command = world.command(&["--home", "clone/.pinfold", "--no-start", "ls"]);
        // Another user of another machine, who does not know this home.
        finish(command.env("XDG_STATE_HOME", world.path(name))).code
    };
    assert_eq!(unknown("elsewhere"), 78);
    assert_eq!(unknown("state"), 69, "a copy of one's own home is known");
}

#[test]
fn a_configuration_that_names_programs_is_asked_about_in_a_clone_only() {
    let world = World::new();
    for folder in ["clone/.git", "clone/pf", "own"] {
        std::fs::create_dir_all(world.path(folder)).unwrap();
    }
    std::fs::write(world.path("clone/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    for home in ["clone/pf", "own"] {
        std::fs::write(world.path(home).join("config.toml"), "[agents.claude]\ncommand = [\"./evil\"]\n")
            .unwrap();
    }
    let asked = |words: &[&str], home| {
        finish(world.command(&[&["--home", home], words].concat()).env_remove("PINFOLD_HOME")).code
    };
    assert_eq!(asked(&["--no-start", "ls"], "clone/pf"), 78);
    assert_eq!(asked(&["--no-start", "--trust", "ls"], "clone/pf"), 69);
    assert_eq!(asked(&["--no-start", "ls"], "clone/pf"), 69);
    assert_eq!(asked(&["--no-start", "ls"], "own"), 69);
}

#[test]
fn homes_work_without_a_question_where_nothing_can_be_remembered() {
    let world = World::new();
    std::fs::write(world.path("file"), "").unwrap();
    std::fs::create_dir(&world.home).unwrap();
    let without = |words: &[&str]| {
        let mut command = world.command(words);
        finish(command.env("XDG_STATE_HOME", world.path("file/state")).env_remove("HOME"))
    };
    for words in [
        &["up"][..],
        &["new", "a", "--mode", "on-demand", "--", "true"],
        &["down"],
        &["up"],
        &["ls"],
        &["down"],
    ] {
        let answer = without(words);
        assert_eq!(answer.code, 0, "{words:?}: {answer:?}");
    }
}

#[test]
fn a_home_is_known_after_it_was_moved() {
    let mut world = World::new();
    world.ok(&["up"]);
    world.ok(&["down"]);
    std::fs::rename(&world.home, world.path("moved")).unwrap();
    std::fs::remove_dir_all(world.path("state")).unwrap();
    world.home = world.path("moved");
    std::fs::remove_dir_all(world.home.join("locks")).unwrap();
    world.ok(&["up"]);
    world.ok(&["down"]);
}

#[test]
fn a_home_of_the_version_before_is_known_in_the_usual_place_and_where_its_daemon_lives() {
    let mut world = World::new();
    let old = |world: &World, words: &[&str]| {
        let mut command = Command::new(before());
        command.args(words).current_dir(&world.root).stdin(std::process::Stdio::null());
        for (name, value) in world.command(&[]).get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let answer = finish(&mut command);
        assert_eq!(answer.code, 0, "{words:?} of the version before: {answer:?}");
    };
    old(&world, &["up"]);
    // Only the living daemon shows that it was made here.
    std::fs::remove_dir_all(world.home.join("locks")).unwrap();
    world.ok(&["ls"]);
    world.ok(&["down"]);
    world.home = world.path("state/pinfold");
    old(&world, &["up"]);
    old(&world, &["down"]);
    std::fs::remove_dir_all(world.home.join("locks")).unwrap();
    world.ok(&["up"]);
    world.ok(&["down"]);
}

/// The `pinfold` of the version before.
pub(super) fn before() -> std::path::PathBuf {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/before");
    let folder = std::env::var_os("PINFOLD_BEFORE").map_or_else(usual, std::path::PathBuf::from);
    let program = folder.join("pinfold");
    assert!(program.is_file(), "{} is missing: `./test before` makes it", program.display());
    program.canonicalize().unwrap()
}

#[test]
fn several_first_verbs_at_once_make_one_home() {
    for _ in 0..5 {
        let world = World::new();
        std::fs::create_dir(&world.home).unwrap();
        let verbs: Vec<_> = (0..8)
            .map(|_| {
                world
                    .command(&["ls"])
                    .stderr(std::process::Stdio::piped())
                    .stdout(std::process::Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for verb in verbs {
            let answer = verb.finished();
            assert_eq!(answer.code, 0, "{answer:?}");
        }
        world.ok(&["down"]);
    }
}

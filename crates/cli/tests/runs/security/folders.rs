//! Private folders: owner, mode, no links.

use super::{OTHER, snapshot};
use crate::rights::needs;
use crate::world::{World, finish};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;

fn set_mode(path: &Path, bits: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A folder of the caller's that is open to everyone, and another user's link to it.
fn lure(world: &World) -> std::path::PathBuf {
    let public = world.path("public");
    std::fs::create_dir(&public).unwrap();
    set_mode(&public, 0o755);
    std::fs::create_dir(world.path("shared")).unwrap();
    set_mode(&world.path("shared"), 0o1777);
    symlink(&public, world.path("shared/pf")).unwrap();
    lchown(world.path("shared/pf"), Some(OTHER), None).unwrap();
    public
}

#[test]
fn a_home_that_is_another_users_link_is_refused_and_what_it_leads_to_stays_open() {
    needs!(OtherUser);
    let mut world = World::new();
    let public = lure(&world);
    world.home = world.path("shared/pf");
    for verb in ["up", "ls", "locks"] {
        let answer = world.run(&[verb]);
        assert_eq!(answer.code, 77, "{verb}: {answer:?}");
        assert!(answer.stderr.contains(&format!("user {OTHER}")), "{answer:?}");
    }
    assert_eq!((mode(&public), std::fs::read_dir(&public).unwrap().count()), (0o755, 0));
}

#[test]
fn a_home_that_is_an_own_link_is_used_where_it_leads() {
    let mut world = World::new();
    std::fs::create_dir(world.path("real")).unwrap();
    symlink("real", world.path("link")).unwrap();
    world.home = world.path("link");
    world.ok(&["up"]);
    assert!(world.path("real/pinfold.db").exists());
    assert_eq!(mode(&world.path("real")), 0o700);
    world.ok(&["down"]);
}

#[test]
fn a_lock_folder_that_is_another_users_link_is_refused() {
    needs!(OtherUser);
    let world = World::new();
    let public = lure(&world);
    let mut command = world.command(&["lock", "key:a", "--", "true"]);
    let answer = finish(command.env("PINFOLD_LOCKS", world.path("shared/pf")));
    assert_eq!(answer.code, 77, "{answer:?}");
    assert_eq!((mode(&public), std::fs::read_dir(&public).unwrap().count()), (0o755, 0));
}

#[test]
fn a_lock_folder_with_other_files_in_it_is_refused_and_left_as_it_is() {
    let world = World::new();
    let notes = world.path("notes");
    std::fs::create_dir(&notes).unwrap();
    std::fs::write(notes.join("todo"), "milk").unwrap();
    set_mode(&notes, 0o755);
    let before = snapshot::of(&notes);
    let mut command = world.command(&["lock", "key:a", "--", "true"]);
    let answer = finish(command.env("PINFOLD_LOCKS", &notes));
    assert_eq!(answer.code, 78, "{answer:?}");
    assert_eq!(snapshot::of(&notes), before);
}

#[test]
fn a_home_below_a_directory_of_another_user_is_refused() {
    needs!(OtherUser);
    let mut world = World::new();
    world.home = world.path("theirs/home");
    std::fs::create_dir_all(&world.home).unwrap();
    chown(world.path("theirs"), Some(OTHER), None).unwrap();
    let answer = world.run(&["up"]);
    assert_eq!(answer.code, 77, "{answer:?}");
    assert!(answer.stderr.contains(&format!("user {OTHER} decides")), "{answer:?}");
    assert_eq!(std::fs::read_dir(&world.home).unwrap().count(), 0);
}

#[test]
fn a_home_that_everybody_could_replace_is_refused() {
    let mut world = World::new();
    world.home = world.path("open/home");
    std::fs::create_dir_all(&world.home).unwrap();
    set_mode(&world.path("open"), 0o777);
    let answer = world.run(&["up"]);
    assert_eq!(answer.code, 77, "{answer:?}");
    set_mode(&world.path("open"), 0o1777);
    world.ok(&["up"]);
    world.ok(&["down"]);
}

/// Runs a verb with the usual home and with sockets in the login's runtime folder.
fn with_login(world: &World, words: &[&str]) -> crate::world::Answer {
    let mut command = world.command(words);
    command.env("XDG_RUNTIME_DIR", world.path("login")).env("XDG_STATE_HOME", world.path("state"));
    command.env_remove("PINFOLD_HOME");
    finish(&mut command)
}

fn in_usual_home() -> World {
    let mut world = World::new();
    world.home = world.path("state/pinfold");
    std::fs::create_dir(world.path("login")).unwrap();
    world
}

#[test]
fn an_own_runtime_folder_is_used() {
    let world = in_usual_home();
    assert_eq!(with_login(&world, &["up"]).code, 0);
    let status = with_login(&world, &["--json", "status"]).json();
    assert_eq!(status["socket"], world.path("login/pinfold/pinfold.sock").to_str().unwrap());
    assert_eq!(status["socket_refused"], serde_json::Value::Null);
    assert_eq!(with_login(&world, &["down"]).code, 0);
}

#[test]
fn a_runtime_folder_that_another_user_made_first_is_not_used_and_status_says_so() {
    needs!(OtherUser);
    let world = in_usual_home();
    set_mode(&world.path("login"), 0o1777);
    std::fs::create_dir(world.path("login/pinfold")).unwrap();
    set_mode(&world.path("login/pinfold"), 0o777);
    chown(world.path("login/pinfold"), Some(OTHER), None).unwrap();
    assert_eq!(with_login(&world, &["up"]).code, 0);
    let status = with_login(&world, &["--json", "status"]).json();
    assert_eq!(status["socket"], world.home.join("pinfold.sock").to_str().unwrap());
    assert!(status["socket_refused"].as_str().unwrap().contains(&format!("user {OTHER}")), "{status}");
    assert!(with_login(&world, &["status"]).stdout.contains("not where it usually is"));
    assert_eq!(with_login(&world, &["run", "x", "--", "true"]).code, 0);
    assert_eq!(std::fs::read_dir(world.path("login/pinfold")).unwrap().count(), 0);
    assert_eq!(with_login(&world, &["down"]).code, 0);
}

#[test]
fn the_runtime_folder_of_another_users_login_is_not_used() {
    needs!(OtherUser);
    let world = in_usual_home();
    set_mode(&world.path("login"), 0o700);
    chown(world.path("login"), Some(OTHER), None).unwrap();
    assert_eq!(with_login(&world, &["up"]).code, 0);
    assert_eq!(std::fs::read_dir(world.path("login")).unwrap().count(), 0);
    assert_eq!(with_login(&world, &["down"]).code, 0);
}

#[test]
fn a_configuration_that_others_can_write_is_refused() {
    let world = World::new();
    std::fs::create_dir(&world.home).unwrap();
    let config = world.home.join("config.toml");
    std::fs::write(&config, "").unwrap();
    for bits in [0o664, 0o646, 0o666] {
        set_mode(&config, bits);
        let answer = world.run(&["up"]);
        assert_eq!(answer.code, 78, "{bits:o}: {answer:?}");
        assert!(
            answer.stderr.contains("config.toml") && answer.stderr.contains(&format!("{bits:04o}")),
            "{answer:?}"
        );
    }
    set_mode(&config, 0o644);
    world.ok(&["up"]);
    world.ok(&["down"]);
}

#[test]
fn a_configuration_of_another_user_is_refused() {
    needs!(OtherUser);
    let world = World::new();
    std::fs::create_dir(&world.home).unwrap();
    let config = world.home.join("config.toml");
    std::fs::write(&config, "").unwrap();
    chown(&config, Some(OTHER), None).unwrap();
    let answer = world.run(&["up"]);
    assert_eq!(answer.code, 78, "{answer:?}");
}

#[test]
fn a_home_whose_folders_were_opened_to_all_is_closed_again() {
    let world = World::new();
    world.ok(&["new", "a", "--mode", "on-demand", "--", "true"]);
    world.ok(&["down"]);
    for folder in ["", "sessions", "locks", "shims"] {
        set_mode(&world.home.join(folder), 0o755);
    }
    let answer = world.ok(&["up"]);
    assert!(answer.stderr.contains("it is 0700 now"), "{answer:?}");
    for folder in ["", "sessions", "locks", "shims"] {
        assert_eq!(mode(&world.home.join(folder)), 0o700, "{folder}");
    }
    world.ok(&["down"]);
}

/// Removes a folder for short names, even if the test fails.
struct Taken(std::path::PathBuf);

impl Drop for Taken {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn where_another_user_took_the_folder_of_short_names_agents_get_another_one() {
    needs!(OtherUser);
    let user = OTHER + 1;
    let taken = Taken(format!("/tmp/pinfold-{user}").into());
    std::fs::create_dir(&taken.0).unwrap();
    let mut world = World::new();
    set_mode(&world.root, 0o755);
    for program in ["pinfold", "pinfold-shim"] {
        crate::program::copy(&world.binary.with_file_name(program), &world.path(program));
    }
    world.binary = world.path("pinfold");
    let own = world.path("own");
    std::fs::create_dir(&own).unwrap();
    chown(&own, Some(user), Some(user)).unwrap();
    let deep = own.join("x".repeat(100));
    world.home = deep.join("home");
    let as_user = |words: &[&str]| {
        let mut command = world.command(words);
        command
            .uid(user)
            .gid(user)
            .env("PINFOLD_LOCKS", own.join("locks"))
            .env("XDG_STATE_HOME", own.join("state"));
        let answer = finish(command.current_dir("/"));
        assert_eq!(answer.code, 0, "{words:?}: {answer:?}");
        answer
    };
    as_user(&["up"]);
    let status = as_user(&["--json", "status"]).json();
    let socket = status["socket"].as_str().unwrap();
    let _made = Taken(Path::new(socket).parent().unwrap().to_owned());
    assert!(socket.starts_with(&format!("/tmp/pinfold-{user}-")) && socket.len() < 108, "{status}");
    assert!(status["socket_refused"].as_str().unwrap().contains(&format!("/tmp/pinfold-{user}")), "{status}");
    std::os::unix::net::UnixStream::connect(socket).unwrap();
    as_user(&["down"]);
    as_user(&["up"]);
    assert_eq!(as_user(&["--json", "status"]).json()["socket"], socket, "the same at every start");
    as_user(&["down"]);
}

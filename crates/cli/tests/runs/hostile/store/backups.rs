//! Copies of the database, and homes whose agents the database does not know.

use crate::processes;
use crate::rights::needs;
use crate::world::World;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const SOON: Duration = crate::processes::PATIENCE;

fn file(world: &World) -> String {
    world.path("backup").to_str().unwrap().to_owned()
}

#[test]
fn a_backup_is_private_never_replaces_and_is_put_back_only_without_a_daemon() {
    let world = World::new();
    world.ok(&["new", "before", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["backup", &file(&world)]);
    let mode = std::fs::metadata(file(&world)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(world.run(&["backup", &file(&world)]).code, 73);
    world.ok(&["new", "after", "--mode", "on-demand", "--", "cat"]);
    assert_eq!(world.run(&["restore-backup", &file(&world)]).code, 75);
    world.ok(&["down"]);
    let generation = |world: &World| world.json(&["status"])["generation"].as_u64().unwrap();
    world.ok(&["up"]);
    let before = generation(&world);
    world.ok(&["down"]);
    world.ok(&["restore-backup", &file(&world)]);
    world.ok(&["up"]);
    let names: Vec<String> = world.sessions().into_keys().filter(|name| name.len() < 20).collect();
    assert_eq!(names, ["before"]);
    assert!(generation(&world) > before, "no shim has seen it");
    assert!(world.events().iter().any(|event| event["kind"] == "backup_restored"));
    world.ok(&["down"]);
}

#[test]
fn a_run_from_the_time_of_a_backup_that_is_put_back_costs_nothing() {
    let world = World::new();
    world.ok(&["new", "runs", "--", "sleep", "1000"]);
    world.ok(&["new", "waits", "--mode", "on-demand", "--", "sleep", "1000"]);
    world.ok(&["start", "waits"]);
    world.ok(&["backup", &file(&world)]);
    // A later life, in which the run had another end and its number was given again.
    world.ok(&["down"]);
    world.ok(&["restore-backup", &file(&world)]);
    world.ok(&["up"]);
    world.wait("runs", "running");
    let runs = world.show("runs");
    assert_eq!(
        (&runs["crashes"], &runs["last_exit"]["code"]),
        (&0.into(), &serde_json::Value::Null),
        "{runs}"
    );
    let said = world.ok(&["show", "runs"]).stdout;
    assert!(said.contains("ended after the backup was made that was put back"), "{said}");
    assert_eq!(world.show("waits")["state"], "idle");
    for name in ["runs", "waits"] {
        let events = world.json(&["events", "--session", name]);
        let kinds: Vec<&str> =
            events.as_array().unwrap().iter().filter_map(|one| one["kind"].as_str()).collect();
        assert!(!kinds.contains(&"backoff"), "{kinds:?}");
        let exited = events.as_array().unwrap().iter().rfind(|one| one["kind"] == "run_exited").unwrap();
        assert_eq!((&exited["end"], &exited["crashes"]), (&"after_backup".into(), &0.into()), "{exited}");
    }
    world.ok(&["down"]);
    world.ok(&["up"]);
    world.wait("runs", "running");
    assert_eq!(
        world.show("runs")["last_exit"]["verdict"],
        "clean",
        "only the first start is of another life"
    );
}

#[test]
fn of_backups_to_one_name_at_once_one_is_made() {
    let world = World::new();
    world.ok(&["new", "a", "--mode", "on-demand", "--", "cat"]);
    let file = file(&world);
    let mut codes = std::thread::scope(|scope| {
        let backup = || world.run(&["backup", &file]).code;
        let all: Vec<_> = (0..4).map(|_| scope.spawn(backup)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<i32>>()
    });
    codes.sort_unstable();
    assert_eq!(codes, [0, 73, 73, 73]);
    world.ok(&["down"]);
    world.ok(&["restore-backup", &file]);
    assert!(world.sessions().contains_key("a"));
}

#[test]
fn another_users_backup_is_refused() {
    needs!(OtherUser);
    let world = World::new();
    world.ok(&["up"]);
    world.ok(&["backup", &file(&world)]);
    world.ok(&["down"]);
    std::os::unix::fs::chown(file(&world), Some(4711), None).unwrap();
    let refused = world.run(&["restore-backup", &file(&world)]);
    assert_eq!(refused.code, 77, "{refused:?}");
}

#[test]
fn agents_that_are_newer_than_a_backup_are_named() {
    let world = World::new();
    world.ok(&["up"]);
    world.ok(&["backup", &file(&world)]);
    world.ok(&["down"]);
    world.ok(&["new", "newer", "--", "sleep", "1000"]);
    let id = world.show("newer")["id"].as_str().unwrap().to_owned();
    world.ok(&["down", "--keep"]);
    let refused = world.run(&["restore-backup", &file(&world)]);
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.stderr.contains(&id), "{refused:?}");
}

#[test]
fn an_agent_that_the_database_does_not_know_is_shown_left_alone_and_ended_by_down() {
    let world = World::new();
    world.ok(&["up"]);
    world.ok(&["backup", &file(&world)]);
    world.ok(&["new", "forgotten", "--", "sleep", "1000"]);
    let (pid, id) = (world.pid("forgotten"), world.show("forgotten")["id"].as_str().unwrap().to_owned());
    let held = processes::Held::open(pid).unwrap();
    world.ok(&["down", "--keep"]);
    world.ok(&["restore-backup", &file(&world)]);
    world.ok(&["up"]);
    assert!(!held.ends_within(Duration::ZERO), "`up` leaves it alone");
    let listed = world.json(&["ls", "--all"]);
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&id.as_str().into(), &"unknown".into()), "{listed}");
    assert_eq!(world.json(&["status"])["unknown"][0]["id"], id.as_str());
    assert_eq!(world.within(SOON, &["down"]).code, 0);
    assert!(held.ends_within(SOON), "`down` ends it");
}

#[test]
fn an_old_copy_under_living_agents_is_obeyed_at_once() {
    let world = World::new();
    world.ok(&["new", "lives", "--", "sleep", "1000"]);
    let pid = world.pid("lives");
    world.ok(&["down", "--keep"]);
    let old = std::fs::read(world.home.join("pinfold.db")).unwrap();
    for _ in 0..3 {
        world.ok(&["up"]);
        world.ok(&["down", "--keep"]);
    }
    // Like a person who puts a copy back by hand and is told to move the witness aside.
    std::fs::write(world.home.join("pinfold.db"), old).unwrap();
    _ = std::fs::remove_file(world.home.join("pinfold.db-wal"));
    _ = std::fs::remove_file(world.home.join("witness"));
    world.ok(&["up"]);
    let why = world.within(SOON, &["why", "lives"]);
    assert!(why.stdout.starts_with("lives is running"), "{why:?}");
    assert_eq!(world.pid("lives"), pid, "it is the same agent");
    world.ok(&["down"]);
}

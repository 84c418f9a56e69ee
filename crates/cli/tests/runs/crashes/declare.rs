//! The daemon dies at every step of `apply`: everything in the file is done, or nothing.

use super::{insist, up, world};
use crate::world::World;
use serde_json::{Value, json};

const FILE: &str = "[sessions.keeps]\nidle = \"7m\"\nenv = { TOK = \"second\" }\n
    [sessions.new]\ncommand = [\"sleep\", \"100000\"]\nparent = \"top\"\nenv = { TOK = \"first\" }\n
    [sessions.top]\ncommand = [\"cat\"]\nmode = \"on-demand\"\n";

/// Which parts of the file are done.
fn done(world: &World) -> [bool; 4] {
    let all = world.sessions();
    let env = all["keeps"]["env"].as_array().unwrap().contains(&json!("TOK"));
    let archived = |name: &str| all[name]["state"] == "archived" || all[name]["state"] == "stopping";
    [all.contains_key("new") && all.contains_key("top"), env, archived("runs"), archived("rests")]
}

/// Applies the file with a daemon that aborts at a point; returns whether it aborted, and whether the file was
/// applied.
fn crash_in_apply_at(point: &str) -> (bool, bool) {
    let world = world();
    insist(&world, &["new", "keeps", "--mode", "on-demand", "--", "cat"]);
    insist(&world, &["new", "rests", "--mode", "on-demand", "--", "cat"]);
    world.guarded("runs", &["--stop-grace", "1s"], "exec sleep 100000");
    world.ok(&["down", "--keep"]);
    let file = world.path("sessions.toml");
    std::fs::write(&file, FILE).unwrap();
    up(&world, point);
    let answer = world.run(&["apply", "--prune", &file.display().to_string()]);
    let aborted = world.daemon_log().contains(&format!("aborts at {point}"));
    assert!(aborted || answer.code == 0, "{point}: {answer:?}\n{}", world.daemon_log());
    world.run(&["down", "--keep"]);
    world.ok(&["up"]);
    let parts = done(&world);
    assert!(parts == [true; 4] || parts == [false; 4], "{point}: {parts:?}");
    assert!(parts[0] || answer.code != 0, "{point}: what was acknowledged counts");
    if parts[0] {
        world.wait("new", "running");
        world.wait("runs", "archived");
        world.wait("rests", "archived");
        assert_eq!(world.sessions()["new"]["parent"], "top");
    }
    world.check_history();
    let stored = world.json(&["ls", "--all"]).as_array().unwrap().clone();
    let folders = std::fs::read_dir(world.home.join("sessions")).unwrap().count();
    let values = std::fs::read_dir(world.home.join("env-values")).unwrap().count();
    let with_values = stored.iter().filter(|session| session["env"].to_string().contains("TOK")).count();
    assert_eq!(values, with_values + 1, "{point}: a file for each session with values");
    let named = ["keeps", "rests", "runs", "new", "top"];
    let known = |session: &Value| named.contains(&session["name"].as_str().unwrap_or_default());
    assert!(
        stored.iter().all(known),
        "{point}: something is left of a session that was not created: {stored:?}"
    );
    assert_eq!(folders, stored.len(), "{point}");
    world.ok(&["down"]);
    world.assert_no_members();
    (aborted, parts[0])
}

#[test]
fn a_file_is_applied_as_a_whole_or_not_at_all_wherever_the_daemon_dies() {
    let (mut before, mut after) = (0, 0);
    let points = pinfold_daemon::crash::OF_DECLARATIONS.iter();
    for point in points.chain(&["given.kept", "commit.after", "spawn.before", "stop.before"]) {
        let mut times = 0;
        while let (true, applied) = crash_in_apply_at(&format!("{point}#{}", times + 1)) {
            times += 1;
            *(if applied { &mut after } else { &mut before }) += 1;
            if times == 4 {
                break;
            }
        }
        println!("{point}: {times} times");
        assert!(times > 0, "{point} is not passed any more");
    }
    println!("{before} crashes before the file was applied, {after} after it");
    assert!(before > 2 && after > 2, "{before} and {after}");
}

//! The daemon, its database and its description.

use super::spread::spread;
use super::stage::Stage;
use crate::http::{request, send};

#[test]
fn the_daemon_comes_and_goes() {
    let stage = Stage::new("daemon");
    stage.both("status_down", &["status"]);
    stage.both("down_already", &["down"]);
    stage.case("up", &[&["up"], &["--json", "up"]]);
    stage.both("status", &["status"]);
    stage.both("foreground_beside_another", &["up", "--foreground"]);
    stage.both("foreground_and_replace", &["up", "--foreground", "--replace"]);
    stage.case("replace", &[&["up", "--replace"], &["--json", "up", "--replace"]]);
    stage.server("api", &[]);
    stage.case("down_keep", &[&["down", "--keep"]]);
    stage.both("down_with_agents", &["down"]);
    stage.ok(&["up"]);
    stage.case("down", &[&["down"]]);
    stage.ok(&["up"]);
    stage.case("down_json", &[&["--json", "down"]]);
    stage.case("quiet", &[&["--quiet", "up"], &["--quiet", "down"], &["--quiet", "--json", "down"]]);
    stage.done();
}

#[test]
fn the_database_is_copied_and_put_back() {
    let stage = Stage::new("backup");
    stage.ok(&["new", "a", "--mode", "on-demand", "--", "cat"]);
    stage.case("backup", &[&["backup", "one.db"], &["--json", "backup", "two.db"]]);
    stage.both("backup_over_another", &["backup", "one.db"]);
    stage.both("backup_into_no_folder", &["backup", "missing/one.db"]);
    stage.both("restore_while_up", &["restore-backup", "one.db"]);
    stage.ok(&["down"]);
    stage.case("restore", &[&["restore-backup", "one.db"], &["--json", "restore-backup", "two.db"]]);
    stage.both("restore_missing", &["restore-backup", "missing.db"]);
    std::fs::write(stage.world.path("other.db"), "not a database").unwrap();
    stage.both("restore_of_another_file", &["restore-backup", "other.db"]);
    stage.both("restore_of_a_folder", &["restore-backup", "."]);
    stage.done();
}

#[test]
fn the_metrics_are_printed() {
    let stage = Stage::new("metrics");
    stage.both("metrics", &["metrics"]);
    stage.done();
}

#[test]
fn the_api_describes_itself() {
    let stage = Stage::new("openapi");
    stage.ok(&["up"]);
    let reply = send(&stage.world, request("GET", "/v1/openapi.json", "").as_bytes());
    assert_eq!(reply.status, 200);
    stage.text("document", &spread(&reply.text()));
    stage.done();
}

//! Locks, their holders, and programs that run under them without a daemon.

use super::stage::Stage;
use crate::world::Following;

impl Stage {
    /// Holds a resource until the returned value is dropped.
    fn hold(&self, resource: &str) -> Following {
        let words =
            ["lock", resource, "--reason", "a reason", "--", "sh", "-c", "echo held; exec sleep 100000"];
        let holder = self.world.follow(&words);
        holder.until("the lock", |line| line == "held");
        holder
    }

    fn dir(&self, name: &str) {
        std::fs::create_dir_all(self.world.path(name)).unwrap();
    }
}

#[test]
fn locks_are_held_seen_and_freed() {
    let stage = Stage::new("locks");
    stage.both("locks_none", &["locks"]);
    stage.dir("x/deep");
    stage.both("who_nobody", &["who", "x"]);
    stage.both("lock", &["lock", "key:k", "--", "echo", "under", "the", "lock"]);
    stage.both("lock_code", &["lock", "x", "--close", "--", "sh", "-c", "exit 7"]);
    stage.both("lock_signal", &["lock", "x", "--", "sh", "-c", "kill -9 $$"]);
    stage.both("lock_no_such_program", &["lock", "x", "--", "no-such-program"]);
    stage.both("lock_not_a_program", &["lock", "x", "--", "/"]);
    let key = stage.hold("key:k");
    stage.both("locks", &["locks"]);
    stage.both("lock_busy", &["lock", "key:k", "--", "true"]);
    stage.both("lock_busy_after_a_wait", &["lock", "key:k", "--wait", "10ms", "--", "true"]);
    stage.both("unlock_without_kill", &["unlock", "key:k"]);
    let place = stage.hold("x/deep");
    stage.both("who", &["who", "x/deep"]);
    stage.both("who_above", &["who", "x"]);
    stage.both("lock_busy_below", &["lock", "x", "--", "true"]);
    stage.both("run_busy", &["run", "job", "--dir", "x/deep", "--", "true"]);
    stage.case("unlock", &[&["unlock", "key:k", "--kill"]]);
    stage.case("unlock_json", &[&["--json", "unlock", "x/deep", "--kill"]]);
    drop((key, place));
    stage.both("unlock_nobody", &["unlock", "key:k", "--kill"]);
    for (name, resource) in [("empty", ""), ("empty_key", "key:"), ("bad_session", "session:no spaces")] {
        stage.both(&format!("lock_{name}"), &["lock", resource, "--", "true"]);
    }
    stage.both("lock_missing", &["lock", "missing", "--", "true"]);
    stage.both("lock_missing_below", &["lock", "missing/deep", "--", "true"]);
    std::fs::write(stage.world.path("file"), "").unwrap();
    stage.both("lock_file", &["lock", "file", "--", "true"]);
    stage.both("who_missing", &["who", "missing"]);
    stage.both("who_file", &["who", "file"]);
    stage.both("unlock_missing", &["unlock", "missing", "--kill"]);
    stage.done();
}

#[test]
fn a_program_is_run_in_the_foreground() {
    let stage = Stage::new("run");
    stage.both("zero", &["run", "job", "--", "echo", "done"]);
    stage.both("code", &["run", "job", "--", "sh", "-c", "echo no luck >&2; exit 9"]);
    stage.both("signal", &["run", "job", "--", "sh", "-c", "kill -9 $$"]);
    stage.both("quiet", &["--quiet", "run", "job", "--", "sh", "-c", "exit 9"]);
    stage.both("without_effect", &["run", "job", "--tag", "t", "--idle", "5m", "--", "true"]);
    stage.both("no_command", &["run", "job"]);
    stage.both("no_such_program", &["run", "job", "--", "/no/such/program"]);
    stage.both("no_such_directory", &["run", "job", "--dir", "missing", "--", "true"]);
    stage.both("no_such_mode", &["run", "job", "--mode", "sometimes", "--", "true"]);
    stage.both("bad_name", &["run", "no spaces", "--", "true"]);
    stage.done();
}

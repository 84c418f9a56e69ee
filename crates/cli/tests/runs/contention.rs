//! Programs that cannot get their own lock: contended, retried without churn, and woken when the holder exits.

use crate::crash_loops::flood;
use crate::world::{World, number};
use serde_json::{Value, json};
use std::process::{Child, Command};

/// Nothing is retried by the clock, so what runs was woken.
const PATIENT: &str = "[policy]\ncontention_step = \"1h\"\ncontention_max = \"1h\"\nbackoff_initial = \"1h\"\n\
     backoff_max = \"1h\"\n";

/// Works unless the process whose pid is in `lock` lives.
const LOCKED: &str = "echo start >>\"$ROOT/starts\"; pid=$(cat \"$ROOT/lock\"); \
     case \"$(cat /proc/$pid/stat 2>/dev/null)\" in ''|*') Z '*) ;; \
     *) echo \"session lock busy$TOLD\"; echo bye; exit ${CODE:-1};; esac; echo \"working $$\"; exec sleep 1000";

/// A process that holds the lock.
struct Holder(Child);

impl Holder {
    fn new(world: &World) -> Holder {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        std::fs::write(world.path("lock"), format!("{}\n", child.id())).unwrap();
        Holder(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn world(config: &str) -> World {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), format!("{PATIENT}{config}")).unwrap();
    world
}

impl World {
    /// Waits until the session is contended and names the holder, kills the holder, and waits for the next run.
    fn is_woken_by(&self, name: &str, holder: Holder) {
        let pid = holder.pid();
        let waits = self.until_session(name, "the holder is named", |now| now["holder"]["pid"] == pid);
        assert_eq!(waits["state"], "backoff", "{waits}");
        assert_eq!((&waits["last_exit"]["verdict"], &waits["crashes"]), (&json!("contended"), &json!(0)));
        let why = waits["why"].as_str().unwrap();
        assert!(why.contains(&format!("(pid {pid}, sleep 1000)")), "{why}");
        assert!(why.contains("or when that process exits"), "{why}");
        assert_eq!(self.noted_starts(), 1, "no churn");
        drop(holder);
        self.until("it runs", || (self.noted_starts() == 2).then_some(()));
        self.wait(name, "running");
        self.check_history();
    }
}

#[test]
fn a_program_with_a_pid_lock_file_is_contended_and_runs_when_the_holder_exits() {
    let world = world("");
    let holder = Holder::new(&world);
    let script = LOCKED.replace("$TOLD", " (pid $pid)");
    world.guarded("job", &["--mode", "always", "--contended-if", "session lock busy"], &script);
    world.is_woken_by("job", holder);
}

/// Presets: a terminal with a text, lines with an exit code and a file, and one run per message.
#[test]
fn a_preset_recognises_such_a_program_for_every_protocol() {
    let run = |more: &str, script: &str, recognises: &str| {
        let script = serde_json::to_string(script).unwrap();
        format!(
            "[agents.v]\ncommand = [\"sh\", \"-c\", {script}]\nenv = [\"ROOT\", \"CODE\"]\n{more}\nrecognises = {recognises}\n"
        )
    };
    let pid = LOCKED.replace("$TOLD", " (pid $pid)");
    let plain = LOCKED.replace("$TOLD", "");
    let file = "{ codes = { 3 = \"busy\" }, busy_pid_file = \"{dir}/lock\" }";
    let rows = [
        ("terminal", run("protocol = \"line\"\npty = true", &pid, "{ busy = [\"lock busy\"] }"), "1"),
        ("file", run("protocol = \"line\"", &plain, file), "3"),
        ("former place", run("protocol = \"line\"", &pid, "{ busy = [\"lock busy\"] }"), "1"),
        ("exec", run("protocol = \"exec\"\n", &format!("{plain} # {{prompt}}"), file), "3"),
    ];
    for (what, config, code) in rows {
        let config = match what {
            "former place" => config.replace("recognises", "exec.recognises"),
            _ => config,
        };
        let world = world(&config);
        let holder = Holder::new(&world);
        let mode = if what == "exec" { "on-demand" } else { "always" };
        let dir = world.path("");
        let words =
            ["new", "job", "--agent", "v", "--mode", mode, "--no-dir-lock", "--dir", dir.to_str().unwrap()];
        let mut new = world.command(&words);
        let answer = new.env("CODE", code).output().unwrap();
        assert!(answer.status.success(), "{what}: {answer:?}");
        let message = (what == "exec").then(|| world.ok(&["send", "job", "hello"]).stdout.trim().to_owned());
        world.is_woken_by("job", holder);
        if let Some(message) = message {
            assert_eq!(world.message("job", &message, "delivered")["tries"], 1);
        }
    }
}

#[test]
fn a_stream_of_messages_ends_one_wait_of_a_contended_program_whose_holder_is_not_known() {
    let world = world("");
    let holder = Holder::new(&world);
    let script = LOCKED.replace("$TOLD", "");
    world.new_chat("job", &["--contended-if", "session lock busy"], &script);
    flood(&world.api(), "job", 1);
    world.until_session("job", "it waits", |now| now["state"] == "backoff");
    flood(&world.api(), "job", 1);
    world.until("it was tried once more", || (world.noted_starts() == 2).then_some(()));
    world.until_session("job", "it waits again", |now| now["state"] == "backoff");
    flood(&world.api(), "job", 60);
    let waits = world.show("job");
    assert_eq!(
        (&waits["state"], &waits["holder"], world.noted_starts()),
        (&json!("backoff"), &Value::Null, 2)
    );
    let why = waits["why"].as_str().unwrap();
    assert!(why.contains("`start` runs it now, more messages do not"), "{why}");
    drop(holder);
    world.ok(&["start", "job"]);
    world.until("a person does not wait", || (world.noted_starts() == 3).then_some(()));
    let rows = world.inbox("job");
    assert!(rows.iter().all(|row| row["state"] != "failed" && number(&row["tries"]) <= 1), "{rows:?}");
}

#[test]
fn the_text_is_an_option_of_new_set_apply_and_export() {
    let world = world("");
    world.ok(&[
        "new",
        "job",
        "--mode",
        "on-demand",
        "--contended-if",
        "lock \"x\" busy",
        "--",
        "sleep",
        "1000",
    ]);
    let exported = world.ok(&["export", "job"]).stdout;
    assert!(exported.contains("contended_if = \"lock \\\"x\\\" busy\""), "{exported}");
    let file = world.path("sessions.toml");
    std::fs::write(&file, exported.replace("\\\"x\\\" busy", "taken")).unwrap();
    let applied = world.ok(&["--json", "apply", file.to_str().unwrap()]).stdout;
    assert!(applied.contains("contended_if"), "{applied}");
    assert!(world.ok(&["export", "job"]).stdout.contains("contended_if = \"lock taken\""));
    world.ok(&["set", "job", "--contended-if", ""]);
    assert!(!world.ok(&["export", "job"]).stdout.contains("contended_if"));
    let refused = world.run(&["set", "job", "--contended-if", "two\nlines"]);
    assert!(refused.code == 2 && refused.stderr.contains("one line"), "{refused:?}");
}

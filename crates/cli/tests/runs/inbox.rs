//! The inbox and the protocol of `command` agents: messages arrive once and in order, and their answers are kept.

use crate::processes::{Held, PATIENCE};
use crate::world::{Ends, World, number};
use pinfold_api::{Client, ClientError};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

/// Answers every message with the whole line that it was given.
pub(crate) const PARROT: &str = "while IFS= read -r line; do printf 'PINFOLD_DONE %s\\n' \"$line\"; done";

impl World {
    /// Creates a chat: on demand, with answers.
    pub(crate) fn new_chat(&self, name: &str, options: &[&str], script: &str) -> Value {
        let idle: &[&str] = if options.contains(&"--idle") { &[] } else { &["--idle", "1h"] };
        let all = [&["--mode", "on-demand", "--turns", "done"], idle, options].concat();
        self.guarded(name, &all, script)
    }

    pub(crate) fn api(&self) -> Client {
        Client::new(self.home.join("pinfold.sock"))
    }

    pub(crate) fn inbox(&self, name: &str) -> Vec<Value> {
        self.json(&["inbox", name]).as_array().unwrap().clone()
    }

    /// Waits until a message is in a state, and returns it.
    pub(crate) fn message(&self, name: &str, id: &str, state: &str) -> Value {
        self.until(&format!("message {id} is {state}"), || {
            let message = self.inbox(name).into_iter().find(|message| message["id"] == id)?;
            (message["state"] == state).then_some(message)
        })
    }

    /// Polls until `look` finds something.
    pub(crate) fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(seen) = look() {
                return seen;
            }
        }
        panic!("not within {PATIENCE:?}: {what}\n{}", self.daemon_log());
    }

    /// The words that the test's agents wrote down.
    pub(crate) fn journal(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// The id of the message that a verb printed.
fn sent(world: &World, words: &[&str]) -> String {
    world.ok(words).stdout.trim().to_owned()
}

#[test]
fn every_text_arrives_as_it_was_sent() {
    let world = World::new();
    world.new_chat("json", &["--input", "json"], PARROT);
    let texts = [
        "--help",
        "-",
        "two\nlines\\n \\",
        "tab\t\"quotes\" 'and' $HOME;",
        "ünï \u{1F411}\r",
        "PINFOLD_DONE",
    ];
    for text in texts {
        let path = "/v1/sessions/json/messages?wait=60s";
        let done: Value = world.api().post(path, &json!({ "text": text })).unwrap();
        let line: Value = serde_json::from_str(done["answer"].as_str().unwrap()).unwrap();
        assert_eq!((line["text"].as_str(), &line["id"], &line["try"]), (Some(text), &done["id"], &json!(1)));
        assert_eq!(
            (done["text"].as_str(), &done["state"], &done["tries"]),
            (Some(text), &json!("done"), &json!(1))
        );
    }
    world.new_chat("line", &[], PARROT);
    let answer = world.ok(&["send", "line", "a\\b\nc", "--wait", "240s"]).stdout;
    assert_eq!(answer, "a\\\\b\\nc\n");
    assert_eq!(world.ok(&["send", "line", "-x --verbose", "--wait"]).stdout, "-x --verbose\n");
    assert_eq!(world.ok(&["send", "line", "--wait", "240s", "--", "--help"]).stdout, "--help\n");
}

#[test]
fn a_message_may_have_a_mebibyte_and_no_more() {
    let world = World::new();
    world.new_chat("long", &[], "while IFS= read -r line; do echo \"PINFOLD_DONE ${#line}\"; done");
    let text = "x".repeat(1 << 20);
    let mut child = world.command(&["send", "long", "-", "--wait"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert_eq!(child.finished().stdout, "1048576\n");
    // A line break is two bytes in JSON: the body is longer than the text.
    let lines = format!("{}x", "\n".repeat((1 << 20) - 1));
    world.api().post::<Value>("/v1/sessions/long/messages", &json!({ "text": lines })).unwrap();
    let refused =
        world.api().post::<Value>("/v1/sessions/long/messages", &json!({ "text": format!("{text}x") }));
    let Err(ClientError::Refused(body)) = refused else { panic!("{refused:?}") };
    assert!(body.message.contains("1048577 bytes"), "{body:?}");
    let nul = world.api().post::<Value>("/v1/sessions/long/messages", &json!({ "text": "a\0b" }));
    assert!(matches!(nul, Err(ClientError::Refused(_))), "{nul:?}");
}

#[test]
fn the_same_key_is_one_message_whoever_sends_it_and_whenever() {
    let world = World::new();
    world.new_chat("a", &[], PARROT);
    let ids: Vec<String> = std::thread::scope(|scope| {
        let send = |n: usize| {
            let world = &world;
            scope.spawn(move || {
                let request = json!({ "text": format!("text {n}"), "key": "deploy" });
                let message: Value = world.api().post("/v1/sessions/a/messages", &request).unwrap();
                message["id"].as_str().unwrap().to_owned()
            })
        };
        let threads: Vec<_> = (0..32).map(send).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    world.message("a", &ids[0], "done");
    world.kill_daemon();
    assert_eq!(sent(&world, &["send", "a", "again", "--key", "deploy"]), ids[0]);
    assert_eq!(world.inbox("a").len(), 1);
    assert_ne!(sent(&world, &["send", "a", "again", "--key", "another"]), ids[0]);
}

#[test]
fn ten_thousand_may_wait_and_the_next_is_refused() {
    let world = World::new();
    world.new_chat("full", &[], PARROT);
    world.ok(&["stop", "full"]);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for n in 0..625 {
                    let request = json!({ "text": format!("{n}") });
                    world.api().post::<Value>("/v1/sessions/full/messages", &request).unwrap();
                }
            });
        }
    });
    assert_eq!(world.show("full")["inbox"]["queued"], 10_000);
    let refused = world.run(&["--json", "send", "full", "one more"]);
    assert_eq!((refused.code, &refused.json()["error"]["kind"]), (75, &json!("busy")), "{refused:?}");
    assert!(refused.stderr.contains("10000 messages wait"), "{refused:?}");
    // They do not slow down a daemon that starts.
    world.kill_daemon();
    assert_eq!(world.show("full")["inbox"]["queued"], 10_000);
    world.ok(&["archive", "full"]);
}

#[test]
fn what_becomes_of_a_message_depends_on_the_state_and_is_said() {
    let world = World::new();
    world.new_chat("a", &[], PARROT);
    world.ok(&["stop", "a"]);
    let stopped = world.ok(&["send", "a", "one"]);
    assert!(stopped.stderr.contains("stopped"), "{stopped:?}");
    let id = stopped.stdout.trim();
    assert_eq!(
        (&world.show("a")["state"], &world.inbox("a")[0]["state"]),
        (&json!("stopped"), &json!("queued"))
    );
    world.ok(&["start", "a"]);
    assert_eq!(world.message("a", id, "done")["answer"], "one");

    world.new_chat("fails", &[], "exit 78");
    sent(&world, &["send", "fails", "one"]);
    world.wait("fails", "failed");
    sent(&world, &["send", "fails", "two"]);
    world.until("a second try", || (world.events_of("fails", "run_exited").len() == 2).then_some(()));
    world.wait("fails", "failed");
    assert_eq!(world.show("fails")["inbox"], json!({ "queued": 2, "in_flight": 0, "done": 0, "failed": 0 }));

    world.ok(&["archive", "a"]);
    let archived = world.run(&["--json", "send", "a", "three"]);
    assert_eq!((archived.code, &archived.json()["error"]["kind"]), (1, &json!("archived")), "{archived:?}");
    let missing = world.run(&["--json", "send", "nobody", "x"]);
    assert_eq!((missing.code, &missing.json()["error"]["kind"]), (1, &json!("not_found")), "{missing:?}");
}

#[test]
fn with_turns_line_a_message_is_done_when_the_pipe_took_it() {
    let world = World::new();
    // It reads nothing and dies: what it has not read is not sent again.
    world.guarded("deaf", &["--mode", "on-demand", "--idle", "1h"], "exec sleep 100000");
    let id = sent(&world, &["send", "deaf", "hello"]);
    let message = world.message("deaf", &id, "done");
    assert_eq!((&message["answer"], &message["tries"]), (&Value::Null, &json!(1)));
    Held::open(world.pid("deaf")).unwrap().kill();
    world.wait("deaf", "idle");
    assert_eq!(world.events_of("deaf", "message_delivered").len(), 1);
    let text = world.ok(&["send", "deaf", "again", "--wait"]).stdout;
    assert_eq!(text, "", "there is no answer to print");
}

#[test]
fn a_turn_ends_with_its_line_and_with_no_other() {
    let world = World::new();
    let script = "echo 'PINFOLD_DONE before any turn'; printf 'PINFOLD_'; \
         while IFS= read -r line; do \
           printf 'DONE half a line\\n'; echo ' PINFOLD_DONE indented'; \
           echo 'PINFOLD_DONE on stderr' >&2; printf 'noise\\0\\377\\n'; head -c 200000 /dev/zero | tr '\\0' x; echo; \
           printf 'PINFOLD'; sleep 0.05; printf '_DONE \"two\\\\nlines'; sleep 0.05; printf ' of %s\"' \"$line\"; \
           sleep 0.05; printf '\\nbehind it\\nPINFOLD_DONE again\\nPINFOLD_'; done";
    world.new_chat("a", &[], script);
    world.ok(&["start", "a"]);
    world.printed("a", "PINFOLD_DONE before any turn");
    for text in ["one", "two", "three"] {
        let message = world.json(&["send", "a", text, "--wait", "240s"]);
        assert_eq!(message["answer"], format!("two\nlines of {text}"), "{message}");
        let printed = world.json(&["logs", "a", "--message", message["id"].as_str().unwrap()]);
        let lines: Vec<&str> =
            printed.as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect();
        let last = format!("PINFOLD_DONE \"two\\nlines of {text}\"");
        assert!(lines.contains(&" PINFOLD_DONE indented"), "{lines:?}");
        assert_eq!(
            lines.iter().filter(|line| line.starts_with("PINFOLD_DONE \"")).collect::<Vec<_>>(),
            [&last]
        );
        assert!(!lines.contains(&"behind it"), "{lines:?}");
    }
    assert_eq!(world.show("a")["inbox"]["done"], 3);
    world.check_history();
}

#[test]
fn a_dying_agent_gets_its_message_again_and_at_last_it_has_failed() {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), "[policy]\nbackoff_initial = \"10ms\"\n").unwrap();
    let script = "IFS= read -r line; echo \"$line\" >>\"$ROOT/given\"; exit 1";
    world.new_chat("a", &["--input", "json"], script);
    let failed = world.run(&["--json", "send", "a", "poison", "--wait"]);
    let message = failed.json();
    assert_eq!(
        (failed.code, &message["state"], &message["tries"]),
        (1, &json!("failed"), &json!(3)),
        "{failed:?}"
    );
    assert_eq!((&message["error"]["kind"], &message["failure"]), (&json!("failed"), &json!("tries_used_up")));
    let tries: Vec<u64> = world
        .journal("given")
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["try"].as_u64().unwrap())
        .collect();
    assert_eq!(tries, [1, 2, 3]);
    let id = message["id"].as_str().unwrap();
    let cancelled = world.run(&["inbox", "a", "--cancel", id]);
    assert_eq!(cancelled.code, 1, "{cancelled:?}");
    world.ok(&["inbox", "a", "--retry", id]);
    world.until("three tries more", || (world.journal("given").len() == 6).then_some(()));
    assert_eq!(world.message("a", id, "failed")["tries"], 3);
    assert_eq!(world.run(&["inbox", "a", "--retry", "nonsense"]).code, 1);
    world.check_history();
}

#[test]
fn stop_restart_and_down_cost_no_try() {
    let world = World::new();
    let script = "while IFS= read -r line; do echo \"$line\" >>\"$ROOT/given\"; \
         while ! test -e \"$ROOT/answer\"; do sleep 0.01; done; echo PINFOLD_DONE fine; done";
    world.new_chat("a", &["--input", "json"], script);
    let id = sent(&world, &["send", "a", "x"]);
    let given =
        |count: usize| world.until("it was given", || (world.journal("given").len() == count).then_some(()));
    given(1);
    world.ok(&["stop", "a"]);
    assert_eq!((&world.inbox("a")[0]["state"], &world.inbox("a")[0]["tries"]), (&json!("queued"), &json!(0)));
    world.ok(&["start", "a"]);
    given(2);
    world.ok(&["restart", "a"]);
    given(3);
    world.ok(&["down"]);
    world.ok(&["up"]);
    given(4);
    std::fs::write(world.path("answer"), "").unwrap();
    assert_eq!(world.message("a", &id, "done")["tries"], 1);
    let tries = world.journal("given");
    assert!(tries.iter().all(|line| line.contains("\"try\":1")), "{tries:?}");
    world.check_history();
}

#[test]
fn an_interrupt_ends_the_turn_and_keeps_what_waits() {
    let world = World::new();
    let polite = "trap 'echo PINFOLD_DONE interrupted' INT; \
         while :; do IFS= read -r line || continue; echo \"took $line\"; \
         case $line in slow) while sleep 0.02; do :; done & wait;; *) echo \"PINFOLD_DONE $line\";; esac; done";
    world.new_chat("polite", &[], polite);
    let slow = sent(&world, &["send", "polite", "slow"]);
    let next = sent(&world, &["send", "polite", "next"]);
    world.printed("polite", "took slow");
    let pid = world.pid("polite");
    world.ok(&["interrupt", "polite"]);
    assert_eq!(world.message("polite", &slow, "done")["answer"], "interrupted");
    assert_eq!(world.message("polite", &next, "done")["answer"], "next");
    assert_eq!(world.pid("polite"), pid, "the run is kept");
    assert_eq!(world.run(&["interrupt", "polite"]).code, 1, "there is no turn");

    world.new_chat(
        "mortal",
        &[],
        "IFS= read -r line; echo \"took $line\"; case $line in slow) exec sleep 1000;; esac; \
         echo \"PINFOLD_DONE $line\"; exec sleep 1000",
    );
    let slow = sent(&world, &["send", "mortal", "slow"]);
    let next = sent(&world, &["send", "mortal", "next"]);
    world.printed("mortal", "took slow");
    world.ok(&["interrupt", "mortal"]);
    assert_eq!(world.message("mortal", &slow, "failed")["failure"], "interrupted");
    world.message("mortal", &next, "done");
    assert_eq!(number(&world.show("mortal")["crashes"]), 0, "who dies of our interrupt was asked to");
    let nothing = world.run(&["--json", "answer", "mortal", "allow"]);
    assert_eq!((nothing.code, &nothing.json()["error"]["kind"]), (1, &json!("failed")));
}

#[test]
fn whoever_waits_is_told_how_it_ended_or_that_it_takes_longer() {
    let world = World::new();
    world.new_chat(
        "slow",
        &[],
        "while IFS= read -r line; do while ! test -e \"$ROOT/go\"; do sleep 0.01; done; \
         echo PINFOLD_DONE at last; done",
    );
    let late = world.run(&["--json", "send", "slow", "x", "--wait", "50ms"]);
    let message = late.json();
    assert_eq!((late.code, &message["error"]["kind"]), (124, &json!("timeout")), "{late:?}");
    assert!(["queued", "delivered"].contains(&message["state"].as_str().unwrap()), "{message}");
    assert_eq!(world.run(&["send", "slow", "x", "--wait", "5"]).code, 2, "a bare number has no unit");
    // A waiting client goes on waiting when the daemon is killed: the message is on disk.
    let mut waiting = world.command(&["send", "slow", "y", "--wait", "240s"]);
    let waiting = waiting.stdout(Stdio::piped()).spawn().unwrap();
    world.until("both are queued", || (world.inbox("slow").len() == 2).then_some(()));
    world.kill_daemon();
    std::fs::write(world.path("go"), "").unwrap();
    assert_eq!(waiting.finished().stdout, "at last\n");
    assert_eq!(world.show("slow")["inbox"]["done"], 2);
    world.check_history();
}

#[test]
fn a_superfluous_mark_printed_before_the_next_message_shifts_no_answer() {
    let world = World::new();
    let script = "while IFS= read -r line; do echo \"PINFOLD_DONE to $line\"; \
         echo 'PINFOLD_DONE once more'; echo \"$line\" >>\"$ROOT/printed\"; done";
    world.new_chat("a", &[], script);
    for text in ["one", "two", "three", "four", "five"] {
        let answer = world.ok(&["send", "a", text, "--wait", "240s"]).stdout;
        assert_eq!(answer, format!("to {text}\n"));
        world.until("both marks are printed", || {
            world.journal("printed").iter().any(|line| line == text).then_some(())
        });
    }
    let why = world.until("it is recommended to name messages", || {
        let why = world.show("a")["why"].as_str().unwrap().to_owned();
        why.contains("outside a turn").then_some(why)
    });
    assert!(why.contains("put the message's ID after that word"), "{why}");
    assert!(world.daemon_log().contains("put the message's ID after PINFOLD_DONE"), "{}", world.daemon_log());
}

#[test]
fn the_examples_do_what_their_first_lines_say() {
    let world = World::new();
    let example = |name: &str| {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
        file.canonicalize().unwrap().display().to_string()
    };
    let chat = ["--mode", "on-demand", "--turns", "done"];
    world.ok(&[&["new", "parrot", "--input", "json"], &chat[..], &["--", &example("parrot.sh")]].concat());
    assert_eq!(world.ok(&["send", "parrot", "hello", "--wait"]).stdout, "you said: hello\n");
    let odd = "a \"word\", a \\ and\na second line";
    assert_eq!(world.ok(&["send", "parrot", odd, "--wait"]).stdout, format!("you said: {odd}\n"));
    let counter = example("counter.py");
    world.ok(&[&["new", "counter", "--input", "json"], &chat[..], &["--", &counter]].concat());
    assert_eq!(world.ok(&["send", "counter", "one two", "--wait"]).stdout, "2 words\nin 1 messages\n");
    world.ok(&["restart", "counter"]);
    assert_eq!(world.ok(&["send", "counter", "three", "--wait"]).stdout, "3 words\nin 2 messages\n");
    world.ok(&["new", "worker", "--mode", "on-demand", "--", &example("worker.sh")]);
    assert_eq!(world.ok(&["send", "worker", "dig", "--wait"]).stdout, "");
    let lines = std::fs::read_to_string(&counter).unwrap().lines().count();
    assert!(lines < 20, "{lines}");
}

#[test]
fn a_park_names_the_processes_that_it_ended() {
    let world = World::new();
    let leaves = "sleep 4711 & while read -r line; do :; done";
    let words = ["new", "api", "--mode", "on-demand", "--idle", "300ms", "--", "sh", "-c", leaves];
    world.ok(&words);
    world.ok(&["send", "api", "one"]);
    let parked = world.until("a park", || world.events_of("api", "parked").first().cloned());
    let ended = parked["ended"].as_array().unwrap();
    assert_eq!(ended.len(), 1, "its agent is not among them: {parked}");
    assert_eq!(ended[0]["command"], "sleep 4711", "{parked}");
    let line = format!("ended `sleep 4711` (pid {})", ended[0]["pid"]);
    let events = world.ok(&["events", "--session", "api"]).stdout;
    assert!(events.contains(&line), "{events}");
}

//! Crash loops, and senders that do not wait: messages do not defeat the backoff.

use crate::world::{World, number};
use pinfold_api::Client;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

impl World {
    /// How many runs have written down their start.
    pub(crate) fn noted_starts(&self) -> usize {
        self.journal("starts").len()
    }

    pub(crate) fn until_session(&self, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        self.until(what, || Some(self.show(name)).filter(&is))
    }
}

/// Sends messages as fast as it can.
pub(crate) fn flood(client: &Client, name: &str, messages: usize) {
    for n in 0..messages {
        let path = format!("/v1/sessions/{name}/messages");
        client.post::<Value>(&path, &json!({ "text": format!("message {n}") })).unwrap();
    }
}

#[test]
fn a_crash_loop_and_a_sender_of_twenty_messages_a_second_start_no_more_than_the_backoff_allows() {
    for turns in ["done", "line"] {
        let world = World::new();
        world.ok(&["up"]);
        let script = "echo start >>\"$ROOT/starts\"; exit 1";
        world.guarded("loop", &["--mode", "on-demand", "--turns", turns], script);
        let begun = Instant::now();
        for sent in 1..=60 {
            flood(&world.api(), "loop", 1);
            // This is the rate of the sender, nothing is waited for.
            std::thread::sleep(
                (begun + Duration::from_millis(50) * sent).saturating_duration_since(Instant::now()),
            );
        }
        let (starts, took) = (world.noted_starts(), begun.elapsed().as_secs_f64());
        // The first start, the one that a message may hurry, and one after each wait: 1, 2, 4 s, less a tenth. If
        // the first run took a second to crash, another one follows at once.
        let mut waits = 0.0;
        let allowed = (0..).map(|n| 0.9 * f64::from(1 << n)).take_while(|wait| {
            waits += wait;
            waits <= took
        });
        let allowed = 3 + allowed.count();
        assert!(starts <= allowed, "{turns}: {starts} starts in {took} s, {allowed} are allowed");
        let session = world.show("loop");
        assert_eq!(session["inbox"]["failed"], 0, "{turns}: {session}");
        let tries = world.inbox("loop").iter().map(|row| number(&row["tries"])).max();
        // With `--turns line` a message is done when the pipe has taken it.
        assert!(tries <= Some(1), "{turns}: {tries:?}");
        println!("{turns}: 60 messages in {took:.1} s, {starts} starts");
        let before = world.noted_starts();
        world.run(&["start", "loop"]);
        world.until("a person does not wait", || (world.noted_starts() > before).then_some(()));
    }
}

#[test]
fn a_crash_before_the_message_is_read_costs_no_try_and_one_after_it_does() {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    let patient = "[policy]\nbackoff_initial = \"1h\"\nbackoff_max = \"1h\"\n";
    std::fs::write(world.home.join("config.toml"), patient).unwrap();
    let read = "test ! -e \"$ROOT/reads\" || IFS= read -r line; echo start >>\"$ROOT/starts\"; exit 1";
    world.new_chat("a", &[], read);
    let id = world.ok(&["send", "a", "hello"]).stdout.trim().to_owned();
    let tries = |state: &str| {
        world.until_session("a", "it has crashed", |now| now["state"] == state);
        number(&world.inbox("a").into_iter().find(|row| row["id"] == id.as_str()).unwrap()["tries"])
    };
    assert_eq!(tries("backoff"), 0);
    for _ in 0..4 {
        world.run(&["start", "a"]);
        assert_eq!(tries("backoff"), 0, "however often");
    }
    std::fs::write(world.path("reads"), "").unwrap();
    for expected in 1..=3 {
        world.run(&["start", "a"]);
        assert_eq!(tries("backoff"), expected);
    }
    assert_eq!(world.show("a")["inbox"]["failed"], 1);
}

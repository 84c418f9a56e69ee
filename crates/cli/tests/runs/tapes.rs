//! Agents with a protocol of their own: everything is sent to them once, a person answers what they ask, and
//! whatever dies, what they printed counts.

use crate::processes::{self, Held};
use crate::world::World;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Plays the protocol `scripted`. An interrupt without a turn applies to the next one, as with real agents.
/// Every line that it reads is written to a file with its run, to count what was sent.
pub(crate) const PLAYER: &str = r#"
field() { printf '%s' "$line" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
waits() { while [ ! -e "$ROOT/go" ]; do sleep 0.01; done; }
long() { printf '{"type":"text","text":"'; head -c "$1" /dev/zero | tr '\0' x; }
turn= crossed=
while IFS= read -r line; do
    type=$(field type); id=$(field id)
    printf '%s %s %s %s\n' "$PINFOLD_RUN" "$type" "$(field delivery)" "$(field again)" >>"$ROOT/said"
    case $type in
    hello) echo "{\"type\":\"hello\",\"id\":$id}"; echo '{"type":"session","id":"conversation"}' ;;
    prompt)
        turn=$id text=$(field text)
        echo "{\"type\":\"taken\",\"id\":$id}"
        echo "{\"type\":\"began\",\"id\":$id}"
        case $crossed$text in
        crossed*) echo "{\"type\":\"ended\",\"id\":$id,\"how\":\"cancelled\"}"; turn= crossed= ;;
        waits*) waits; echo "{\"type\":\"ended\",\"id\":$id,\"answer\":\"waited\"}" ;;
        line_*) long "${text#line_}"; echo '"}'; echo "{\"type\":\"ended\",\"id\":$id,\"answer\":\"printed\"}" ;;
        later_line_*) waits; long "${text#later_line_}"; echo '"}'; echo "{\"type\":\"ended\",\"id\":$id,\"answer\":\"printed\"}" ;;
        answer_*)
            printf '{"type":"ended","id":%s,"answer":"' "$id"; head -c "${text#answer_}" /dev/zero | tr '\0' x; echo '"}'
            turn= ;;
        texts_*)
            left=${text#texts_}
            while [ "$left" -gt 1 ]; do long 100000; echo '"}'; left=$((left - 1)); done
            waits; long 100000; echo '"}'; echo "{\"type\":\"ended\",\"id\":$id}"
            turn= ;;
        endless_*) waits; long "${text#endless_}" ;;
        stubborn_*) trap 'exit 0' TERM; waits; long "${text#stubborn_}" ;;
        asks*) echo '{"type":"asks","request":"a1","kind":"permission","title":"Bash: rm -rf build"}' ;;
        answers_itself)
            echo '{"type":"asks","request":"a1","kind":"permission","title":"Bash: rm -rf build"}'
            "$BINARY" answer "$PINFOLD_SESSION" allow >>"$ROOT/told" 2>&1
            echo "code $?" >>"$ROOT/told" ;;
        hangs*) ;;
        dies) exit 3 ;;
        leaves*) echo "{\"type\":\"ended\",\"id\":$id,\"answer\":\"left\"}"; exit 0 ;;
        *) echo "{\"type\":\"ended\",\"id\":$id,\"answer\":\"played\"}"; turn= ;;
        esac ;;
    answer)
        case $(field allow) in true) answer=allowed ;; *) answer=denied ;; esac
        echo "{\"type\":\"ended\",\"id\":$turn,\"answer\":\"$answer\"}" ;;
    interrupt)
        case $turn in
        '') crossed=crossed ;;
        *) echo; echo "{\"type\":\"ended\",\"id\":$turn,\"how\":\"cancelled\"}"; turn= ;;
        esac ;;
    esac
done
"#;

impl World {
    /// Configures an agent `player` for `new --agent`.
    pub(crate) fn with_player(&self, policy: &str) {
        let script = self.path("player.sh");
        std::fs::write(&script, format!("{}{PLAYER}", crate::world::GUARD)).unwrap();
        std::fs::create_dir_all(&self.home).unwrap();
        std::fs::set_permissions(&self.home, std::fs::Permissions::from_mode(0o700)).unwrap();
        let config = format!(
            "[agents.player]\ncommand = [\"sh\", \"{}\"]\nprotocol = \"scripted\"\nsession = \"learn\"\n{policy}",
            script.display()
        );
        std::fs::write(self.home.join("config.toml"), config).unwrap();
    }

    pub(crate) fn play(&self, name: &str) {
        let binary = format!("BINARY={}", self.binary.display());
        std::fs::create_dir_all(self.path(name)).unwrap();
        let dir = self.path(name).display().to_string();
        self.ok(&["new", name, "--agent", "player", "--dir", &dir, "--env", "ROOT", "--env", &binary]);
    }

    /// Sends a message; returns its id.
    pub(crate) fn told(&self, name: &str, text: &str) -> String {
        self.ok(&["send", name, text]).stdout.trim().to_owned()
    }

    /// Waits until a session's agent asks; returns the request.
    pub(crate) fn request_of(&self, name: &str) -> Value {
        self.until("it asks", || Some(self.show(name)["request"].clone()).filter(|asked| !asked.is_null()))
    }

    /// The deliveries that each run read, and whether they were marked as repeated.
    pub(crate) fn said(&self) -> Vec<(String, String, bool)> {
        let text = std::fs::read_to_string(self.path("said")).unwrap_or_default();
        let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let prompts = words.filter(|words| words[1] == "prompt");
        prompts.map(|words| (words[0].to_owned(), words[2].to_owned(), words[3] == "true")).collect()
    }

    /// Checks that no delivery reached a run twice.
    pub(crate) fn assert_said_once(&self) {
        let mut said: Vec<_> = self.said().into_iter().map(|(run, delivery, _)| (run, delivery)).collect();
        let all = said.len();
        said.sort_unstable();
        said.dedup();
        assert_eq!(said.len(), all, "{:?}", self.said());
    }
}

#[test]
fn an_agent_with_a_protocol_is_told_answered_and_interrupted() {
    let world = World::new();
    world.with_player("");
    world.play("a");
    assert_eq!(world.ok(&["send", "a", "hello", "--wait", "240s"]).stdout, "played\n");
    let shown = world.show("a");
    assert_eq!((&shown["activity"], &shown["activity_from"]), (&json!("idle"), &json!("scripted")));
    assert_eq!((&shown["vendor_session"], &shown["requests"]), (&json!("conversation"), &json!(0)));
    let locks = world.json(&["locks"]).to_string();
    assert!(locks.contains(":conversation"), "{locks}");

    let asks = world.told("a", "asks");
    let request = world.request_of("a");
    assert_eq!((&request["kind"], &request["title"]), (&json!("permission"), &json!("Bash: rm -rf build")));
    assert_eq!((&world.show("a")["activity"], &request["id"]), (&json!("waiting"), &json!("r1")));
    assert!(world.ok(&["why", "a"]).stdout.contains("Bash: rm -rf build"));
    assert_eq!(world.run(&["answer", "a", "deny", "r7"]).code, 1);
    world.ok(&["answer", "a", "deny", "--message", "no"]);
    assert_eq!(world.message("a", &asks, "done")["answer"], "denied");
    assert_eq!(world.run(&["answer", "a", "allow", "r1"]).code, 75, "it was answered");
    assert_eq!(world.run(&["answer", "a", "allow"]).code, 75);

    let hangs = world.told("a", "hangs");
    world.message("a", &hangs, "delivered");
    world.ok(&["interrupt", "a"]);
    world.message("a", &hangs, "failed");
    assert_eq!(world.ok(&["send", "a", "hello", "--wait", "240s"]).stdout, "played\n", "the run goes on");
    assert_eq!(world.events_of("a", "run_started").len(), 1);
    assert!(world.ok(&["logs", "a"]).stdout.contains("\"asks\""), "what it printed is shown from its tape");
    world.assert_said_once();
    world.ok(&["down"]);
    world.assert_no_members();
}

#[test]
fn an_agent_that_answers_its_own_request_is_refused_and_the_request_still_waits() {
    let world = World::new();
    world.with_player("");
    world.play("a");
    let id = world.told("a", "answers_itself");
    world.request_of("a");
    let told = world.until("it was refused", || {
        let told = std::fs::read_to_string(world.path("told")).unwrap_or_default();
        told.contains("code ").then_some(told)
    });
    assert!(told.contains("code 77"), "{told}");
    assert!(told.contains("for a person to answer") && !told.contains("act on itself"), "{told}");
    assert!(told.contains("may = [\"answer\"]"), "{told}");
    assert_eq!(world.show("a")["requests"], 1);
    world.ok(&["answer", "a", "allow"]);
    assert_eq!(world.message("a", &id, "done")["answer"], "allowed");
}

#[test]
fn the_policy_answers_where_nobody_is_to_be_asked() {
    for (policy, answer) in [("allow", "allowed\n"), ("deny", "denied\n")] {
        let world = World::new();
        world.with_player(&format!("policy.permissions = \"{policy}\"\n"));
        world.play("a");
        assert_eq!(world.ok(&["send", "a", "asks", "--wait", "240s"]).stdout, answer);
        assert_eq!(world.events_of("a", "request_answered")[0]["verdict"], policy);
    }
}

#[test]
fn of_two_answers_at_once_one_is_said() {
    let world = World::new();
    world.with_player("");
    world.play("a");
    for round in 0..5 {
        let id = world.told("a", "asks");
        world.request_of("a");
        let codes: Vec<i32> = std::thread::scope(|scope| {
            let answers =
                ["allow", "deny"].map(|word| scope.spawn(|| world.run(&["answer", "a", word]).code));
            answers.into_iter().map(|answer| answer.join().unwrap()).collect()
        });
        assert!(codes == [0, 75] || codes == [75, 0], "round {round}: {codes:?}");
        world.message("a", &id, "done");
    }
    let said = std::fs::read_to_string(world.path("said")).unwrap();
    assert_eq!(said.lines().filter(|line| line.contains(" answer ")).count(), 5, "{said}");
}

#[test]
fn what_an_agent_printed_while_no_daemon_lived_counts() {
    let world = World::new();
    world.with_player("");
    world.play("a");
    world.ok(&["send", "a", "hello", "--wait", "240s"]);
    for text in ["asks", "leaves", "hello"] {
        let id = world.told("a", text);
        world.kill_daemon();
        world.ok(&["up"]);
        if text == "asks" {
            world.request_of("a");
            world.kill_daemon();
            world.ok(&["answer", "a", "allow"]);
        }
        world.message("a", &id, "done");
    }
    world.assert_said_once();
    world.check_history();
}

/// How often a race is run.
fn rounds() -> usize {
    if std::env::var_os("PINFOLD_LONG").is_some() { 1000 } else { 10 }
}

#[test]
fn an_agent_that_leaves_right_behind_the_end_of_its_turn_is_not_told_again() {
    let rounds = rounds();
    let world = World::new();
    world.with_player("policy.clean_limit = 100000\n");
    world.play("a");
    for _ in 0..rounds {
        let id = world.told("a", "leaves");
        world.kill_daemon();
        world.ok(&["up"]);
        let row = world.message("a", &id, "done");
        assert_eq!((&row["answer"], &row["tries"]), (&json!("left"), &json!(1)));
    }
    let said = world.said();
    assert_eq!(said.len(), rounds, "{said:?}");
    assert!(said.iter().all(|(.., again)| !again));
}

#[test]
fn a_message_that_a_dead_agent_may_have_read_is_marked_and_one_that_it_did_not_is_not() {
    let world = World::new();
    world.with_player("policy.backoff_initial = \"10ms\"\n");
    world.play("a");
    world.ok(&["send", "a", "hello", "--wait", "240s"]);
    let id = world.told("a", "hangs");
    world.message("a", &id, "delivered");
    processes::kill(world.pid("a"));
    let until = Instant::now() + processes::PATIENCE;
    while world.said().len() < 3 {
        assert!(Instant::now() < until, "{:?}", world.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    let marks: Vec<bool> = world.said().into_iter().map(|(.., again)| again).collect();
    assert_eq!(marks, [false, false, true]);
    world.ok(&["interrupt", "a"]);
    world.message("a", &id, "failed");
}

#[test]
fn an_interrupt_that_crosses_the_end_of_a_turn_costs_the_next_message_nothing() {
    let world = World::new();
    world.with_player("");
    world.play("a");
    world.ok(&["send", "a", "hello", "--wait", "240s"]);
    let mut crossed = 0;
    for round in 0..rounds() {
        let id = world.told("a", "short");
        // Whether the turn is still under way depends on which is faster.
        let answer = world.run(&["interrupt", "a"]);
        assert!([0, 1, 75].contains(&answer.code), "round {round}: {answer:?}");
        let next = world.told("a", "next");
        let row = world.until("the next is over", || {
            let row = world.inbox("a").into_iter().find(|row| row["id"] == *next)?;
            ["done", "failed"].contains(&row["state"].as_str()?).then_some(row)
        });
        assert_eq!(
            (&row["answer"], &row["tries"]),
            (&json!("played"), &json!(1)),
            "round {round}: {:?} {:#?}",
            world.inbox("a"),
            world.events()
        );
        let row = world.until("the first is over", || {
            let row = world.inbox("a").into_iter().find(|row| row["id"] == *id)?;
            ["done", "failed"].contains(&row["state"].as_str()?).then_some(row)
        });
        crossed += usize::from(row["state"] == "done" && answer.code == 0);
    }
    println!("{crossed} interrupts of {} met a turn that was over or ended by itself", rounds());
    world.assert_said_once();
    assert_eq!(world.events_of("a", "run_started").len(), 1);
}

#[test]
fn a_stop_ends_the_turn_by_word_before_it_ends_the_run_and_costs_no_try() {
    let world = World::new();
    world.with_player("");
    world.play("a");
    world.ok(&["send", "a", "hello", "--wait", "240s"]);
    let id = world.told("a", "hangs");
    world.message("a", &id, "delivered");
    world.ok(&["stop", "a"]);
    let said = std::fs::read_to_string(world.path("said")).unwrap();
    assert_eq!(said.lines().filter(|line| line.contains(" interrupt ")).count(), 1, "{said}");
    let row = world.message("a", &id, "queued");
    assert_eq!(row["tries"], 0, "{row}");
    let ended = world.events_of("a", "run_exited");
    assert_eq!((&ended[0]["verdict"], &ended[0]["forced"]), (&json!("clean"), &json!(false)), "{ended:?}");
    world.check_history();
}

#[test]
fn an_agent_that_does_not_end_its_turn_is_stopped_within_its_grace_all_the_same() {
    let world = World::new();
    world.with_player("policy.stop_grace = \"2s\"\n");
    world.play("a");
    let id = world.told("a", "waits");
    world.message("a", &id, "delivered");
    let begun = Instant::now();
    world.ok(&["stop", "a"]);
    // Half a second more for a busy machine.
    assert!(begun.elapsed() < Duration::from_millis(2_500), "{:?}", begun.elapsed());
    assert_eq!(world.message("a", &id, "queued")["tries"], 0);
}

#[test]
fn an_agent_that_is_parked_leaves_by_itself_when_its_input_is_closed() {
    let world = World::new();
    world.with_player("policy.idle_after = \"50ms\"\n");
    world.play("a");
    world.ok(&["send", "a", "hello", "--wait", "240s"]);
    world.wait("a", "idle");
    let ended = world.events_of("a", "run_exited");
    // A signal would have ended it with that signal.
    assert_eq!((&ended[0]["code"], &ended[0]["signal"]), (&json!(0), &json!(null)), "{ended:?}");
    assert_eq!(world.events_of("a", "parked").len(), 1);
}

/// The only file of a short tape.
fn tape_of(world: &World, name: &str) -> PathBuf {
    let id = world.show(name)["id"].as_str().unwrap().to_owned();
    let folder = world.home.join("sessions").join(id).join("tape");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.max().unwrap()
}

/// Kills the daemon and a session's shim, and so its agent: like a power failure, except for what the kernel has.
fn cut_power(world: &World, name: &str) {
    let shim = processes::parent(world.pid(name)).unwrap();
    if let Some(daemon) = Held::open(world.daemon_pid()) {
        daemon.kill();
        daemon.wait();
    }
    let held = Held::open(shim);
    processes::kill(shim);
    held.inspect(Held::wait);
}

#[test]
fn what_the_power_took_of_a_tape_is_repeated_with_a_mark_and_nothing_of_the_next_run_is_passed_over() {
    // How much is left of what the agent printed while no daemon lived, in eighths; with all of it, its turn
    // has ended.
    for left in 0..=8 {
        let world = World::new();
        world.with_player("policy.backoff_initial = \"10ms\"\n");
        world.play("a");
        world.ok(&["send", "a", "hello", "--wait", "240s"]);
        let id = world.told("a", "waits");
        world.message("a", &id, "delivered");
        let (tape, shim) = (tape_of(&world, "a"), processes::parent(world.pid("a")).unwrap());
        world.kill_daemon();
        let before = std::fs::metadata(&tape).unwrap().len();
        std::fs::write(world.path("go"), "").unwrap();
        world.until("it has ended its turn", || {
            String::from_utf8_lossy(&std::fs::read(&tape).unwrap()).contains("waited").then_some(())
        });
        let held = Held::open(shim);
        processes::kill(shim);
        held.inspect(Held::wait);
        let file = std::fs::File::options().write(true).open(&tape).unwrap();
        let after = file.metadata().unwrap().len();
        file.set_len(before + (after - before) * left / 8).unwrap();
        world.ok(&["up"]);
        let row = world.message("a", &id, "done");
        let marks: Vec<bool> = world.said().into_iter().map(|(.., again)| again).collect();
        let expected: &[bool] = if left == 8 { &[false, false] } else { &[false, false, true] };
        assert_eq!(
            (marks.as_slice(), &row["answer"]),
            (expected, &json!("waited")),
            "{left} eighths are left"
        );
        assert_eq!(world.ok(&["send", "a", "hello", "--wait", "240s"]).stdout, "played\n");
        world.assert_said_once();
        world.check_history();
    }
}

#[test]
fn a_tape_that_lost_even_what_was_stored_goes_on_above_that() {
    // Cut to the head of the segment, into it, and to nothing.
    for left in [200, 33, 32, 7, 0] {
        let world = World::new();
        world.with_player("policy.backoff_initial = \"10ms\"\n");
        world.play("a");
        world.ok(&["send", "a", "hello", "--wait", "240s"]);
        let id = world.told("a", "waits");
        world.message("a", &id, "delivered");
        let tape = tape_of(&world, "a");
        cut_power(&world, "a");
        std::fs::File::options().write(true).open(&tape).unwrap().set_len(left).unwrap();
        std::fs::write(world.path("go"), "").unwrap();
        world.ok(&["up"]);
        assert_eq!(world.message("a", &id, "done")["answer"], "waited", "{left} bytes are left");
        let marks: Vec<bool> = world.said().into_iter().map(|(.., again)| again).collect();
        assert_eq!(marks, [false, false, true], "{left} bytes are left");
        assert_eq!(world.ok(&["send", "a", "hello", "--wait", "240s"]).stdout, "played\n");
    }
}

#[test]
fn a_session_that_yields_its_conversation_goes_on_when_that_is_free_whatever_its_holder_is_called() {
    let world = World::new();
    let script = world.path("unguarded.sh");
    // Both homes have a session of this name, which the guard would take for a double.
    std::fs::write(&script, PLAYER).unwrap();
    let config = format!(
        "[agents.player]\ncommand = [\"sh\", \"{}\"]\nprotocol = \"scripted\"\nsession = \"learn\"\n",
        script.display()
    );
    let homes = ["home", "other"].map(|home| world.path(home));
    let at = |home: &std::path::Path, words: &[&str]| {
        let mut command = world.command(words);
        command.env("PINFOLD_HOME", home);
        let answer = crate::world::finish(&mut command);
        assert_eq!(answer.code, 0, "{words:?}: {answer:?}");
        answer
    };
    for (number, home) in homes.iter().enumerate() {
        std::fs::create_dir(home).unwrap();
        std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(home.join("config.toml"), &config).unwrap();
        let dir = world.path(&format!("dir{number}"));
        std::fs::create_dir(&dir).unwrap();
        at(home, &["new", "a", "--agent", "player", "--dir", &dir.display().to_string(), "--env", "ROOT"]);
    }
    let [one, other] = &homes;
    at(one, &["send", "a", "hello", "--wait", "240s"]);
    at(other, &["send", "a", "hangs"]);
    at(other, &["wait", "a", "--for", "blocked", "--timeout", "240s"]);
    let shown: Value = serde_json::from_str(&at(other, &["--json", "show", "a"]).stdout).unwrap();
    assert!(shown["holder"].to_string().contains("conversation"), "{shown}");
    at(one, &["stop", "a"]);
    at(other, &["wait", "a", "--for", "running", "--timeout", "240s"]);
    homes.iter().for_each(|home| _ = at(home, &["down"]));
}

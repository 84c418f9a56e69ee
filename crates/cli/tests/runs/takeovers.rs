//! Takeovers through the real binaries: the agent's own terminal program in place of the headless run, and back.

use crate::processes::{self, PATIENCE};
use crate::tty::Tty;
use crate::world::{Ends, GUARD, World, number};
use pinfold_lock::{Folder, Resource, SessionName};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Answers each line; one that begins with `slow` waits until a file exists.
const CHAT: &str = "while read -r line; do echo \"$line\" >>\"$ROOT/got\"; case \"$line\" in slow*) \
     while ! test -e \"$ROOT/go\"; do sleep 0.02; done;; esac; echo \"PINFOLD_DONE $line\"; done";
/// A terminal program with its own prompt.
const UI: &str = "stty -echo; echo \"ui of $PINFOLD_SESSION\"; \
     while read -r line; do test \"$line\" != quit || exit 0; echo \"ui got $line\"; done";

impl World {
    /// Configures a preset `chat`, and creates a session of it.
    fn chat(&self, policy: &str) {
        self.preset(&["sh", "{dir}/ui"], policy);
        self.ok(&["new", "chat", "--agent", "chat", "--dir", "work", "--env", "ROOT"]);
    }

    fn preset(&self, interactive: &[&str], policy: &str) {
        for folder in [&self.home, &self.path("work")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(self.path("work/chat"), format!("{GUARD}{CHAT}\n")).unwrap();
        std::fs::write(self.path("work/ui"), format!("{GUARD}{UI}\n")).unwrap();
        let config = format!(
            "[agents.chat]\ncommand = [\"sh\", \"{{dir}}/chat\"]\ninteractive = {interactive:?}\nturns = \"done\"\n\
             [agents.chat.policy]\n{policy}\n"
        );
        std::fs::write(self.home.join("config.toml"), config).unwrap();
    }

    fn send(&self, text: &str) -> String {
        self.ok(&["send", "chat", text]).stdout.trim().to_owned()
    }

    fn answered(&self, message: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let all = self.json(&["inbox", "chat"]);
            let found = all.as_array().unwrap().iter().find(|one| one["id"] == message).cloned().unwrap();
            if found["state"] == "done" {
                return found;
            }
            assert!(Instant::now() < until, "{all:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the agent has got a line.
    fn got(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !std::fs::read_to_string(self.path("got")).unwrap_or_default().contains(text) {
            assert!(Instant::now() < until, "the agent did not get {text}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn how_takeovers_ended(&self) -> Vec<String> {
        let done = self.events_of("chat", "takeover_done");
        done.iter().map(|event| event["how"].as_str().unwrap().to_owned()).collect()
    }

    fn go(&self) {
        std::fs::write(self.path("go"), "").unwrap();
    }
}

fn quit(tty: &mut Tty) {
    tty.keys(b"quit\r");
    assert!(tty.ended().success());
}

#[test]
fn a_sleeping_session_is_taken_over_under_one_lock_and_handed_back() {
    let world = World::new();
    world.chat("");
    assert_eq!(world.show("chat")["state"], "idle");
    assert_eq!(world.show("chat")["mode"], "on-demand");
    let first = world.send("one");
    assert_eq!(world.answered(&first)["answer"], "one");
    let shim = world.show("chat")["shim_pid"].clone();
    let mut tty = world.attach("chat", &[]);
    tty.shows("ui of chat");
    world.wait("chat", "held");
    assert_eq!(world.show("chat")["shim_pid"], shim, "another shim");
    // A message sent meanwhile waits, and is delivered afterwards.
    let second = world.send("two");
    tty.keys(b"hello\r");
    tty.shows("ui got hello");
    assert_eq!(world.show("chat")["inbox"]["queued"], 1);
    quit(&mut tty);
    assert_eq!(world.answered(&second)["answer"], "two");
    assert_eq!(world.answered(&second)["tries"], 1);
    assert_eq!(world.show("chat")["shim_pid"], shim, "another shim");
    assert_eq!(world.how_takeovers_ended(), ["held"]);
    assert_eq!(world.events_of("chat", "takeover_requested").len(), 1);
    world.check_history();
}

#[test]
fn nothing_runs_when_the_terminal_program_has_ended_and_nobody_needs_it() {
    let world = World::new();
    world.chat("");
    let mut tty = world.attach("chat", &[]);
    tty.shows("ui of chat");
    quit(&mut tty);
    world.wait("chat", "idle");
    assert_eq!(world.events_of("chat", "run_started").len(), 1);
}

#[test]
fn a_turn_is_finished_first_with_a_countdown() {
    let world = World::new();
    world.chat("takeover_deadline = \"50s\"");
    let slow = world.send("slow one");
    world.got("slow one");
    let mut tty = world.attach("chat", &[]);
    tty.shows("finishes its turn first; `--now` interrupts it (50 s)");
    tty.shows("(48 s)");
    // A second client joins the takeover of the first.
    let mut other = world.attach("chat", &[]);
    other.shows("finishes its turn first");
    world.go();
    tty.shows("ui of chat");
    other.shows("ui of chat");
    assert_eq!(world.answered(&slow)["answer"], "slow one");
    assert_eq!(world.show("chat")["consumers"], 2);
    // The one that came to the terminal first has the keyboard.
    other.keys(b"quit\r");
    quit(&mut tty);
    assert!(other.ended().success());
    assert_eq!(world.how_takeovers_ended(), ["held"]);
}

#[test]
fn a_turn_is_interrupted_when_somebody_cannot_wait_and_costs_no_try() {
    let world = World::new();
    world.chat("stop_grace = \"1s\"");
    let slow = world.send("slow one");
    world.got("slow one");
    let mut tty = world.attach("chat", &["--now"]);
    tty.shows("ui of chat");
    assert_eq!(world.show("chat")["inbox"]["queued"], 1);
    world.go();
    quit(&mut tty);
    let answered = world.answered(&slow);
    assert_eq!((&answered["answer"], &answered["state"]), (&"slow one".into(), &"done".into()));
    assert_eq!(world.show("chat")["crashes"], 0);
}

#[test]
fn a_turn_that_does_not_end_in_time_goes_on() {
    let world = World::new();
    world.chat("takeover_deadline = \"1s\"");
    let slow = world.send("slow one");
    world.got("slow one");
    let pid = world.pid("chat");
    let mut tty = world.attach("chat", &[]);
    assert_eq!(tty.ended().code(), Some(124));
    tty.shows("did not finish its turn in time");
    tty.shows("--now");
    assert_eq!(world.pid("chat"), pid);
    world.go();
    assert_eq!(world.answered(&slow)["tries"], 1);
    assert_eq!(world.how_takeovers_ended(), ["deadline_passed"]);
}

#[test]
fn a_terminal_program_that_is_missing_brings_the_run_back_with_its_queue() {
    let world = World::new();
    world.preset(&["/no/such/ui"], "");
    world.ok(&["new", "chat", "--agent", "chat", "--dir", "work", "--env", "ROOT"]);
    let first = world.send("one");
    world.answered(&first);
    let pid = world.pid("chat");
    let mut tty = world.attach("chat", &[]);
    assert_eq!(tty.ended().code(), Some(78));
    tty.shows("program `/no/such/ui` was not found");
    assert_eq!(world.pid("chat"), pid, "its run was ended for nothing");
    // A program that exists but cannot be executed is noticed too late: the run comes back.
    let broken = world.path("work/broken");
    std::fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    world.preset(&["{dir}/broken"], "");
    world.ok(&["down"]);
    world.ok(&["set", "chat", "--tag", "new-words"]);
    let mut tty = world.attach("chat", &[]);
    assert_eq!(tty.ended().code(), Some(78));
    tty.shows("cannot be started; its run comes back");
    let second = world.send("two");
    assert_eq!(world.answered(&second)["answer"], "two");
    assert_eq!(world.how_takeovers_ended(), ["cannot_start"]);
    world.check_history();
}

#[test]
fn a_caller_who_goes_takes_the_request_along() {
    let world = World::new();
    world.chat("");
    let slow = world.send("slow one");
    world.got("slow one");
    let pid = world.pid("chat");
    let tty = world.attach("chat", &[]);
    tty.shows("finishes its turn first");
    processes::kill(tty.child.id());
    let until = Instant::now() + PATIENCE;
    while world.how_takeovers_ended() != ["caller_gone"] {
        assert!(Instant::now() < until, "{:?}", world.how_takeovers_ended());
    }
    world.go();
    assert_eq!(world.answered(&slow)["tries"], 1);
    assert_eq!(world.pid("chat"), pid);
}

#[test]
fn a_stopped_session_is_stopped_again_and_a_failed_one_is_helped() {
    let world = World::new();
    world.chat("");
    world.ok(&["stop", "chat"]);
    let mut tty = world.attach("chat", &[]);
    tty.shows("ui of chat");
    quit(&mut tty);
    world.wait("chat", "stopped");
    std::fs::remove_file(world.path("work/chat")).unwrap();
    assert_eq!(world.run(&["start", "chat"]).code, 0);
    world.wait("chat", "backoff,failed");
    let mut tty = world.attach("chat", &[]);
    tty.shows("ui of chat");
    std::fs::write(world.path("work/chat"), format!("{GUARD}{CHAT}\n")).unwrap();
    quit(&mut tty);
    let sent = world.send("one");
    assert_eq!(world.answered(&sent)["answer"], "one");
}

#[test]
fn an_archived_session_and_one_that_somebody_else_holds_are_refused_with_what_to_do() {
    let world = World::new();
    world.chat("");
    let mut holder = world.command(&["lock", "work", "--", "sleep", "1000"]).spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    while world.json(&["locks"]).as_array().unwrap().is_empty() {
        assert!(Instant::now() < until);
    }
    let refused = world.run(&["attach", "chat"]);
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.stderr.contains("sleep 1000"), "{refused:?}");
    holder.kill().unwrap();
    holder.ended();
    let client = pinfold_api::Client::new(world.json(&["status"])["socket"].as_str().unwrap());
    let _: Value = client.post("/v1/sessions/chat/archive", &serde_json::json!({})).unwrap();
    let refused = world.run(&["attach", "chat"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("`pinfold restore chat`"), "{refused:?}");
}

#[test]
fn the_terminal_program_outlives_the_daemon_and_hands_back_to_the_next() {
    let world = World::new();
    world.chat("");
    let mut tty = world.attach("chat", &[]);
    tty.shows("ui of chat");
    let pid = world.pid("chat");
    world.kill_daemon();
    tty.keys(b"alone\r");
    tty.shows("ui got alone");
    let sent = world.send("one");
    assert_eq!(world.show("chat")["state"], "held");
    assert_eq!(world.pid("chat"), pid);
    quit(&mut tty);
    assert_eq!(world.answered(&sent)["answer"], "one");
    world.check_history();
}

#[test]
fn a_session_without_a_terminal_program_is_followed_and_typed_to() {
    let world = World::new();
    world.ok(&["new", "cat", "--", "sh", "-c", "while read -r line; do echo \"got $line\"; done"]);
    let mut tty = world.attach("cat", &[]);
    tty.shows("following `cat`");
    tty.keys("wörld\n".as_bytes());
    tty.shows("got wörld");
    tty.keys(b"two\n");
    tty.shows("got two");
    tty.detach();
    assert_eq!(tty.settings(), tty.before);
    let messages = world.json(&["inbox", "cat"]);
    assert_eq!(messages.as_array().unwrap().len(), 2);
}

#[test]
fn agents_are_listed_without_a_daemon_and_unknown_ones_refused() {
    let world = World::new();
    world.preset(&["sh", "{dir}/ui"], "");
    let agents = world.json(&["agents"]);
    let chat = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "chat").unwrap();
    assert!(chat["found"].as_str().unwrap().ends_with("/sh"), "{chat}");
    assert_eq!(world.run(&["--no-start", "ls"]).code, 69, "a daemon was started");
    let refused = world.run(&["new", "x", "--agent", "nobody"]);
    assert_eq!(refused.code, 78, "{refused:?}");
    let refused = world.run(&["new", "x", "--agent", "acp"]);
    assert_eq!(refused.code, 2, "it names no program: {refused:?}");
    assert!(refused.stderr.contains("`acp`"), "{refused:?}");
}

#[test]
fn a_vendor_session_is_resumed_and_held_by_one_alone() {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    let config = "[agents.v]\ncommand = [\"sh\", \"-c\", \"echo new; sleep 1000\"]\n\
                  resume = [\"sh\", \"-c\", \"echo resumes {vendor_session} in {dir}; sleep 1000\"]\n";
    std::fs::write(world.home.join("config.toml"), config).unwrap();
    let new = |name: &str, id: &str| {
        std::fs::create_dir_all(world.path(name)).unwrap();
        let options = ["--agent", "v", "--vendor-session", id, "--mode", "always", "--dir", name];
        world.run(&[&["new", name][..], &options].concat())
    };
    assert_eq!(new("one", "id-1").code, 0);
    assert_eq!(world.printed("one", "resumes"), format!("id-1 in {}", world.path("one").display()));
    let refused = new("two", "id-1");
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.stderr.contains("of session `one`"), "{refused:?}");
    assert_eq!(new("three", "id-2").code, 0);
    assert_eq!(new("four", "-rf").code, 2);
}

/// Answers with the vendor session that it was started on.
const NAMES: &str = "while read -r line; do echo \"PINFOLD_DONE $1\"; done";
/// A terminal program that goes on in another vendor session and says so in its spool, as a hook would.
const CLEARS: &str = "stty -echo; echo \"ui of $1\"; while read -r line; do case \"$line\" in quit) exit 0;; \
     clear*) printf %s \"$PINFOLD_RUN {\\\"id\\\":\\\"${line#* }\\\"}\" >\"$PINFOLD_SPOOL\"; echo cleared;; esac; done";

/// What ends a terminal program.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    Quit,
    QuitWithoutDaemon,
    ShimKilled,
    ShimKilledWithoutDaemon,
}

#[test]
fn the_session_that_a_hook_named_last_is_gone_on_with_whatever_ends_the_terminal_program() {
    let world = World::new();
    for folder in [&world.home, &world.path("work")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(world.path("work/chat"), format!("{GUARD}{NAMES}\n")).unwrap();
    std::fs::write(world.path("work/ui"), format!("{GUARD}{CLEARS}\n")).unwrap();
    let chat = "[\"sh\", \"{dir}/chat\", \"{vendor_session}\"]";
    let config = format!(
        "[agents.chat]\ncommand = {chat}\nresume = {chat}\ninteractive = [\"sh\", \"{{dir}}/ui\", \"{{vendor_session}}\"]\n\
         session = \"choose\"\nspool_key = \"id\"\nturns = \"done\"\n"
    );
    std::fs::write(world.home.join("config.toml"), config).unwrap();
    world.ok(&["new", "chat", "--agent", "chat", "--dir", "work", "--env", "ROOT"]);
    let mut known = world.answered(&world.send("first"))["answer"].as_str().unwrap().to_owned();
    let endings =
        [Ending::Quit, Ending::QuitWithoutDaemon, Ending::ShimKilled, Ending::ShimKilledWithoutDaemon];
    for (round, ending) in endings.into_iter().enumerate() {
        let mut tty = world.attach("chat", &[]);
        tty.shows(&format!("ui of {known}"));
        world.wait("chat", "held");
        let shim = number(&world.show("chat")["shim_pid"]);
        known = format!("next-{round}");
        tty.keys(format!("clear {known}\r").as_bytes());
        tty.shows("cleared");
        if matches!(ending, Ending::QuitWithoutDaemon | Ending::ShimKilledWithoutDaemon) {
            world.kill_daemon();
        }
        match ending {
            Ending::Quit | Ending::QuitWithoutDaemon => tty.keys(b"quit\r"),
            Ending::ShimKilled | Ending::ShimKilledWithoutDaemon => processes::kill(shim),
        }
        tty.ended();
        let answer = world.answered(&world.send("next"))["answer"].clone();
        assert_eq!(answer, known.as_str(), "{ending:?}: {:#?}", world.events());
    }
    let mut tty = world.attach("chat", &[]);
    tty.shows(&format!("ui of {known}"));
    let folder = world.home.join("sessions").join(world.show("chat")["id"].as_str().unwrap());
    std::fs::write(folder.join("spool"), "another-run {\"id\":\"stray\"}").unwrap();
    quit(&mut tty);
    assert_eq!(world.answered(&world.send("last"))["answer"], known.as_str(), "another run's word was taken");
    world.check_history();
}

/// How often a session is taken over while messages flow and the daemon is killed.
fn rounds() -> u64 {
    std::env::var("PINFOLD_TAKEOVERS").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

/// Watches the lock from outside, all the time.
struct Watch {
    over: AtomicBool,
    looks: AtomicU64,
    /// How often the lock was free although something of the session lived before and after.
    unheld: AtomicU64,
    /// How often the lock was free while the daemon lived.
    gaps: AtomicU64,
    /// Whether the daemon is not being killed at present.
    strict: AtomicBool,
}

fn watch(world: &World, watch: &Watch) {
    let folder = Folder::open(world.home.join("locks")).unwrap();
    let resource = Resource::Session(SessionName::new("chat").unwrap());
    let lives = || world.members().contains_key("chat");
    while !watch.over.load(Ordering::SeqCst) {
        let (strict, before) = (watch.strict.load(Ordering::SeqCst), lives());
        let held = folder.holder_of(&resource).unwrap().is_some();
        watch.looks.fetch_add(1, Ordering::SeqCst);
        if !held && strict && watch.strict.load(Ordering::SeqCst) {
            watch.gaps.fetch_add(1, Ordering::SeqCst);
        }
        if !held && before && lives() && folder.holder_of(&resource).unwrap().is_none() {
            watch.unheld.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn takeovers_in_a_row_double_nothing_lose_nothing_and_keep_the_lock() {
    let world = World::new();
    world.chat("idle_after = \"10m\"");
    let first = world.send("message 0");
    world.answered(&first);
    let seen = Watch {
        over: AtomicBool::new(false),
        looks: AtomicU64::new(0),
        unheld: AtomicU64::new(0),
        gaps: AtomicU64::new(0),
        strict: AtomicBool::new(true),
    };
    let (sent, killed) = std::thread::scope(|scope| {
        scope.spawn(|| watch(&world, &seen));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            take_over_again_and_again(&world, &seen)
        }));
        seen.over.store(true, Ordering::SeqCst);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    for message in &sent {
        world.answered(message);
    }
    let got = std::fs::read_to_string(world.path("got")).unwrap();
    for number in 1..=sent.len() {
        assert!(got.lines().any(|line| line == format!("message {number}")), "{number} was lost");
    }
    assert_eq!(world.doubles(), "", "two agents at once");
    assert_eq!(seen.unheld.load(Ordering::SeqCst), 0, "an agent lived without its lock");
    assert_eq!(seen.gaps.load(Ordering::SeqCst), 0, "the lock was free during a takeover");
    let looks = seen.looks.load(Ordering::SeqCst);
    println!("{} takeovers, {} messages, {killed} kills, {looks} looks at the lock", rounds(), sent.len());
    world.check_history();
}

/// In the first half the daemon lives, and the lock may not be free for a moment; in the second half it is killed.
fn take_over_again_and_again(world: &World, seen: &Watch) -> (Vec<String>, u64) {
    let (mut sent, mut killed) = (Vec::new(), 0);
    let mut random = 88_172_645_463_325_252_u64;
    let mut below = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    for round in 0..rounds() {
        let kills = round >= rounds() / 2;
        seen.strict.store(!kills, Ordering::SeqCst);
        for _ in 0..below(3) + 1 {
            sent.push(world.send(&format!("message {}", sent.len() + 1)));
        }
        let options: &[&str] = if below(2) == 0 { &["--now"] } else { &[] };
        let mut tty = world.attach("chat", options);
        let moment = if kills { below(4) } else { 9 };
        if moment == 0 {
            std::thread::sleep(Duration::from_millis(below(60)));
            killed += kill(world);
            world.ok(&["up"]);
        }
        // If the daemon dies before there is a terminal, the request ends.
        if moment == 0 && !tty.comes_to("ui of chat") {
            continue;
        }
        tty.shows("ui of chat");
        sent.push(world.send(&format!("message {}", sent.len() + 1)));
        if moment == 1 {
            killed += kill(world);
        }
        tty.keys(b"quit\r");
        if moment == 2 {
            std::thread::sleep(Duration::from_millis(below(30)));
            killed += kill(world);
        }
        tty.ended();
        world.ok(&["up"]);
    }
    (sent, killed)
}

fn kill(world: &World) -> u64 {
    let status = world.run(&["--json", "status"]);
    if status.code == 0 {
        processes::kill(number(&status.json()["pid"]));
    }
    u64::from(status.code == 0)
}

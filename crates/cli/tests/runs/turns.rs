//! Many chats, many messages, and everything dies at random: each message is done once, in order, and none is lost.
//!
//! `PINFOLD_CHATS`, `PINFOLD_CHAT_MESSAGES` and `PINFOLD_CHAT_KILLS` ask for more than the default;
//! `PINFOLD_ROUNDS` for more rounds of idle, message, running.

use crate::processes::Held;
use crate::world::World;
use pinfold_api::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn asked(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Random numbers that can be repeated.
struct Dice(u64);

impl Dice {
    fn new() -> Dice {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
        println!("seed {seed}");
        Dice(seed | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Short waits, and no limit to the number of deaths.
const POLICY: &str = "[policy]\nbackoff_initial = \"5ms\"\nbackoff_max = \"20ms\"\ncrash_hard_limit = 0\n\
     message_tries = 1000\n";

/// Names the message in its answer, and writes it down; some messages take longer.
const AGENT: &str = "while IFS= read -r line; do echo \"$line\" >>\"$ROOT/given-$PINFOLD_SESSION\"; \
     case $line in *[37]) sleep 0.05;; esac; \
     printf 'noise\\nPINFOLD_DONE %s\\nnoise\\n' \"$line\"; done";

fn world_of_chats(chats: u64, idle: &str) -> World {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), POLICY).unwrap();
    world.ok(&["up"]);
    for chat in 0..chats {
        world.new_chat(&format!("chat-{chat}"), &["--idle", idle], AGENT);
    }
    world
}

/// Sends exactly one message: its key makes it one, however often a daemon dies meanwhile.
fn send(client: &Client, chat: u64, text: &str) {
    let request = json!({ "text": text, "key": text });
    let path = format!("/v1/sessions/chat-{chat}/messages");
    while client.post::<Value>(&path, &request).is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Checks what must hold in the end, and prints how long it took.
fn check(world: &World, chats: u64, messages: u64) -> u64 {
    let mut redelivered = 0;
    for chat in 0..chats {
        let name = format!("chat-{chat}");
        let rows = world.inbox(&name);
        assert_eq!(rows.len() as u64, messages, "{name}");
        for (n, row) in rows.iter().enumerate() {
            let text = format!("{chat}/{n}");
            assert_eq!((row["text"].as_str(), row["answer"].as_str()), (Some(&*text), Some(&*text)), "{row}");
            assert_eq!(row["state"], "done", "{row}");
            redelivered += row["tries"].as_u64().unwrap() - 1;
        }
        once_and_in_order(world, &name, &rows);
    }
    redelivered
}

/// By the protocol's own count, each message has one line that ends its turn, in order.
fn once_and_in_order(world: &World, name: &str, rows: &[Value]) {
    let log = world.json(&["logs", name, "-n", "1000000"]);
    let lines = log.as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap());
    let done: Vec<&str> = lines.filter_map(|line| line.strip_prefix("PINFOLD_DONE ")).collect();
    let wanted: Vec<&str> = rows.iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(done, wanted, "{name}: what the agents said, in its order");
    let events = world.json(&["events", "--session", name]);
    let of = |kind: &str| {
        let events = events.as_array().unwrap().iter().filter(|event| event["kind"] == kind);
        events.map(|event| event["message"].as_str().unwrap()).collect::<Vec<_>>()
    };
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(of("message_done"), ids, "{name}: done once each, in order");
    assert!(of("message_failed").is_empty());
    let mut given: Vec<String> = world.journal(&format!("given-{name}"));
    given.dedup();
    assert_eq!(given, wanted, "{name}: a message that was given again came before any other");
}

#[test]
fn no_kill_of_agents_or_daemons_loses_or_repeats_a_turn() {
    let chats = asked("PINFOLD_CHATS", 20);
    let messages = asked("PINFOLD_CHAT_MESSAGES", 20);
    let kills = asked("PINFOLD_CHAT_KILLS", 20);
    let world = world_of_chats(chats, "1h");
    let begun = Instant::now();
    let (over, killed) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for part in 0..8 {
            let client = world.api();
            scope.spawn(move || {
                for n in 0..messages {
                    (0..chats)
                        .filter(|chat| chat % 8 == part)
                        .for_each(|chat| send(&client, chat, &format!("{chat}/{n}")));
                }
            });
        }
        scope.spawn(|| kill_agents(&world, &over, &killed));
        let mut dice = Dice::new();
        for _ in 0..kills {
            std::thread::sleep(Duration::from_millis(dice.below(300)));
            world.kill_daemon();
            world.ok(&["up"]);
        }
        let done = || -> u64 {
            world.sessions().values().map(|session| session["inbox"]["done"].as_u64().unwrap()).sum()
        };
        // However many there are, some are done all the time.
        let mut before = done();
        while before < chats * messages {
            before = world.until("more are done", || Some(done()).filter(|now| *now > before));
        }
        over.store(true, Ordering::Relaxed);
    });
    let took = begun.elapsed();
    let redelivered = check(&world, chats, messages);
    world.check_history();
    println!(
        "{chats} chats x {messages} messages in {took:.1?}: {} done once each and in order, {} agents and {kills} \
         daemons killed, {redelivered} redelivered, 0 lost, 0 done twice",
        chats * messages,
        killed.load(Ordering::Relaxed),
    );
}

/// Kills agents, and only agents, until the test is over.
fn kill_agents(world: &World, over: &AtomicBool, killed: &AtomicU64) {
    let mut dice = Dice::new();
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(dice.below(40)));
        let agents: Vec<u32> = world.members().into_values().flatten().collect();
        if agents.is_empty() {
            continue;
        }
        let pid = agents[dice.below(agents.len() as u64) as usize];
        if let Some(held) = Held::open(pid).filter(|held| world.is_member(held.pid)) {
            held.kill();
            killed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn idle_message_running_again_and_again() {
    // More rounds than there are exit records, to notice if those are not freed again.
    let rounds = asked("PINFOLD_ROUNDS", 80);
    let world = world_of_chats(1, "0s");
    let client = world.api();
    let begun = Instant::now();
    for n in 0..rounds {
        let text = format!("0/{n}");
        let path = "/v1/sessions/chat-0/messages?wait=60s";
        let done: Value = client.post(path, &json!({ "text": text })).unwrap();
        assert_eq!(done["answer"], text);
        let idle: Value = client.get("/v1/sessions/chat-0/wait?for=idle&timeout=60s").unwrap();
        assert_eq!((&idle["crashes"], &idle["restarts"]), (&json!(0), &json!(n)));
    }
    assert_eq!(check(&world, 1, rounds), 0);
    assert_eq!(world.events_of("chat-0", "parked").len() as u64, rounds);
    println!("idle, message, running {rounds} times in {:.1?}", begun.elapsed());
}

#[test]
fn a_message_sent_at_any_instant_of_start_park_and_crash_is_delivered() {
    let messages = asked("PINFOLD_ROUNDS", 100);
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), POLICY).unwrap();
    // Every third run crashes after an answer, every fifth before one; all others park at once.
    let script = "n=$(cat \"$ROOT/runs\" 2>/dev/null || echo 0); n=$((n + 1)); echo $n >\"$ROOT/runs\"; \
         while IFS= read -r line; do test $((n % 5)) -ne 0 || exit 1; \
         echo \"$line\" >>\"$ROOT/given-$PINFOLD_SESSION\"; echo \"PINFOLD_DONE $line\"; \
         test $((n % 3)) -ne 0 || exit 1; done";
    world.new_chat("chat-0", &["--idle", "0s"], script);
    let client = world.api();
    let mut dice = Dice::new();
    let mut ages: BTreeMap<String, u64> = BTreeMap::new();
    for n in 0..messages {
        std::thread::sleep(Duration::from_micros(dice.below(40_000)));
        let session: Value = client.get("/v1/sessions/chat-0").unwrap();
        *ages.entry(session["state"].as_str().unwrap().to_owned()).or_default() += 1;
        send(&client, 0, &format!("0/{n}"));
    }
    world.until("all are done", || (world.show("chat-0")["inbox"]["done"] == messages).then_some(()));
    let redelivered = check(&world, 1, messages);
    world.check_history();
    println!("{messages} messages at any instant, {redelivered} redelivered; sent in {ages:?}");
}

/// A file tells the agent when to answer, so that it does so while no daemon lives.
#[test]
fn what_is_said_while_no_daemon_lives_counts_also_when_the_shim_has_gone() {
    for (what, behind) in
        [("lives on", "while :; do sleep 1; done"), ("ends well", "exit 0"), ("crashes", "kill -9 $$")]
    {
        let world = World::new();
        let script = format!(
            "IFS= read -r line; echo \"$line\" >>\"$ROOT/given\"; while ! test -e \"$ROOT/go\"; do sleep 0.01; done; \
             echo \"PINFOLD_DONE answer to $line\"; touch \"$ROOT/said\"; {behind}"
        );
        world.new_chat("a", &[], &script);
        let id = world.ok(&["send", "a", "x"]).stdout.trim().to_owned();
        world.message("a", &id, "delivered");
        let shim = Held::open(world.show("a")["shim_pid"].as_u64().unwrap() as u32).unwrap();
        world.kill_daemon();
        std::fs::write(world.path("go"), "").unwrap();
        world.until("it was said", || world.path("said").exists().then_some(()));
        match what {
            // A run that ends without a daemon is recorded, and its shim leaves.
            "lives on" => {}
            _ => shim.wait(),
        }
        let message = world.message("a", &id, "done");
        assert_eq!((&message["answer"], &message["tries"]), (&json!("answer to x"), &json!(1)), "{what}");
        assert_eq!(world.journal("given"), ["x"], "{what}: given once");
        world.check_history();
    }
}

#[test]
fn what_a_shim_heard_counts_when_it_is_killed_together_with_the_daemon() {
    let world = World::new();
    let script = "while IFS= read -r line; do echo \"$line\" >>\"$ROOT/given\"; \
         while ! test -e \"$ROOT/go\"; do sleep 0.01; done; echo \"PINFOLD_DONE answer to $line\"; done";
    world.new_chat("a", &[], script);
    let id = world.ok(&["send", "a", "x"]).stdout.trim().to_owned();
    world.message("a", &id, "delivered");
    let session = world.show("a");
    let shim = Held::open(session["shim_pid"].as_u64().unwrap() as u32).unwrap();
    let folder = world.home.join("sessions").join(session["id"].as_str().unwrap());
    world.kill_daemon();
    std::fs::write(world.path("go"), "").unwrap();
    let heard = |text: Vec<u8>| text.windows(11).any(|part| part == b"answer to x");
    world.until("the shim wrote it down", || {
        std::fs::read(folder.join("exits.turn")).ok().filter(|text| heard(text.clone())).map(drop)
    });
    shim.kill();
    shim.wait();
    assert_eq!(world.message("a", &id, "done")["answer"], "answer to x");
    assert_eq!(world.journal("given"), ["x"], "given once");
    world.check_history();
}

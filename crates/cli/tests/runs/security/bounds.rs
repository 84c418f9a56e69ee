//! How much one agent may use up.

use crate::again;
use crate::http::ask;
use crate::processes::PATIENCE;
use crate::world::{Answer, World, finish};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

const MIB: usize = 1 << 20;

/// A stopped session whose inbox keeps everything queued.
fn stopped(world: &World) {
    world.json(&["new", "s", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["stop", "s"]);
}

fn configured(policy: &str) -> World {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), format!("[policy]\n{policy}\n")).unwrap();
    world
}

fn post(world: &World, bytes: usize) -> (u16, Value) {
    let body = json!({ "text": "x".repeat(bytes) }).to_string();
    ask(world, "POST", "/v1/sessions/s/messages", &body)
}

#[test]
fn a_full_inbox_is_busy_and_has_room_again_when_a_message_leaves_it() {
    let world = configured("inbox_limit = \"2M\"");
    stopped(&world);
    let first = post(&world, MIB).1["id"].as_str().unwrap().to_owned();
    assert_eq!(post(&world, MIB).0, 200);
    let refused = world.run(&["send", "s", "one more"]);
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.stderr.contains("inbox") && refused.stderr.contains("inbox_limit"), "{refused:?}");
    world.ok(&["down"]);
    assert_eq!(world.run(&["send", "s", "one more"]).code, 75, "the next daemon counts what is stored");
    world.ok(&["inbox", "s", "--cancel", &first]);
    world.ok(&["send", "s", "one more"]);
}

#[test]
fn there_are_no_more_sessions_than_the_limit() {
    let world = configured("session_limit = 2");
    let new = |name| world.run(&["new", name, "--mode", "on-demand", "--", "cat"]);
    assert_eq!((new("a").code, new("b").code), (0, 0));
    let refused = new("c");
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.stderr.contains("session_limit"), "{refused:?}");
    world.ok(&["archive", "a"]);
    assert_eq!(new("c").code, 75, "an archived one is still there");
    world.ok(&["rm", "a", "--yes"]);
    assert_eq!(new("c").code, 0);
}

fn refused(world: &World, request: &Value, word: &str) {
    let mut request = request.clone();
    request["name"] = json!("s");
    request["command"] = json!(["cat"]);
    let (status, answer) = ask(world, "POST", "/v1/sessions", &request.to_string());
    assert_eq!((status, &answer["error"]["kind"]), (422, &json!("usage")), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains(word), "{answer}");
}

#[test]
fn tags_and_environment_have_a_size() {
    let world = World::new();
    world.ok(&["up"]);
    refused(&world, &json!({ "tags": ["x".repeat(257)] }), "tag");
    refused(&world, &json!({ "tags": vec!["x"; 65] }), "tags");
    refused(&world, &json!({ "env": { "A": "x".repeat(256 << 10) } }), "environment");
    assert!(world.sessions().is_empty());
    let most = json!({ "name": "s", "command": ["cat"], "tags": vec!["x".repeat(256); 64], "mode": "on-demand",
                       "env": { "A": "x".repeat(200 << 10) } });
    assert_eq!(ask(&world, "POST", "/v1/sessions", &most.to_string()).0, 200);
    let answer = ask(&world, "POST", "/v1/sessions/s/set", &json!({ "tags": vec!["x"; 65] }).to_string());
    assert_eq!(answer.0, 422, "{answer:?}");
}

/// The variable that says how many holds a process of a run requests.
const HOLDS: &str = "BOUNDS_HOLDS";

/// Not a test: what a process of a run does that requests many holds.
#[test]
fn holds_many() {
    let (Ok(count), Ok(socket)) = (std::env::var(HOLDS), std::env::var("PINFOLD_SOCKET")) else { return };
    let mut held = Vec::new();
    for number in 0..count.parse::<u32>().unwrap() {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = json!({ "resource": format!("key:{}-{number}", std::process::id()) }).to_string();
        let head =
            format!("POST /v1/locks/hold HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        if line.contains(" 200 ") {
            held.push(stream);
        }
    }
    println!("granted {}", held.len());
    _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn the_processes_of_a_run_share_its_holds() {
    let world = World::new();
    let one = again::words("security::bounds::holds_many").map(|word| format!("'{word}'")).join(" ");
    // The second process asks when the first has its locks; both hold on until the run ends.
    let script = format!(
        "mkfifo \"$ROOT/wait\"; exec 8<>\"$ROOT/wait\"; {one} <&8 >\"$ROOT/first\" &
         until grep -q granted \"$ROOT/first\"; do sleep 0.05; done; grep granted \"$ROOT/first\"; {one} <&8"
    );
    let holds = format!("{HOLDS}=40");
    world.json(&["new", "s", "--env", "ROOT", "--env", &holds, "--", "sh", "-c", &script]);
    let granted = |total: &str| {
        let log = || world.run(&["logs", "s"]).stdout;
        let end = std::time::Instant::now() + crate::processes::PATIENCE;
        while !log().contains(total) {
            assert!(std::time::Instant::now() < end, "never `{total}`: {}", log());
        }
    };
    granted("granted 40");
    granted("granted 24");
}

fn key_files(world: &World) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(world.path("locks")).unwrap().flatten().map(|entry| entry.path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("k-")).collect()
}

/// Locks a key for a moment, and returns its fence.
fn fence_of(world: &World, key: &str) -> u64 {
    let said = world.ok(&["lock", key, "--", "sh", "-c", "echo $PINFOLD_FENCE"]);
    said.stdout.trim().parse().unwrap()
}

#[test]
fn files_of_keys_that_nobody_uses_go_and_their_fences_grow_on() {
    let world = World::new();
    let before: Vec<u64> = (0..20).map(|number| fence_of(&world, &format!("key:{number}"))).collect();
    let young = fence_of(&world, "key:young");
    let files = key_files(&world);
    let mut holder = world.command(&["lock", "key:0", "--", "sleep", "100000"]).spawn().unwrap();
    let end = std::time::Instant::now() + crate::processes::PATIENCE;
    while world.json(&["locks"]).as_array().unwrap().is_empty() {
        assert!(std::time::Instant::now() < end, "never held");
    }
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(8 * 24 * 60 * 60);
    for file in &files {
        std::fs::File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
    }
    assert!(fence_of(&world, "key:young") > young);
    world.ok(&["up"]);
    while key_files(&world).len() > 2 {
        assert!(std::time::Instant::now() < end, "they stay: {:?}", key_files(&world));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let busy = world.run(&["--json", "lock", "key:0", "--", "true"]);
    assert_eq!((busy.code, &busy.error()["holder"]["pid"]), (75, &holder.id().into()), "{busy:?}");
    for (number, before) in before.iter().enumerate().skip(1) {
        let now = fence_of(&world, &format!("key:{number}"));
        assert!(now > *before, "key:{number}: {now} after {before}");
    }
    crate::processes::children(holder.id()).into_iter().for_each(crate::processes::kill);
    _ = holder.kill();
    _ = holder.wait();
}

#[test]
fn the_verb_says_what_is_too_large() {
    let world = World::new();
    let tag = "x".repeat(300);
    let said: Answer = finish(&mut world.command(&["new", "s", "--tag", &tag, "--", "cat"]));
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("300 bytes"), "{said:?}");
}

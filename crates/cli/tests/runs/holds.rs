//! Locks held over HTTP: as long as the connection is open, and not a moment longer.

use crate::again;
use crate::http::{ask, connect, hold, read, request};
use crate::lines::Lines;
use crate::processes;
use crate::world::{Ends, World, number};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

fn up() -> World {
    let world = World::new();
    world.ok(&["up"]);
    world
}

/// The held keys, as the daemon lists them.
fn held(world: &World) -> Vec<Value> {
    let (status, locks) = ask(world, "GET", "/v1/locks", "");
    assert_eq!(status, 200);
    locks.as_array().unwrap().iter().filter(|lock| lock["kind"] == "key").cloned().collect()
}

#[test]
fn a_hold_is_granted_listed_and_refused_to_others_with_its_holder() {
    let world = up();
    let mut first = hold(&world, &json!({ "resource": "key:deploy", "reason": "release 7" }));
    assert_eq!(first.field("content-type"), Some("application/x-ndjson"));
    let lock = first.granted();
    assert_eq!((&lock["resource"], &lock["kind"]), (&json!("key:deploy"), &json!("key")));
    assert_eq!(lock["reason"], "release 7");
    assert_eq!(lock["holder"]["pid"], std::process::id(), "the holder is the client: {lock}");
    assert_eq!(lock["holder"]["verdict"], "alive");
    assert_eq!(held(&world), std::slice::from_ref(&lock), "the list has the very same object");
    assert_eq!(world.json(&["locks"])[0], lock, "and so has the verb");
    let (status, answer) = ask(&world, "POST", "/v1/locks/hold", r#"{"resource":"key:deploy"}"#);
    assert_eq!((status, &answer["error"]["kind"]), (409, &json!("busy")), "{answer}");
    assert_eq!(answer["error"]["holder"], lock["holder"]);
    let busy = world.run(&["--json", "lock", "key:deploy", "--", "true"]);
    assert_eq!((busy.code, &busy.json()["error"]["holder"]["pid"]), (75, &lock["holder"]["pid"]));
    let mut other = hold(&world, &json!({ "resource": "key:other" }));
    assert!(other.granted()["fence"].is_u64(), "another key is another lock");
}

#[test]
fn closing_the_connection_frees_it_and_the_events_say_so() {
    let world = up();
    let mut first = hold(&world, &json!({ "resource": "key:k" }));
    let fence = first.granted()["fence"].clone();
    let watch = world.watch();
    let mut waiting = connect(&world);
    let wanted = r#"{"resource":"key:k","wait":"240s"}"#;
    waiting.write_all(request("POST", "/v1/locks/hold", wanted).as_bytes()).unwrap();
    drop(first);
    let mut second = read(waiting);
    assert!(second.granted()["fence"].as_u64() > fence.as_u64());
    let event =
        |kind: &'static str| watch.event(kind, |event| event["kind"] == kind && event["fence"] == fence);
    assert_eq!(event("lock_acquired")["resource"], "key:k");
    assert_eq!(event("lock_released")["client"]["pid"], std::process::id());
    let (status, _) = ask(&world, "POST", "/v1/locks/hold", r#"{"resource":"key:k"}"#);
    assert_eq!(status, 409);
    watch.event("the refusal", |event| event["kind"] == "lock_busy" && event["resource"] == "key:k");
}

#[test]
fn bytes_that_nobody_reads_do_not_hide_the_end_of_a_client() {
    let world = up();
    let mut stream = connect(&world);
    let body = r#"{"resource":"key:k"}"#;
    let more = "GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n".repeat(3);
    let head = format!("POST /v1/locks/hold HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}{more}").as_bytes()).unwrap();
    let mut first = read(stream);
    first.granted();
    drop(first);
    hold(&world, &json!({ "resource": "key:k", "wait": "240s" })).granted();
}

#[test]
fn whoever_has_only_finished_sending_holds_on() {
    let world = up();
    let mut first = hold(&world, &json!({ "resource": "key:k" }));
    first.granted();
    first.stream().shutdown(Shutdown::Write).unwrap();
    let (status, _) = ask(&world, "POST", "/v1/locks/hold", r#"{"resource":"key:k","wait":"200ms"}"#);
    assert_eq!(status, 409);
    drop(first);
    hold(&world, &json!({ "resource": "key:k", "wait": "240s" })).granted();
}

/// The variable with the key that a client in its own process holds, and the socket to hold it through.
const HOLDS: &str = "HOLDS_KEY_AT";

/// A client in its own process, which can be killed: this program, started again.
fn client(world: &World, key: &str) -> (std::process::Child, u32) {
    let [program, words @ ..] = again::words("holds::holds_on");
    let mut command = std::process::Command::new(program);
    command.args(words).stdout(Stdio::piped());
    let socket = world.home.join("pinfold.sock");
    let mut child = command.env(HOLDS, format!("{key} {}", socket.display())).spawn().unwrap();
    Lines::of(child.stdout.take().unwrap()).until("the client to hold it", |line| line == "held");
    let pid = child.id();
    (child, pid)
}

/// Not a test: what such a client does.
#[test]
fn holds_on() {
    let Ok(told) = std::env::var(HOLDS) else { return };
    let (key, socket) = told.split_once(' ').unwrap();
    let mut stream = UnixStream::connect(socket).unwrap();
    let body = json!({ "resource": key }).to_string();
    let head = format!("POST /v1/locks/hold HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut answer = BufReader::new(stream).lines();
    assert!(answer.next().unwrap().unwrap().contains(" 200 "));
    println!("held");
    std::thread::sleep(Duration::from_secs(100_000));
}

#[test]
fn kill_of_the_client_frees_it_and_so_does_unlock_without_harming_the_daemon() {
    let world = up();
    let daemon = world.daemon_pid();
    let (mut child, pid) = client(&world, "key:k");
    assert_eq!(number(&held(&world)[0]["holder"]["pid"]), pid);
    processes::kill(pid);
    child.ended();
    hold(&world, &json!({ "resource": "key:k", "wait": "240s" })).granted();
    let (mut child, pid) = client(&world, "key:other");
    let answer = world.json(&["unlock", "key:other", "--kill"]);
    assert_eq!(number(&answer["ended"][0]["pid"]), pid, "{answer}");
    child.ended();
    assert_eq!(world.daemon_pid(), daemon);
}

#[test]
fn a_hold_past_its_limit_is_revoked_and_its_end_does_not_touch_the_next_one() {
    let world = up();
    let mut old = hold(&world, &json!({ "resource": "key:k", "max_hold": "100ms" }));
    let fence = old.granted()["fence"].as_u64().unwrap();
    let mut new = hold(&world, &json!({ "resource": "key:k", "wait": "240s" }));
    let next = new.granted()["fence"].as_u64().unwrap();
    assert!(next > fence + 1, "{next} is behind one that nobody got after {fence}");
    let line = old.line().unwrap();
    assert_eq!(line["revoked"]["fence"], fence);
    assert!(line["revoked"]["why"].as_str().unwrap().contains("100 ms"), "{line}");
    assert_eq!(old.line(), None, "the stream has ended");
    drop(old);
    assert_eq!(held(&world)[0]["fence"], next);
    let (status, _) = ask(&world, "POST", "/v1/locks/hold", r#"{"resource":"key:k"}"#);
    assert_eq!(status, 409, "the new one is held");
    let events = world.events();
    let warned = events.iter().find(|event| event["kind"] == "health_warn").unwrap();
    assert_eq!((&warned["reason"], &warned["fence"]), (&json!("hold_limit"), &json!(fence)));
}

#[test]
fn a_revoked_fence_is_refused_although_nobody_has_the_lock_since() {
    let world = up();
    let mut old = hold(&world, &json!({ "resource": "key:k", "max_hold": "1ms" }));
    let fence = pinfold_lock::Fence(old.granted()["fence"].as_u64().unwrap());
    assert!(old.line().unwrap()["revoked"].is_object());
    let folder = pinfold_lock::Folder::open(world.path("locks")).unwrap();
    let key = pinfold_lock::Resource::Key("k".into());
    let mut file = pinfold_lock::FencedFile::open(world.path("data"), &folder, &key).unwrap();
    let refused = file.append(fence, b"late").unwrap_err();
    assert!(matches!(refused, pinfold_lock::AppendError::Superseded { .. }), "{refused}");
}

#[test]
fn the_configuration_limits_every_hold() {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), "[policy]\nhold_limit = \"100ms\"\n").unwrap();
    world.ok(&["up"]);
    for wanted in [json!({ "resource": "key:k" }), json!({ "resource": "key:k", "max_hold": "1h" })] {
        let mut old = hold(&world, &wanted);
        old.granted();
        let why = old.line().unwrap()["revoked"]["why"].clone();
        assert!(why.as_str().unwrap().contains("hold_limit"), "{why}");
    }
}

#[test]
fn a_client_that_goes_away_stops_waiting() {
    let world = up();
    let mut first = hold(&world, &json!({ "resource": "key:k" }));
    first.granted();
    let before = threads(&world);
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let mut stream = connect(&world);
        let wanted = r#"{"resource":"key:k","wait":"1h"}"#;
        stream.write_all(request("POST", "/v1/locks/hold", wanted).as_bytes()).unwrap();
        waiting.push(stream);
    }
    until(&world, "ten wait", |now| now >= before + 10);
    drop(waiting);
    until(&world, "nobody waits", |now| now < before + 10);
    drop(first);
    hold(&world, &json!({ "resource": "key:k", "wait": "240s" })).granted();
    let granted = world.events().iter().filter(|event| event["kind"] == "lock_acquired").count();
    assert_eq!(granted, 2, "none of those that went away was granted anything");
}

/// How many threads of the daemon wait for a hold.
fn threads(world: &World) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", world.daemon_pid())).unwrap();
    let names = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "hold").count()
}

fn until(world: &World, what: &str, reached: impl Fn(usize) -> bool) {
    let begun = std::time::Instant::now();
    while !reached(threads(world)) {
        assert!(begun.elapsed() < processes::PATIENCE, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn what_cannot_be_held_is_refused_with_its_reason() {
    let world = up();
    let rows = [
        (r#"{"resource":"session:a"}"#, 422, "only `key:`"),
        (r#"{"resource":"/tmp"}"#, 422, "only `key:`"),
        (r#"{"resource":"vendor:a:b:c"}"#, 422, "only `key:`"),
        (r#"{"resource":"key:"}"#, 422, "names nothing"),
        ("{}", 422, "`resource` is missing"),
        ("", 422, "`resource` is missing"),
        (r#"{"resource":5}"#, 422, "integer"),
        (r#"{"resource":"key:k","wait":"5"}"#, 422, "10s"),
        (r#"{"resource":"key:k","max_hold":"soon"}"#, 422, "`max_hold`"),
        (r#"{"resource":"key:k","maxhold":"1s"}"#, 422, "the nearest one is `max_hold`"),
        (r#"{"resource""#, 400, "cannot be read"),
    ];
    for (body, status, says) in rows {
        let (got, answer) = ask(&world, "POST", "/v1/locks/hold", body);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(got == status && message.contains(says), "{body}: {got} {answer}");
        assert_eq!(answer["error"]["kind"], "usage");
    }
    assert_eq!(held(&world), [] as [Value; 0]);
}

#[test]
fn a_client_has_only_so_many_holds() {
    let world = up();
    let mut mine = Vec::new();
    let refused = loop {
        let mut reply = hold(&world, &json!({ "resource": format!("key:{}", mine.len()) }));
        if reply.status != 200 {
            break reply;
        }
        reply.granted();
        mine.push(reply);
        assert!(mine.len() < 1000, "there is no limit");
    };
    assert_eq!(refused.status, 429);
    let error = refused.object()["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("holds already"), "{error}");
    let (mut other, pid) = client(&world, "key:other");
    processes::kill(pid);
    other.ended();
    let watch = world.watch();
    mine.pop();
    watch.event("the end of one", |event| {
        event["kind"] == "lock_released" && event["resource"] != "key:other"
    });
    hold(&world, &json!({ "resource": "key:again" })).granted();
}

#[test]
fn holds_end_with_the_daemon_however_it_ends() {
    let world = up();
    for end in ["down", "kill"] {
        let mut old = hold(&world, &json!({ "resource": "key:k" }));
        old.granted();
        let mut waiting = connect(&world);
        let wanted = r#"{"resource":"key:k","wait":"1h"}"#;
        waiting.write_all(request("POST", "/v1/locks/hold", wanted).as_bytes()).unwrap();
        until(&world, "it waits", |now| now > 0);
        match end {
            "down" => _ = world.ok(&["down"]),
            _ => world.kill_daemon(),
        }
        assert_eq!(world.run(&["lock", "key:k", "--", "true"]).code, 0, "free after {end}");
        if end == "down" {
            let reply = read(waiting);
            assert_eq!((reply.status, &reply.object()["error"]["kind"]), (503, &json!("unavailable")));
            assert_eq!(old.line(), None, "the stream has ended");
        }
        world.ok(&["up"]);
    }
}

//! What a slow, greedy or broken client does to the daemon: nothing, and the client is told so.

use crate::http::{ask, connect, read, request, send};
use crate::world::{World, number};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Instant;

fn up() -> World {
    let world = World::new();
    world.ok(&["up"]);
    world
}

/// Checks that the daemon answers others as if nothing had happened.
fn answers(world: &World) {
    let (status, _) = ask(world, "GET", "/v1/status", "");
    assert_eq!(status, 200);
}

/// Reads to the end of a connection, however it ends.
fn to_the_end(mut stream: UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut part) {
        bytes.extend_from_slice(&part[..read]);
    }
    bytes
}

#[test]
fn heads_have_16_kib_and_no_more() {
    let world = up();
    let head = |size: usize| {
        let frame = "GET /v1/ping HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: \r\n\r\n".len();
        let filling = "y".repeat(size - frame);
        format!("GET /v1/ping HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: {filling}\r\n\r\n")
    };
    assert_eq!(send(&world, head(16 << 10).as_bytes()).status, 200);
    for size in [(16 << 10) + 1, 20_000, 40_000, 1 << 20] {
        let reply = send(&world, head(size).as_bytes());
        assert_eq!(reply.status, 431, "{size}");
        assert_eq!(reply.object()["error"]["kind"], "usage");
    }
    let many: String = (0..200).map(|n| format!("x{n}: y\r\n")).collect();
    assert_eq!(send(&world, format!("GET /v1/ping HTTP/1.1\r\n{many}\r\n").as_bytes()).status, 431);
    // An endless head is not read forever.
    let mut endless = connect(&world);
    while endless.write_all(&[b'x'; 4096]).is_ok() {}
    answers(&world);
}

#[test]
fn bodies_have_2_mib_and_no_more_and_come_whole() {
    let world = up();
    let body = |size: usize| format!("{{\"name\":\"{}\"}}", "x".repeat(size - 11));
    let (status, _) = ask(&world, "POST", "/v1/sessions", &body(2 << 20));
    assert_eq!(status, 422, "read, and no name");
    let (status, answer) = ask(&world, "POST", "/v1/sessions", &body((2 << 20) + 1));
    assert_eq!((status, &answer["error"]["kind"]), (413, &json!("usage")), "{answer}");
    let length = "POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n";
    assert_eq!(send(&world, length.as_bytes()).status, 413, "what is announced is enough");
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20));
    let chunked = "POST /v1/sessions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let reply = send(&world, format!("{chunked}{}", chunk.repeat(3)).as_bytes());
    assert_eq!(reply.status, 413);
    // A body that is cut short.
    let mut short = connect(&world);
    short
        .write_all(b"POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{\"name\":")
        .unwrap();
    short.shutdown(Shutdown::Write).unwrap();
    let reply = read(short);
    assert_eq!((reply.status, &reply.object()["error"]["kind"]), (400, &json!("usage")));
    let mut gone = connect(&world);
    gone.write_all(b"POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{\"name\":")
        .unwrap();
    drop(gone);
    answers(&world);
}

#[test]
fn what_is_no_http_is_answered_with_the_error_object() {
    let world = up();
    let rows: [&[u8]; 7] = [
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /v1/status\r\n\r\n",
        b"GET /v1/status HTTP/9.9\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /v1/\x00 HTTP/1.1\r\n\r\n",
        b"POST /v1/sessions HTTP/1.1\r\ncontent-length: many\r\n\r\n",
    ];
    for bytes in rows {
        let reply = send(&world, bytes);
        let shown = String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(reply.status, 400, "{shown}");
        assert_eq!(reply.object()["error"]["kind"], "usage", "{shown}");
    }
    // A client that begins with HTTP/2 would not understand an answer.
    let mut preface = connect(&world);
    preface.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    assert_eq!(to_the_end(preface), b"");
    answers(&world);
}

#[test]
fn every_address_and_method_that_is_not_there_has_the_error_object() {
    let world = up();
    for (method, path, status, kind) in [
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v1/sessions/", 404, "not_found"),
        ("GET", "/v1/sessions/nobody", 404, "not_found"),
        ("GET", "/v2/status", 404, "not_found"),
        ("GET", "/v1/sessions/a/b/c", 404, "not_found"),
        ("GET", "/v1/sessions/%00", 404, "not_found"),
        ("GET", "/v1/sessions/..%2f..%2fetc", 404, "not_found"),
        ("GET", "/v1/sessions/%ff", 400, "usage"),
        ("BREW", "/v1/nowhere", 404, "not_found"),
        ("DELETE", "/v1/sessions", 405, "usage"),
        ("PUT", "/v1/status", 405, "usage"),
        ("GET", "/v1/locks/hold", 405, "usage"),
        ("POST", "/v1/locks", 405, "usage"),
        ("POST", "/metrics", 405, "usage"),
        ("PATCH", "/v1/openapi.json", 405, "usage"),
        ("GET", "/v1/events?since=x", 400, "usage"),
        ("GET", "/v1/sessions?all=maybe", 400, "usage"),
    ] {
        let (got, answer) = ask(&world, method, path, "");
        assert_eq!((got, &answer["error"]["kind"]), (status, &json!(kind)), "{method} {path}: {answer}");
    }
    let reply = send(&world, request("DELETE", "/v1/sessions", "").as_bytes());
    assert!(reply.field("allow").is_some_and(|allow| allow.contains("GET") && allow.contains("POST")));
}

#[test]
fn slow_clients_are_sent_away_and_hold_up_nobody() {
    let world = up();
    let begun = Instant::now();
    let mut silent = connect(&world);
    let mut dripping = connect(&world);
    let mut bodiless = connect(&world);
    let mut idle = connect(&world);
    idle.write_all(b"GET /v1/ping HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    bodiless.write_all(b"POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{").unwrap();
    dripping.write_all(b"GET /v1/ping HTTP/1.1\r\n").unwrap();
    // A byte now and then does not make a head.
    let drip = std::thread::spawn(move || {
        while dripping.write_all(b"x").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    });
    answers(&world);
    let reply = read(bodiless);
    assert_eq!((reply.status, &reply.object()["error"]["kind"]), (408, &json!("timeout")));
    drip.join().unwrap();
    assert_eq!(silent.read(&mut [0; 16]).unwrap_or(0), 0, "nothing is said to who asked nothing");
    assert!(
        String::from_utf8(to_the_end(idle)).unwrap().starts_with("HTTP/1.1 200"),
        "answered, then closed"
    );
    let took = begun.elapsed().as_secs();
    assert!(took >= 9, "nobody was sent away before its time: {took} s");
    answers(&world);
}

#[test]
fn one_connection_serves_many_requests_also_when_all_come_at_once() {
    let world = up();
    let mut stream = connect(&world);
    let one = "GET /v1/ping HTTP/1.1\r\nhost: x\r\n\r\n";
    let last = "GET /v1/nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(format!("{}{last}", one.repeat(50)).as_bytes()).unwrap();
    let text = String::from_utf8(to_the_end(stream)).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 50);
    assert_eq!(text.matches("HTTP/1.1 404").count(), 1);
    let old = send(&world, b"GET /v1/ping HTTP/1.0\r\n\r\n");
    assert_eq!(old.status, 200);
    assert_eq!(old.text(), "{}");
    // Done with sending, but not with reading.
    let mut half = connect(&world);
    half.write_all(one.as_bytes()).unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(half).status, 200);
}

#[test]
fn a_thousand_connections_keep_nobody_out() {
    let world = up();
    let mut open = Vec::new();
    for n in 0..1000 {
        let Ok(mut stream) = UnixStream::connect(world.home.join("pinfold.sock")) else { break };
        let part: &[u8] = if n % 2 == 0 { b"" } else { b"POST /v1/locks/hold HTTP/1.1\r\nx: " };
        _ = stream.write_all(part);
        open.push(stream);
    }
    assert!(open.len() > 200, "the test itself ran out of descriptors at {}", open.len());
    answers(&world);
    world.json(&["new", "a", "--", "sleep", "100000"]);
    assert_eq!(world.show("a")["state"], "running");
    let pid = world.daemon_pid();
    drop(open);
    answers(&world);
    assert_eq!(world.daemon_pid(), pid);
}

#[test]
fn where_descriptors_are_few_who_is_silent_makes_room() {
    let world = World::new();
    let mut command = std::process::Command::new("sh");
    let up = format!("ulimit -n 128; exec {} up", world.binary.display());
    command
        .args(["-c", &up])
        .env("PINFOLD_HOME", &world.home)
        .env("PINFOLD_LOCKS", world.path("locks"))
        .env("XDG_STATE_HOME", world.path("state"));
    assert_eq!(crate::world::finish(&mut command).code, 0);
    let silent: Vec<UnixStream> = (0..200).map(|_| connect(&world)).collect();
    for _ in 0..20 {
        answers(&world);
    }
    world.json(&["new", "a", "--", "sleep", "100000"]);
    drop(silent);
}

#[test]
fn every_field_of_a_new_session_is_taken() {
    let world = up();
    let parent = json!({ "name": "parent", "command": ["/bin/sleep", "100000"] });
    assert_eq!(ask(&world, "POST", "/v1/sessions", &parent.to_string()).0, 200);
    let all = json!({
        "name": "a", "agent": "command", "vendor_session": null, "dir": world.root, "mode": "on-demand",
        "memory": "256M", "idle": "10s", "stop_grace": "3s", "pty": false, "input": "json", "turns": "done",
        "parent": "parent", "tags": ["x", "y"], "env": { "K": "secret" }, "dir_lock": false, "beside": false,
        "force": false, "command": ["/bin/sleep", "100000"],
    });
    let (status, made) = ask(&world, "POST", "/v1/sessions", &all.to_string());
    assert_eq!(status, 200, "{made}");
    let expected = json!({
        "name": "a", "agent": "command", "dir": world.root, "mode": "on-demand", "state": "idle",
        "memory_limit_bytes": 256 << 20, "parent": "parent", "tags": ["x", "y"], "dir_lock": false,
        "command": ["/bin/sleep", "100000"], "vendor_session": null,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(made[field], *value, "{field}");
    }
    assert_eq!(made["policy"]["idle_after"], 10_000, "{made}");
    assert_eq!(made["policy"]["stop_grace"], 3_000);
    assert!(made["env"].as_array().unwrap().contains(&json!("K")) && !made.to_string().contains("secret"));
    let (status, answer) = ask(&world, "POST", "/v1/sessions", &all.to_string());
    assert_eq!((status, &answer["error"]["kind"]), (409, &json!("exists")));
    assert_eq!(world.sessions().len(), 2, "nothing was made by a refusal");
}

#[test]
fn a_field_or_a_value_that_is_not_known_is_named_and_nothing_is_made() {
    let world = up();
    for (field, nearest) in
        [("comand", "command"), ("dirlock", "dir_lock"), ("tag", "tags"), ("Name", "name")]
    {
        let (status, answer) = ask(&world, "POST", "/v1/sessions", &json!({ field: "x" }).to_string());
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(status, 422, "{answer}");
        assert_eq!(message, format!("there is no field `{field}`; the nearest one is `{nearest}`"));
    }
    for (field, value) in [
        ("name", json!(5)),
        ("name", json!(".a")),
        ("mode", json!("sometimes")),
        ("memory", json!("512")),
        ("idle", json!("soon")),
        ("stop_grace", json!("5")),
        ("input", json!("xml")),
        ("turns", json!("never")),
        ("tags", json!("x")),
        ("env", json!(["x"])),
        ("command", json!([])),
        ("command", json!(["no-such-program"])),
        ("dir", json!("/nowhere")),
        ("agent", json!("nobody")),
    ] {
        let mut body = json!({ "name": "b", "command": ["/bin/true"] });
        body[field] = value.clone();
        let (status, answer) = ask(&world, "POST", "/v1/sessions", &body.to_string());
        assert_eq!(status, 422, "{field} {value}: {answer}");
    }
    assert_eq!(world.sessions().len(), 0, "nothing was made by a refusal");
}

#[test]
fn an_archived_session_is_not_changed_and_its_stop_is_done() {
    let world = up();
    world.json(&["new", "old", "--mode", "on-demand", "--idle", "5m", "--", "cat"]);
    world.ok(&["archive", "old"]);
    let (status, answer) = ask(&world, "POST", "/v1/sessions/old/set", r#"{"idle":"7m"}"#);
    assert_eq!((status, &answer["error"]["kind"]), (409, &json!("archived")), "{answer}");
    // Nothing of it is alive, and a stop asks for no more.
    let (status, answer) = ask(&world, "POST", "/v1/sessions/old/stop", "");
    assert_eq!((status, &answer["state"]), (200, &json!("archived")), "{answer}");
    world.ok(&["restore", "old"]);
    assert_eq!(world.show("old")["policy"]["idle_after"], 300_000);
}

#[test]
fn the_empty_name_is_the_name_of_no_session() {
    let world = up();
    world.json(&["new", "only", "--mode", "on-demand", "--", "cat"]);
    for (method, path) in
        [("GET", "/v1/sessions/"), ("POST", "/v1/sessions//stop"), ("GET", "/v1/events?session=")]
    {
        let (status, answer) = ask(&world, method, path, "");
        assert_eq!(status, 404, "{path}: {answer}");
        assert_eq!(answer["error"]["message"], "there is no session ``", "{path}");
    }
}

#[test]
fn the_verbs_of_a_session_answer_with_the_session() {
    let world = up();
    let body = json!({ "name": "a", "command": ["/bin/sleep", "100000"] }).to_string();
    let (_, made) = ask(&world, "POST", "/v1/sessions", &body);
    assert_eq!(made["state"], "running");
    let act = |verb: &str| -> (u16, Value) { ask(&world, "POST", &format!("/v1/sessions/a/{verb}"), "") };
    let (status, restarted) = act("restart");
    assert_eq!((status, &restarted["restarts"]), (200, &json!(1)));
    assert_ne!(number(&restarted["pid"]), number(&made["pid"]));
    for (verb, state) in
        [("stop", "stopped"), ("start", "running"), ("archive", "archived"), ("restore", "stopped")]
    {
        let (status, session) = act(verb);
        assert_eq!(status, 200, "{verb}: {session}");
        if verb != "restore" {
            assert_eq!(session["state"], state);
        }
    }
    act("archive");
    let (status, answer) = act("start");
    assert_eq!((status, &answer["error"]["kind"]), (409, &json!("archived")), "{answer}");
    let (_, list) = ask(&world, "GET", "/v1/sessions", "");
    assert_eq!(list, json!([]));
    let (_, list) = ask(&world, "GET", "/v1/sessions?all=true", "");
    assert_eq!(list[0]["name"], "a");
}

//! Followed output and events, over the socket as any program would read them.

use crate::world::World;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

struct Http(BufReader<UnixStream>);

impl Http {
    /// Sends a request to the API socket and reads the status.
    fn send(world: &World, request: &str) -> (u16, Http) {
        let mut stream = UnixStream::connect(world.home.join("pinfold.sock")).unwrap();
        stream.set_read_timeout(Some(crate::processes::PATIENCE)).unwrap();
        // A peer that has heard enough closes; its answer is there all the same.
        _ = stream.write_all(request.as_bytes());
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        (status, Http(reader))
    }

    /// The next line that begins like this.
    fn line(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "ended before `{beginning}`");
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
        }
    }

    fn rest(mut self) -> String {
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        text
    }
}

fn post(world: &World, path: &str, body: &str) -> (u16, Value) {
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, http) = Http::send(world, &request);
    let text = http.rest();
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn get(world: &World, path: &str, header: &str) -> Http {
    let (status, http) = Http::send(world, &format!("GET {path} HTTP/1.1\r\nhost: x\r\n{header}\r\n"));
    assert_eq!(status, 200);
    http
}

#[test]
fn events_are_resumed_by_their_number_also_over_a_restart_of_the_daemon() {
    let world = World::new();
    world.json(&["new", "a", "--", "sleep", "100000"]);
    let all = world.events();
    let mut first = get(&world, "/v1/events?since=0", "");
    assert_eq!(first.line("id:"), "1");
    let event: Value = serde_json::from_str(&first.line("data:")).unwrap();
    assert_eq!(event, all[0]);
    let mut second = get(&world, "/v1/events?since=2", "");
    assert_eq!(second.line("id:"), "3");
    drop((first, second));
    world.kill_daemon();
    world.ok(&["up"]);
    let last = all.len();
    let mut third = get(&world, "/v1/events", &format!("last-event-id: {last}\r\n"));
    assert_eq!(third.line("id:"), (last + 1).to_string());
    let event: Value = serde_json::from_str(&third.line("data:")).unwrap();
    assert_eq!((&event["seq"], &event["kind"]), (&json!(last + 1), &json!("daemon_started")));
    world.ok(&["stop", "a"]);
    let stopped = world.watch();
    stopped.event("the stop", |event| event["kind"] == "stopped");
    let since = world.json(&["events", "--since", "3"]);
    assert_eq!(since[0]["seq"], 4);
}

#[test]
fn following_the_output_is_being_a_consumer_until_it_is_killed() {
    let world = World::new();
    world.json(&["new", "a", "--", "sh", "-c", "echo begun; exec sleep 100000"]);
    assert_eq!(world.show("a")["consumers"], 0);
    let watch = world.watch();
    let following = world.follow(&["logs", "a", "-f"]);
    following.until("the first line", |line| line == "begun");
    assert_eq!(world.show("a")["consumers"], 1);
    let mut child = following.child.id();
    crate::processes::kill(std::mem::take(&mut child));
    watch.event("the end of the consumer", |event| event["kind"] == "consumer_left");
    let session = world.show("a");
    assert_eq!(session["consumers"], 0);
    assert!(session["last_consumer_at"].is_string());
    let lists = world.follow(&["--json", "events", "-f"]);
    lists.until("something", |_| true);
    assert_eq!(world.show("a")["consumers"], 0, "lists are no consumers");
}

#[test]
fn output_comes_line_by_line_with_its_run_and_stream() {
    let world = World::new();
    let script = "echo one; echo two >&2; printf 'no end'; exit 0";
    world.json(&["new", "a", "--mode", "once", "--", "sh", "-c", script]);
    world.wait("a", "stopped");
    let lines = world.json(&["logs", "a"]);
    let texts: Vec<(&Value, &Value)> =
        lines.as_array().unwrap().iter().map(|line| (&line["stream"], &line["text"])).collect();
    assert!(texts.contains(&(&json!("stdout"), &json!("one"))), "{texts:?}");
    assert!(texts.contains(&(&json!("stderr"), &json!("two"))), "{texts:?}");
    assert!(texts.contains(&(&json!("stdout"), &json!("no end"))), "{texts:?}");
    let run = world.events_of("a", "run_started")[0]["run"].clone();
    assert!(lines.as_array().unwrap().iter().all(|line| line["run"] == run && line["at"].is_string()));
    assert_eq!(world.ok(&["logs", "a", "-n", "1"]).stdout.lines().count(), 1);
    assert_eq!(world.json(&["logs", "a", "--run", run.as_str().unwrap()]), lines);
    let exit = &world.events_of("a", "run_exited")[0];
    assert_eq!(exit["output"].as_array().map(Vec::len), Some(3), "{exit}");
}

#[test]
fn requests_that_cannot_be_are_answered_with_an_object_and_their_status() {
    let world = World::new();
    world.json(&["new", "a", "--", "sleep", "100000"]);
    let session = "/v1/sessions";
    let big = format!("{{\"name\":\"{}\"}}", "x".repeat(3 << 20));
    let rows: [(&str, &str, u16, &str); 10] = [
        (session, "{", 400, "usage"),
        (session, r#"{"nam":"b"}"#, 422, "usage"),
        (session, r#"{"name":"../b","command":["true"]}"#, 422, "usage"),
        (session, r#"{"name":"b","command":["true"],"memory":"12"}"#, 422, "usage"),
        (session, r#"{"name":"b","command":["no-such-program"]}"#, 422, "bad_config"),
        (session, r#"{"name":"a","command":["true"],"caller_env":{"PATH":"/bin:/usr/bin"}}"#, 409, "exists"),
        (session, &big, 413, "usage"),
        ("/v1/sessions/nobody/start", "", 404, "not_found"),
        ("/v1/nowhere", "", 404, "not_found"),
        ("/v1/status", "", 405, "usage"),
    ];
    for (path, body, status, kind) in rows {
        let (got, answer) = post(&world, path, body);
        assert_eq!((got, &answer["error"]["kind"]), (status, &json!(kind)), "{path}: {answer}");
    }
    let (status, made) = post(&world, session, r#"{"name":"b","command":["/bin/sleep","100000"]}"#);
    assert_eq!((status, &made["state"]), (200, &json!("running")), "{made}");
    let (status, stopped) = post(&world, "/v1/sessions/b/stop", r#"{"timeout":"1s"}"#);
    assert_eq!((status, &stopped["state"]), (200, &json!("stopped")), "{stopped}");
}

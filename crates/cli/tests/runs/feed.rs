//! The feed: a snapshot, then every change with its revision, for any number of clients, over the socket as
//! any program would read it.

use crate::processes::PATIENCE;
use crate::world::World;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// One event of the feed.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    id: Option<String>,
    kind: String,
    data: Value,
}

/// A client of the feed; too long a silence is an error.
struct Feed(BufReader<UnixStream>);

impl Feed {
    fn open(world: &World, query: &str, header: &str) -> Feed {
        let mut stream = UnixStream::connect(world.home.join("pinfold.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /v1/feed{query} HTTP/1.1\r\nhost: x\r\n{header}\r\n").unwrap();
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        assert!(status.contains(" 200 "), "{status}");
        Feed(reader)
    }

    /// The next event. Keep-alives are not events, and the wait for an event is limited.
    fn next(&mut self) -> Told {
        let until = Instant::now() + PATIENCE;
        let mut told = Told { id: None, kind: String::new(), data: Value::Null };
        loop {
            assert!(Instant::now() < until, "the feed has only signs of life for {PATIENCE:?}");
            let mut line = String::new();
            let read = self.0.read_line(&mut line).expect("the feed says something in time");
            assert_ne!(read, 0, "the feed ended");
            let line = line.trim_end();
            if let Some(id) = line.strip_prefix("id: ") {
                told.id = Some(id.to_owned());
            } else if let Some(kind) = line.strip_prefix("event: ") {
                told.kind = kind.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                told.data = serde_json::from_str(data).unwrap();
            } else if line.is_empty() && !told.kind.is_empty() {
                return told;
            }
        }
    }

    /// The next event that satisfies `wanted`.
    fn until(&mut self, what: &str, wanted: impl Fn(&Told) -> bool) -> Told {
        for _ in 0..200 {
            let told = self.next();
            if wanted(&told) {
                return told;
            }
        }
        panic!("{what} did not come within 200 events");
    }

    /// The next event about a session in this state.
    fn state(&mut self, name: &str, state: &str) -> Told {
        self.until(&format!("{name} {state}"), |told| {
            told.kind == "session"
                && told.data["session"]["name"] == name
                && told.data["session"]["state"] == state
        })
    }
}

fn number(told: &Told) -> u64 {
    told.id.as_ref().unwrap().split_once('.').unwrap().1.parse().unwrap()
}

#[test]
fn a_snapshot_comes_first_and_every_change_after_it_with_a_growing_revision() {
    let world = World::new();
    world.json(&["new", "a", "--mode", "on-demand", "--", "sleep", "100000"]);
    let mut feed = Feed::open(&world, "", "");
    let first = feed.next();
    assert_eq!(first.kind, "snapshot");
    assert_eq!(first.data["more"], false);
    assert_eq!(first.data["revision"].as_str(), first.id.as_deref());
    assert_eq!(first.data["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&first.data["sessions"][0]["name"], &first.data["sessions"][0]["state"]),
        (&"a".into(), &"idle".into())
    );
    world.ok(&["start", "a"]);
    let running = feed.state("a", "running");
    assert_eq!(running.data["revision"].as_str(), running.id.as_deref());
    world.ok(&["stop", "a"]);
    let stopped = feed.state("a", "stopped");
    assert!(number(&first) < number(&running) && number(&running) < number(&stopped));
    assert_eq!(world.show("a")["consumers"], 0, "whoever reads the feed is not a consumer");
    world.ok(&["archive", "a"]);
    world.ok(&["rm", "a", "--yes"]);
    let removed = feed.until("the end of it", |told| told.kind == "removed");
    assert_eq!(removed.data["name"], "a");
}

#[test]
fn whoever_comes_back_goes_on_where_it_was_and_gets_a_snapshot_from_another_daemon() {
    let world = World::new();
    world.json(&["new", "a", "--mode", "on-demand", "--", "sleep", "100000"]);
    let before = Feed::open(&world, "", "").next().id.unwrap();
    world.json(&["new", "b", "--mode", "on-demand", "--", "sleep", "100000"]);
    let mut again = Feed::open(&world, &format!("?since={before}"), "");
    let told = again.next();
    assert_eq!((told.kind.as_str(), &told.data["session"]["name"]), ("session", &"b".into()), "{told:?}");
    let mut by_header = Feed::open(&world, "", &format!("last-event-id: {before}\r\n"));
    assert_eq!(by_header.next(), told);
    world.kill_daemon();
    world.ok(&["up"]);
    let mut later = Feed::open(&world, &format!("?since={before}"), "");
    let told = later.next();
    assert_eq!(told.kind, "snapshot", "another generation has other numbers: {told:?}");
    assert_eq!(told.data["sessions"].as_array().map(Vec::len), Some(2));
    let mut from_nowhere = Feed::open(&world, "?since=2.999999", "");
    assert_eq!(from_nowhere.next().kind, "snapshot");
}

#[test]
fn many_read_the_same_changes_and_a_long_list_comes_in_parts() {
    let world = World::new();
    for number in 0..70 {
        world.json(&["new", &format!("s{number}"), "--mode", "on-demand", "--", "sleep", "100000"]);
    }
    let mut feeds: Vec<Feed> = (0..20).map(|_| Feed::open(&world, "", "")).collect();
    for feed in &mut feeds {
        let (first, second) = (feed.next(), feed.next());
        assert_eq!((first.kind.as_str(), second.kind.as_str()), ("snapshot", "snapshot"));
        assert_eq!((first.data["more"].as_bool(), second.data["more"].as_bool()), (Some(true), Some(false)));
        let count = |told: &Told| told.data["sessions"].as_array().map_or(0, Vec::len);
        assert_eq!(count(&first) + count(&second), 70);
        assert_eq!(first.id, None, "whoever comes back does not go on behind half a snapshot");
    }
    world.ok(&["start", "s5"]);
    world.ok(&["stop", "s5"]);
    for feed in &mut feeds {
        feed.state("s5", "running");
        feed.state("s5", "stopped");
    }
}

#[test]
fn what_is_not_a_revision_is_refused() {
    let world = World::new();
    world.ok(&["up"]);
    let mut stream = UnixStream::connect(world.home.join("pinfold.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .write_all(b"GET /v1/feed?since=yesterday HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 422"), "{text}");
    assert!(text.contains("`yesterday` is not a revision"), "{text}");
}

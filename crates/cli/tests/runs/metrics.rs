//! Metrics: parsed as strictly as Prometheus parses them, and each of them made to move.

use crate::http::{ask, connect, hold, request, send};
use crate::processes::PATIENCE;
use crate::world::World;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Instant;

type Labels = BTreeMap<String, String>;

/// All samples, by name and labels.
#[derive(Debug, Default)]
struct Scrape {
    kinds: BTreeMap<String, String>,
    samples: BTreeMap<(String, Labels), f64>,
}

impl Scrape {
    fn of(world: &World) -> Scrape {
        let reply = send(world, request("GET", "/metrics", "").as_bytes());
        assert_eq!(reply.status, 200);
        assert_eq!(reply.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        Scrape::parse(&reply.text())
    }

    /// A sample by its name and labels as the text has them: `pinfold_sessions{state="running"}`.
    fn value(&self, text: &str) -> f64 {
        let (name, labels, rest) = series(text);
        assert_eq!(rest, "");
        let found = self.samples.get(&(name.clone(), labels));
        *found.unwrap_or_else(|| panic!("no {text} in {:#?}", self.samples.keys()))
    }

    fn parse(text: &str) -> Scrape {
        assert!(text.ends_with('\n') && !text.contains("\n\n"), "lines end with a newline, none is empty");
        let mut scrape = Scrape::default();
        let mut helped = BTreeSet::new();
        let mut family = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(
                    is_name(name)
                        && !help.is_empty()
                        && !help.replace("\\\\", "").replace("\\n", "").contains('\\')
                );
                assert!(helped.insert(name.to_owned()), "HELP of {name} twice");
                family = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, family, "TYPE behind its HELP");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(
                    scrape.kinds.insert(name.to_owned(), kind.to_owned()).is_none(),
                    "TYPE of {name} twice"
                );
            } else {
                scrape.sample(line, &family);
            }
        }
        scrape.check_kinds();
        scrape
    }

    fn sample(&mut self, line: &str, family: &str) {
        assert!(!line.starts_with('#'), "a comment that is neither: {line}");
        let (name, labels, rest) = series(line);
        let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("no value in {line}"));
        let value: f64 = value.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
        let kind = &self.kinds[family];
        let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        let fits = suffixes.iter().any(|suffix| name == format!("{family}{suffix}"));
        assert!(fits, "{line} stands among those of {family}");
        assert!(self.samples.insert((name, labels), value).is_none(), "twice: {line}");
    }

    fn check_kinds(&self) {
        for (family, kind) in &self.kinds {
            assert_eq!(kind == "counter", family.ends_with("_total"), "{family} is a {kind}");
            if kind == "histogram" {
                self.check_histogram(family);
            }
        }
        assert!(self.samples.values().all(|value| *value >= 0.0 && value.is_finite()));
    }

    fn check_histogram(&self, family: &str) {
        let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        for ((name, labels), value) in &self.samples {
            if *name == format!("{family}_bucket") {
                let mut labels = labels.clone();
                let bound = labels.remove("le").expect("a bucket has its bound");
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
                series.entry(labels).or_default().push((bound, *value));
            }
        }
        assert!(!series.is_empty(), "{family} has no buckets");
        for (labels, mut buckets) in series {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{family} is not cumulative");
            let (bound, last) = *buckets.last().unwrap();
            assert!(bound.is_infinite(), "{family} has no +Inf");
            let one = |suffix: &str| self.samples[&(format!("{family}{suffix}"), labels.clone())];
            assert!((one("_count") - last).abs() < 0.5, "{family}: +Inf is not the count");
            assert!(one("_sum") >= 0.0);
        }
    }
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Parses `name{label="value",...}`; returns the rest too.
fn series(text: &str) -> (String, Labels, &str) {
    let end = text.find(['{', ' ']).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    assert!(is_name(name), "{text}");
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, more) = rest.split_once("=\"").unwrap();
            assert!(is_name(label) && !label.contains(':'), "{text}");
            let (value, more) = quoted(more);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{label} twice in {text}");
            match more.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = more.strip_prefix('}').unwrap_or_else(|| panic!("no end of labels in {text}"));
                    break;
                }
            }
        }
    }
    (name.to_owned(), labels, rest)
}

/// A label's value up to its closing quote, unescaped.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next().unwrap().1 {
                'n' => value.push('\n'),
                escaped @ ('\\' | '"') => value.push(escaped),
                other => panic!("\\{other} is no escape"),
            },
            '\n' => panic!("a label that is not closed"),
            other => value.push(other),
        }
    }
    panic!("a label that is not closed")
}

/// Waits until a sample has a wanted value.
fn until(world: &World, series: &str, wanted: impl Fn(f64) -> bool) {
    let begun = Instant::now();
    loop {
        let (name, labels, _) = self::series(series);
        let value = Scrape::of(world).samples.get(&(name, labels)).copied().unwrap_or(-1.0);
        if wanted(value) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{series} is still {value}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn the_reader_of_this_test_is_strict() {
    let broken = [
        "# HELP a x\n# TYPE a gauge\na 1",
        "# HELP a x\n# TYPE a gauge\na 1\n\n",
        "# HELP a x\n# TYPE a gauge\na 1\na 2\n",
        "# HELP a x\n# TYPE a gauge\n# HELP a x\n# TYPE a gauge\na 1\n",
        "# HELP a x\n# TYPE a gauge\nb 1\n",
        "# HELP a x\n# TYPE a counter\na 1\n",
        "# HELP a x\n# TYPE a gauge\na{l=\"x} 1\n",
        "# HELP a x\n# TYPE a gauge\na{l=\"\\x\"} 1\n",
        "# HELP a x\n# TYPE a gauge\na one\n",
        "# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
        "# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n",
        "# HELP h x\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\nh_count 1\n",
    ];
    for text in broken {
        assert!(std::panic::catch_unwind(|| Scrape::parse(text)).is_err(), "{text}");
    }
    let good = "# HELP a x\\ny\n# TYPE a gauge\na{l=\"q\\\"\\\\\\n\",m=\"\"} 1\n";
    let scrape = Scrape::parse(good);
    let ((_, labels), _) = scrape.samples.first_key_value().unwrap();
    assert_eq!(labels["l"], "q\"\\\n");
}

#[test]
fn sessions_runs_restarts_and_commits_are_counted() {
    let world = World::new();
    world.ok(&["up"]);
    let before = Scrape::of(&world);
    assert!(before.value("pinfold_sessions{state=\"running\"}") < 0.5);
    world.json(&["new", "a", "--", "sleep", "100000"]);
    world.json(&["restart", "a"]);
    let after = Scrape::of(&world);
    let moved = |series: &str| after.value(series) - before.value(series);
    assert!((moved("pinfold_sessions{state=\"running\"}") - 1.0).abs() < 0.5);
    assert!((moved("pinfold_runs_total{verdict=\"clean\"}") - 1.0).abs() < 0.5);
    assert!((moved("pinfold_restarts_total") - 1.0).abs() < 0.5);
    assert!((moved("pinfold_respawn_seconds_count") - 1.0).abs() < 0.5);
    assert!(moved("pinfold_respawn_seconds_sum") > 0.0);
    assert!(moved("pinfold_commit_seconds_count") > 3.0 && moved("pinfold_commit_seconds_sum") > 0.0);
    assert!(moved("pinfold_lock_wait_seconds_count{for=\"run\"}") > 0.5);
    world.ok(&["stop", "a"]);
    until(&world, "pinfold_sessions{state=\"stopped\"}", |value| value > 0.5);
    for (name, script, verdict) in [
        ("crash", "exit 3", "crash"),
        ("busy", "exit 75", "contended"),
        ("config", "exit 78", "hopeless"),
        ("drained", "", "drained"),
        ("limited", "", "limited"),
    ] {
        let say = format!(
            "exec python3 -c 'import os,socket;s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM);\
             s.sendto(b\"X_PINFOLD_EXIT={name}\",os.environ[\"NOTIFY_SOCKET\"].replace(\"@\",\"\\0\"))'"
        );
        let script = if script.is_empty() { &say } else { script };
        world.json(&["new", name, "--mode", "once", "--", "sh", "-c", script]);
        until(&world, &format!("pinfold_runs_total{{verdict=\"{verdict}\"}}"), |value| value > 0.5);
    }
    world.ok(&["down"]);
    world.ok(&["up"]);
    assert!(Scrape::of(&world).value("pinfold_restarts_total") < 0.5, "counted from the daemon's start on");
}

#[test]
fn locks_that_are_held_waited_for_and_refused_are_counted() {
    let world = World::new();
    world.ok(&["up"]);
    let dir = world.path("work");
    std::fs::create_dir(&dir).unwrap();
    for name in ["one", "two"] {
        world.json(&["new", name, "--dir", dir.to_str().unwrap(), "--", "sleep", "100000"]);
    }
    until(&world, "pinfold_lock_busy_total{for=\"run\"}", |value| value > 0.5);
    until(&world, "pinfold_lock_waiters{for=\"run\"}", |value| value > 0.5);
    let mut first = hold(&world, &json!({ "resource": "key:k" }));
    first.granted();
    until(&world, "pinfold_http_holds", |value| value > 0.5);
    let (status, _) = ask(&world, "POST", "/v1/locks/hold", r#"{"resource":"key:k"}"#);
    assert_eq!(status, 409);
    let scrape = Scrape::of(&world);
    assert!(scrape.value("pinfold_lock_busy_total{for=\"hold\"}") > 0.5);
    assert!(scrape.value("pinfold_lock_wait_seconds_count{for=\"hold\"}") > 1.5);
    assert!(scrape.value("pinfold_lock_wait_seconds_sum{for=\"hold\"}") > 0.01, "it says busy after 20 ms");
    let mut waiting = connect(&world);
    let wanted = r#"{"resource":"key:k","wait":"1h"}"#;
    waiting.write_all(request("POST", "/v1/locks/hold", wanted).as_bytes()).unwrap();
    until(&world, "pinfold_lock_waiters{for=\"hold\"}", |value| value > 0.5);
    drop(waiting);
    until(&world, "pinfold_lock_waiters{for=\"hold\"}", |value| value < 0.5);
    drop(first);
    until(&world, "pinfold_http_holds", |value| value < 0.5);
}

#[test]
fn messages_are_counted_by_state() {
    let world = World::new();
    let script = "while read line; do case $line in stay) sleep 100000;; *) echo PINFOLD_DONE;; esac; done";
    world.json(&["new", "a", "--mode", "on-demand", "--turns", "done", "--", "sh", "-c", script]);
    world.ok(&["send", "a", "go", "--wait", "240s"]);
    until(&world, "pinfold_messages{state=\"done\"}", |value| value > 0.5);
    world.ok(&["send", "a", "stay"]);
    until(&world, "pinfold_messages{state=\"delivered\"}", |value| value > 0.5);
    world.ok(&["send", "a", "later"]);
    until(&world, "pinfold_messages{state=\"queued\"}", |value| value > 0.5);
    let id = world.json(&["inbox", "a"])[2]["id"].as_str().unwrap().to_owned();
    world.ok(&["inbox", "a", "--cancel", &id]);
    until(&world, "pinfold_messages{state=\"failed\"}", |value| value > 0.5);
}

#[test]
fn memory_is_shown_of_the_daemon_and_of_sessions_with_a_limit() {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), "[policy]\nmemory_sample = \"100ms\"\n").unwrap();
    let script = "import time; x = bytearray(b'x') * (50 << 20); time.sleep(100000)";
    world.json(&["new", "a", "--memory", "256M", "--", "python3", "-c", script]);
    world.json(&["new", "free", "--", "sleep", "100000"]);
    until(&world, "pinfold_session_memory_bytes{session=\"a\"}", |value| value > f64::from(50 << 20));
    let scrape = Scrape::of(&world);
    assert!((scrape.value("pinfold_session_memory_limit_bytes{session=\"a\"}") - 268_435_456.0).abs() < 0.5);
    let free =
        ("pinfold_session_memory_limit_bytes".to_owned(), Labels::from([("session".into(), "free".into())]));
    assert!(!scrape.samples.contains_key(&free), "nobody measures what has no limit");
    let before = scrape.value("process_resident_memory_bytes");
    let open: Vec<_> = (0..300)
        .map(|_| {
            let mut stream = connect(&world);
            stream.write_all(format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(8 << 10)).as_bytes()).unwrap();
            stream
        })
        .collect();
    until(&world, "process_resident_memory_bytes", |value| value > before);
    drop(open);
}

#[test]
fn the_verb_prints_the_same_and_objects_when_asked() {
    let world = World::new();
    world.json(&["new", "a", "--", "sleep", "100000"]);
    let text = world.ok(&["metrics"]).stdout;
    let scrape = Scrape::parse(&text);
    assert!((scrape.value("pinfold_sessions{state=\"running\"}") - 1.0).abs() < 0.5);
    let objects = world.json(&["metrics"]);
    let names: BTreeSet<&str> =
        objects.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, scrape.kinds.keys().map(String::as_str).collect());
    let sessions = objects.as_array().unwrap().iter().find(|one| one["name"] == "pinfold_sessions").unwrap();
    let running = |sample: &&Value| sample["labels"]["state"] == "running";
    assert_eq!(sessions["samples"].as_array().unwrap().iter().find(running).unwrap()["value"], 1.0);
    let documented = include_str!("../../../../docs/metrics.md");
    for name in names {
        assert!(documented.contains(&format!("`{name}")), "docs/metrics.md has no {name}");
    }
}

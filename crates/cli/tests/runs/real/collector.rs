//! A collector of telemetry on the loopback, in the test's own process: it takes what agents export (OTLP, HTTP with JSON), and
//! remembers it.

use super::model::{Reply, request};
use crate::processes::PATIENCE;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

/// The collector, until the test ends.
pub(crate) struct Collector {
    pub(crate) port: u16,
    desk: Arc<Desk>,
}

#[derive(Default)]
struct Desk {
    items: Mutex<Vec<Item>>,
    changed: Condvar,
}

/// A span, a metric or an event of a log.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// `spans`, `metrics` or `logRecords`.
    pub(crate) signal: &'static str,
    pub(crate) name: String,
    /// What its resource says of itself.
    pub(crate) resource: BTreeMap<String, String>,
    pub(crate) trace: Option<String>,
    pub(crate) parent: Option<String>,
}

const SIGNALS: [[&str; 3]; 3] = [
    ["resourceSpans", "scopeSpans", "spans"],
    ["resourceMetrics", "scopeMetrics", "metrics"],
    ["resourceLogs", "scopeLogs", "logRecords"],
];

impl Collector {
    pub(crate) fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, desk) = (listener.local_addr().unwrap().port(), Arc::<Desk>::default());
        let taking = Arc::clone(&desk);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let desk = Arc::clone(&taking);
                std::thread::spawn(move || {
                    if let Ok(Some((_, body))) = request(&stream) {
                        desk.items.lock().unwrap().extend(items(&body));
                        desk.changed.notify_all();
                    }
                    // An agent that has ended waits for no answer.
                    _ = Reply::to(&stream).whole(200, &json!({}));
                });
            }
        });
        Collector { port, desk }
    }

    /// Waits for something that is called so.
    pub(crate) fn has(&self, signal: &str, name: &str) -> Item {
        let until = Instant::now() + PATIENCE;
        let mut items = self.desk.items.lock().unwrap();
        loop {
            if let Some(item) = items.iter().find(|item| item.signal == signal && item.name == name) {
                return item.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {name} among the {signal}: {items:#?}");
            items = self.desk.changed.wait_timeout(items, left).unwrap().0;
        }
    }
}

/// What one export has in it.
fn items(body: &Value) -> Vec<Item> {
    let mut all = Vec::new();
    for [resources, scopes, signal] in SIGNALS {
        for resource in list(&body[resources]) {
            let known = attributes(&resource["resource"]["attributes"]);
            let of = list(&resource[scopes]).iter().flat_map(|scope| list(&scope[signal]));
            all.extend(of.map(|item| Item {
                signal,
                name: name(item),
                resource: known.clone(),
                trace: text(&item["traceId"]),
                parent: text(&item["parentSpanId"]),
            }));
        }
    }
    all
}

/// An event of a log is called by what is among its attributes, where that is there.
fn name(item: &Value) -> String {
    let event = attributes(&item["attributes"]).remove("event.name");
    let called = event.or_else(|| text(&item["name"])).or_else(|| text(&item["body"]["stringValue"]));
    called.unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn attributes(value: &Value) -> BTreeMap<String, String> {
    let one = |one: &Value| Some((text(&one["key"])?, text(&one["value"]["stringValue"])?));
    list(value).iter().filter_map(one).collect()
}

//! The UI, the API and the command line show the same state at the same revision of the feed, at a thousand moments.

use super::sessions::{KnownSessions, read};
use crate::processes::PATIENCE;
use crate::random::Dice;
use crate::world::World;
use pinfold_api::client::OpenAnswer;
use pinfold_api::{Client, endpoint, query};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};

const MOMENTS: usize = 1000;
/// The command line needs a process, so it is asked only once in this many moments.
const ASKED: usize = 25;

/// The events of a feed as they arrive, while its connection is held.
fn events(client: &Client) -> (OpenAnswer, Receiver<(String, String)>) {
    let (sender, receiver) = channel();
    let (held, lines) = client.held_lines(&endpoint::Feed::call(&query::Feed::default())).unwrap();
    std::thread::spawn(move || {
        let mut kind = String::new();
        for line in lines.map_while(Result::ok) {
            if let Some(event) = line.strip_prefix("event: ") {
                event.clone_into(&mut kind);
            } else if let Some(data) = line.strip_prefix("data: ")
                && sender.send((kind.clone(), data.to_owned())).is_err()
            {
                return;
            }
        }
    });
    (held, receiver)
}

/// What a fresh reader knows: the API's own state, and its revision.
fn now(client: &Client) -> KnownSessions {
    let (_held, events) = events(client);
    let mut sessions = KnownSessions::default();
    while sessions.revision.is_none() {
        let (kind, data) = events.recv().unwrap();
        sessions.take(read(&kind, &data).unwrap());
    }
    sessions
}

fn number(revision: Option<&str>) -> u64 {
    revision.and_then(|revision| revision.split_once('.')).map_or(0, |(_, number)| number.parse().unwrap())
}

/// Fields that change with the clock alone, or are measured.
const PASSING: [&str; 8] = [
    "why",
    "memory_bytes",
    "swap_bytes",
    "last_output_at",
    "policy",
    "contained",
    "processes",
    "activity_since",
];

/// The fields that have a revision.
fn lasting(mut session: Value) -> Value {
    let object = session.as_object_mut().unwrap();
    PASSING.iter().for_each(|name| _ = object.remove(*name));
    if let Some(next) = object.get_mut("next").filter(|next| next.is_object()) {
        next["at"] = json!(null);
    }
    session
}

fn of_model(sessions: &KnownSessions) -> BTreeMap<String, Value> {
    sessions.all.iter().map(|(id, known)| (id.clone(), lasting(json!(known.told.session)))).collect()
}

fn of_list(list: Vec<Value>) -> BTreeMap<String, Value> {
    list.into_iter().map(|one| (one["id"].as_str().unwrap().to_owned(), lasting(one))).collect()
}

/// What differs between the UI and another interface, if anything does.
fn difference(face: &str, ui: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>) -> Option<String> {
    if !ui.keys().eq(other.keys()) {
        return Some(format!("other sessions in {face}"));
    }
    let fields = ui.iter().flat_map(|(id, session)| {
        let fields = session.as_object().unwrap().iter();
        fields.map(move |(name, value)| (id, &session["name"], name, value))
    });
    let mut different = fields.filter(|(id, _, name, value)| other[*id].get(*name) != Some(*value));
    let (id, session, name, value) = different.next()?;
    Some(format!("{name} of {session}: {value} in the UI, {:?} in {face}", other[id].get(name)))
}

/// Makes something happen to one of the sessions.
fn happens(client: &Client, random: &mut Dice) {
    let name = format!("s{}", random.below(12));
    let post =
        |verb: &str, body: Value| _ = client.post::<Value>(&format!("/v1/sessions/{name}/{verb}"), &body);
    // Starting and ending processes takes long, so the rest is more frequent.
    match random.below(12) {
        0 => post("start", json!({})),
        1 => post("stop", json!({"timeout": "1s"})),
        2 => post("restart", json!({})),
        3..=5 => post("messages", json!({"text": "hello"})),
        6..=8 => post("set", json!({"tags": [format!("t{}", random.below(5))]})),
        9 | 10 => post("archive", json!({})),
        _ => post("restore", json!({})),
    }
}

#[test]
fn the_ui_the_api_and_the_command_line_agree_at_every_revision() {
    let world = World::new();
    for number in 0..12 {
        let mode = if number % 2 == 0 { "on-demand" } else { "always" };
        world.ok(&["new", &format!("s{number}"), "--mode", mode, "--", "cat"]);
    }
    let client = Client::new(world.home.join("pinfold.sock"));
    let ((_held, feed), mut model) = (events(&client), KnownSessions::default());
    let mut random = Dice(21);
    let (mut moments, mut compared) = (0, 0);
    while moments < MOMENTS {
        // Some moments come without any request.
        if random.below(2) == 0 {
            happens(&client, &mut random);
        }
        let fresh = now(&client);
        while number(model.revision.as_deref()) < number(fresh.revision.as_deref()) {
            let (kind, data) = feed.recv().unwrap();
            model.take(read(&kind, &data).unwrap());
        }
        // Something may have happened by itself in between: the next moment shows.
        if model.revision != fresh.revision {
            continue;
        }
        moments += 1;
        let list: Vec<Value> = client.get("/v1/sessions?all=true").unwrap();
        let printed = moments.is_multiple_of(ASKED).then(|| world.json(&["ls", "--all"]));
        if now(&client).revision != fresh.revision {
            continue;
        }
        let ui = of_model(&model);
        let differs = difference("the feed", &ui, &of_model(&fresh))
            .or_else(|| difference("the list", &ui, &of_list(list)))
            .or_else(|| difference("the command line", &ui, &of_list(printed?.as_array()?.clone())));
        match differs {
            None => compared += 1,
            // Decisions that are not durable yet are already in lists; their revision follows, or the two
            // disagree for good.
            Some(differs) => {
                let told = feed.recv_timeout(PATIENCE);
                let (kind, data) = told.unwrap_or_else(|_| panic!("at {:?}: {differs}", fresh.revision));
                model.take(read(&kind, &data).unwrap());
            }
        }
    }
    assert!(compared > MOMENTS / 2, "only {compared} of {MOMENTS} moments stood still");
}

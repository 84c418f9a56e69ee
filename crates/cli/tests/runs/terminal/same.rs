//! The UI, the API and the command line show the same state at the same revision of the feed, at a thousand moments.
//!
//! A list says which revision it is as of, and the feed is read up to it: every moment is compared, and only with its own.

use super::sessions::{KnownSessions, SessionsNews, read};
use crate::processes::PATIENCE;
use crate::random::Dice;
use crate::world::World;
use pinfold_api::client::OpenAnswer;
use pinfold_api::{Client, endpoint, query};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

const MOMENTS: usize = 1000;
/// The command line is a process: it is asked at each moment of so many.
const ASKED: usize = 25;
/// So many of the moments at least are of another revision than those before.
const DIFFERENT: usize = MOMENTS / 4;

/// The events of a feed, as they come, for as long as its connection is held.
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

/// What is known by a fresh reader: the feed's own snapshot, and its revision.
fn snapshot(client: &Client) -> (String, Faces) {
    let (_held, events) = events(client);
    let mut sessions = KnownSessions::default();
    while sessions.revision.is_none() {
        let (kind, data) = events.recv().unwrap();
        sessions.take(read(&kind, &data).unwrap());
    }
    (sessions.revision.clone().unwrap(), of_model(&sessions))
}

/// What the API lists, and the revision that it is as of.
fn listed(client: &Client) -> (String, Faces) {
    let all = query::Sessions { all: true, ..query::Sessions::default() };
    let (rest, lines) = client.told_lines(&endpoint::Sessions::call(&all)).unwrap();
    let text: String = lines.map(Result::unwrap).collect();
    (rest.revision.unwrap(), of_list(serde_json::from_str(&text).unwrap()))
}

/// What the UI knows: it reads the feed, and nothing else.
struct Ui {
    _held: OpenAnswer,
    feed: Receiver<(String, String)>,
    sessions: KnownSessions,
}

impl Ui {
    fn new(client: &Client) -> Ui {
        let (held, feed) = events(client);
        Ui { _held: held, feed, sessions: KnownSessions::default() }
    }

    /// Takes the next thing that the feed says; which session it is about, if it is about one.
    fn next(&mut self, why: &str) -> Option<String> {
        let told = self.feed.recv_timeout(PATIENCE);
        let (kind, data) = told.unwrap_or_else(|_| panic!("at {:?}: {why}", self.sessions.revision));
        let news = read(&kind, &data).unwrap();
        let about = match &news {
            SessionsNews::Changed { told, .. } => Some(told.session.id.clone()),
            SessionsNews::Removed { id, .. } => Some(id.clone()),
            SessionsNews::Live(live) => Some(live.id.clone()),
            SessionsNews::Snapshot { .. } | SessionsNews::Away(_) => None,
        };
        self.sessions.take(news);
        about
    }

    /// Reads on up to a revision; whether it is that one and not a later one.
    fn reaches(&mut self, revision: &str) -> bool {
        while number(self.sessions.revision.as_deref()) < number(Some(revision)) {
            self.next(&format!("{revision} was listed, and the feed does not tell it"));
        }
        self.sessions.revision.as_deref() == Some(revision)
    }
}

fn number(revision: Option<&str>) -> u64 {
    revision.and_then(|revision| revision.split_once('.')).map_or(0, |(_, number)| number.parse().unwrap())
}

/// What changes with the clock alone, or is measured.
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

/// What has a revision.
fn lasting(mut session: Value) -> Value {
    let object = session.as_object_mut().unwrap();
    PASSING.iter().for_each(|name| _ = object.remove(*name));
    if let Some(next) = object.get_mut("next").filter(|next| next.is_object()) {
        next["at"] = json!(null);
    }
    session
}

/// Sessions by their ids, as something shows them.
type Faces = BTreeMap<String, Value>;

fn of_model(sessions: &KnownSessions) -> Faces {
    sessions.all.iter().map(|(id, known)| (id.clone(), lasting(json!(known.told.session)))).collect()
}

fn of_list(list: Vec<Value>) -> Faces {
    list.into_iter().map(|one| (one["id"].as_str().unwrap().to_owned(), lasting(one))).collect()
}

/// The first session that differs between the UI and another face, and what does.
fn difference(face: &str, ui: &Faces, other: &Faces) -> Option<(String, String)> {
    assert!(ui.keys().eq(other.keys()), "other sessions in {face}");
    let fields = ui.iter().flat_map(|(id, session)| {
        let fields = session.as_object().unwrap().iter();
        fields.map(move |(name, value)| (id, &session["name"], name, value))
    });
    let mut different = fields.filter(|(id, _, name, value)| other[*id].get(*name) != Some(*value));
    let (id, session, name, value) = different.next()?;
    let text = format!("{name} of {session}: {value} in the UI, {:?} in {face}", other[id].get(name));
    Some((id.clone(), text))
}

/// Compares all faces at one revision, which is returned; the command line where `world` is given.
fn agree(client: &Client, ui: &mut Ui, world: Option<&World>) -> String {
    let until = Instant::now() + PATIENCE;
    let mut why = String::new();
    while Instant::now() < until {
        let (revision, list) = listed(client);
        let (fresh, feed) = snapshot(client);
        let printed = world.map(|world| of_list(world.json(&["ls", "--all"]).as_array().unwrap().clone()));
        // They are of one moment when nothing has a later revision: else there is a newer list to compare with.
        if [fresh, listed(client).0].iter().any(|other| *other != revision) || !ui.reaches(&revision) {
            continue;
        }
        let shown = of_model(&ui.sessions);
        let differs = difference("the list", &shown, &list)
            .or_else(|| difference("the feed", &shown, &feed))
            .or_else(|| difference("the command line", &shown, printed.as_ref()?));
        let Some((id, text)) = differs else { return revision };
        // What is decided and not yet durable is listed already: then that very session is told next, and is the same.
        why = format!("{text}, at {revision}");
        while ui.next(&why).is_none_or(|about| about != id) {}
    }
    panic!("they never agreed: {why}");
}

/// Something happens to one of the sessions.
fn happens(client: &Client, random: &mut Dice) {
    let name = format!("s{}", random.below(12));
    let post =
        |verb: &str, body: Value| _ = client.post::<Value>(&format!("/v1/sessions/{name}/{verb}"), &body);
    // What starts and ends processes takes long: the rest comes more often.
    match random.below(12) {
        0 => post("start", json!({})),
        1 => post("stop", json!({"timeout": "1s"})),
        2 => post("restart", json!({})),
        3..=5 => post("messages", json!({"text": "hello"})),
        6..=8 => post("set", json!({"tags": [format!("t{}", random.below(5))]})),
        9 => post("archive", json!({})),
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
    let (mut ui, mut random, mut revisions) = (Ui::new(&client), Dice(21), BTreeSet::new());
    for moment in 1..=MOMENTS {
        // Also some moments at which nothing was asked for.
        if random.below(2) == 0 {
            happens(&client, &mut random);
        }
        let asked = moment.is_multiple_of(ASKED).then_some(&world);
        revisions.insert(agree(&client, &mut ui, asked));
    }
    assert!(revisions.len() > DIFFERENT, "{} revisions at {MOMENTS} moments", revisions.len());
}

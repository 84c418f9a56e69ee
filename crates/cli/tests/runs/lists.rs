//! Lists: all of them for programs, their end for people, and page by page over HTTP.

use crate::http;
use crate::inbox::PARROT;
use crate::tty::Tty;
use crate::world::World;
use serde_json::{Value, json};

/// A stopped session with this many queued messages.
fn with_messages(count: u32) -> World {
    let world = World::new();
    world.new_chat("chat", &[], PARROT);
    world.ok(&["stop", "chat"]);
    for number in 0..count {
        let path = "/v1/sessions/chat/messages";
        world.api().post::<Value>(path, &json!({ "text": format!("number {number:03}") })).unwrap();
    }
    world
}

/// The pages of a list, by `limit`, `after` and the field `next`.
fn pages(world: &World, address: &str, limit: u32) -> Vec<Vec<Value>> {
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("{address}limit={limit}{after}");
        let reply = http::send(world, http::request("GET", &path, "").as_bytes());
        assert_eq!(reply.status, 200, "{path}: {}", reply.head);
        let next = reply.field("next").map(str::to_owned);
        pages.push(reply.object().as_array().unwrap().clone());
        assert!(pages.len() < 100, "it goes on and on");
        match next {
            Some(next) => after = format!("&after={next}"),
            None => return pages,
        }
    }
}

#[test]
fn pages_are_the_list_in_pieces() {
    let world = with_messages(7);
    let messages = world.inbox("chat");
    let found = pages(&world, "/v1/sessions/chat/messages?", 3);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
    assert_eq!(found.concat(), messages);
    assert_eq!(pages(&world, "/v1/sessions/chat/messages?", 7).len(), 1, "no page behind the last one");
    let events = world.events();
    let found = pages(&world, "/v1/events?follow=false&", 4);
    assert!(found[..found.len() - 1].iter().all(|page| page.len() == 4), "{found:?}");
    assert_eq!(found.concat(), events);
    let path = "/v1/sessions/chat/messages?limit=3&after=nonsense";
    assert_eq!(http::ask(&world, "GET", path, "").0, 404);
}

#[test]
fn sessions_and_locks_come_in_pages_too() {
    let world = World::new();
    for name in ["a", "b", "c", "d", "e"] {
        world.ok(&["new", name, "--mode", "on-demand", "--", "cat"]);
    }
    let ids = |list: &[Value]| list.iter().map(|one| one["id"].clone()).collect::<Vec<_>>();
    let all = world.json(&["ls"]);
    let found = pages(&world, "/v1/sessions?", 2);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(ids(&found.concat()), ids(all.as_array().unwrap()));
    assert_eq!(http::ask(&world, "GET", "/v1/sessions?limit=2&after=nonsense", "").0, 422);
    for name in ["a", "b", "c"] {
        world.ok(&["start", name]);
    }
    let held = world.json(&["locks"]);
    let found = pages(&world, "/v1/locks?", 1);
    assert_eq!(found.concat().len(), held.as_array().unwrap().len(), "{found:?}");
    assert!(found.len() >= 3, "{found:?}");
}

#[test]
fn a_list_has_the_beginning_of_an_answer_and_the_message_all_of_it() {
    let world = World::new();
    world.new_chat("chat", &[], PARROT);
    // Two bytes each: the cut is not in the middle of a character.
    let long = format!("x{}", "ü".repeat(5000));
    let sent = world.json(&["send", "chat", &long, "--wait"]);
    let listed = &world.inbox("chat")[0];
    let (answer, whole) = (listed["answer"].as_str().unwrap(), sent["answer"].as_str().unwrap());
    assert_eq!((answer.len(), whole.len()), (4095, 10_001));
    assert!(whole.starts_with(answer));
    assert_eq!((&listed["answer_bytes"], &sent["answer_bytes"]), (&json!(10_001), &json!(10_001)));
    assert_eq!(listed["text"], long, "what was sent is not cut");
    let path = format!("/v1/sessions/chat/messages/{}", sent["id"].as_str().unwrap());
    assert_eq!(http::ask(&world, "GET", &path, "").1["answer"], whole);
}

fn at_a_terminal(world: &World, words: &[&str]) -> String {
    let mut tty = Tty::start(world.command(words), 40, 200);
    assert!(tty.ended().success());
    // The last output of a program may not have been read yet when it has ended.
    let last = if words.contains(&"all") { "number 059" } else { "not shown" };
    tty.until("the end of it", |screen| screen.contents().contains(last));
    tty.everything()
}

#[test]
fn people_see_the_end_of_a_list_and_how_much_that_leaves_out() {
    let world = with_messages(60);
    let inbox = at_a_terminal(&world, &["inbox", "chat"]);
    assert!(inbox.contains("10 earlier messages are not shown; `-n all` shows them"), "{inbox}");
    assert!(
        inbox.contains("number 010") && inbox.contains("number 059") && !inbox.contains("number 009"),
        "{inbox}"
    );
    let all = world.events().len();
    let events = at_a_terminal(&world, &["events"]);
    assert!(events.contains(&format!("{} earlier events are not shown", all - 50)), "{events}");
    assert!(at_a_terminal(&world, &["inbox", "chat", "-n", "all"]).contains("number 000"));
}

#[test]
fn programs_get_all_of_a_list_unless_they_ask_for_less() {
    let world = with_messages(60);
    assert_eq!(world.inbox("chat").len(), 60);
    assert_eq!(world.ok(&["inbox", "chat"]).stdout.lines().count(), 61, "and the heads of its columns");
    let last = world.json(&["inbox", "chat", "-n", "2"]);
    assert_eq!((&last[0]["text"], &last[1]["text"]), (&json!("number 058"), &json!("number 059")));
    let all = world.events();
    let last = world.json(&["events", "-n", "3"]);
    assert_eq!(last.as_array().unwrap()[..], all[all.len() - 3..]);
    assert_eq!(world.json(&["events", "-n", "all"]).as_array().unwrap().len(), all.len());
    assert_eq!(world.ok(&["events"]).stdout.lines().count(), all.len());
    let answer = world.run(&["events", "-n", "few"]);
    assert!(answer.code == 2 && answer.stderr.contains("a number, or `all`"), "{answer:?}");
}

use super::text as text_of;
use super::{Model, Theme, UiFrame, view};
use crate::tui::effect::{UiInput, UiReply};
use crate::tui::fixture::{NOW, keys, model, session, ten, text};
use crate::tui::model::SessionDetails;
use crate::tui::paint::{Depth, Painter};
use crate::tui::update::update;
use pinfold_api::object::{Event, Lock, LogLine, Message, Purged, Skipped};
use serde_json::json;
use std::collections::BTreeSet;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];
const DARK: Theme = Theme { light: false, rich: true };

/// The text of a frame.
fn shown(model: &Model) -> String {
    let frame = view(model, DARK);
    let mut lines = text_of(&frame);
    lines.extend(frame.cursor.map(|(x, y)| format!("cursor: column {x}, row {y}")));
    lines.join("\n")
}

/// One snapshot of the same model for each size.
fn frames(name: &str, made: impl Fn((u16, u16)) -> Model) {
    for size in SIZES {
        let model = made(size);
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), shown(&model));
    }
}

macro_rules! read {
    ($object:expr $(,)?) => {
        serde_json::from_value($object).unwrap()
    };
}

/// Gives the selected session its details.
fn with_details(model: &mut Model) {
    let known = model.selected().unwrap().told.session.clone();
    let exit = |seq: u64, verdict: &str, code: u32| -> Event {
        read!(
            json!({"seq": seq, "at": "2026-11-17T11:40:05Z", "session": known.name, "run": "01R", "kind": "run_exited",
            "why": "it exited", "verdict": verdict, "code": code, "signal": null, "uptime_ms": 61_000}),
        )
    };
    let message: Message = read!(
        json!({"id": "01M", "session": known.name, "text": "please build\nand test", "key": null, "state": "done",
        "tries": 1, "enqueued_at": "2026-11-17T11:30:00Z", "done_at": "2026-11-17T11:31:00Z", "failure": null, "turn": null,
        "answer": "\u{1b}[32mdone\u{1b}[0m: 41 tests passed, and a long line that has to be folded somewhere because nothing is that wide on a small screen"}),
    );
    let log: LogLine = read!(
        json!({"at": "2026-11-17T11:59:00Z", "run": "01R", "stream": "stdout", "text": "\u{1b}[1mcompiling\u{1b}[0m api\tv1\n"}),
    );
    let events = vec![exit(1, "clean", 0), exit(2, "crash", 1), exit(3, "drained", 0)];
    let gathered =
        Box::new(SessionDetails { session: known.clone(), messages: vec![message], events, log: vec![log] });
    update(model, UiInput::Answered(UiReply::Detail { id: known.id, gathered: Ok(gathered) }), NOW);
}

#[test]
fn nothing_is_there_yet() {
    frames("empty", |size| model(size, Vec::new()));
}

#[test]
fn ten_sessions_of_all_states() {
    frames("ten", |size| {
        let mut model = model(size, ten());
        keys(&mut model, "j");
        with_details(&mut model);
        model
    });
}

#[test]
fn a_thousand_sessions() {
    frames("thousand", |size| {
        let one = |number: u32| {
            let works = number.is_multiple_of(7);
            let changes = if works {
                json!({"state": "running", "activity": "working", "activity_since": "2026-11-17T11:00:00Z", "why": "running for 1 h"})
            } else {
                json!({})
            };
            session(number, &format!("session-{number:04}"), changes)
        };
        let mut model = model(size, (1..=1000).map(one).collect());
        keys(&mut model, "page-down page-down j");
        model
    });
}

#[test]
fn a_request_is_shown_with_its_exact_text() {
    frames("request", |size| {
        let title =
            "Bash: cat > run.sh <<'EOF'\n#!/bin/sh\nrm -rf \"$HOME\"/build \u{1b}[2J && printf 'done'\nEOF";
        let request =
            json!({"id": "r7", "kind": "permission", "title": title, "since": "2026-11-17T11:55:00Z"});
        let asks = json!({"state": "running", "activity": "waiting", "request": request, "requests": 2, "why": "running for 5 min"});
        let mut model = model(size, vec![session(1, "deploy", asks)]);
        with_details(&mut model);
        model
    });
}

#[test]
fn a_request_is_answered() {
    frames("answer", |size| {
        let mut model = model(size, ten());
        keys(&mut model, "a");
        model
    });
    frames("answer_with_words", |size| {
        let mut model = model(size, ten());
        keys(&mut model, "a w");
        text(&mut model, "only target/debug");
        model
    });
}

#[test]
fn a_search_as_it_is_typed() {
    frames("search", |size| {
        let mut model = model(size, ten());
        keys(&mut model, "/");
        text(&mut model, "ild");
        let hit = json!({"session": "notes", "kind": "answer", "id": "01M", "at": "2026-11-17T11:00:00Z", "excerpt": "the build is green"});
        let hits = Ok(vec![read!(hit)]);
        update(&mut model, UiInput::Answered(UiReply::Found { text: "i".into(), hits: Ok(Vec::new()) }), NOW);
        update(&mut model, UiInput::Answered(UiReply::Found { text: "ild".into(), hits }), NOW);
        model
    });
}

#[test]
fn groups_pins_and_archived_ones() {
    for (name, typed) in [("by_state", "o o o o z"), ("by_directory_folded", "o o space"), ("by_tag", "o p")]
    {
        frames(name, |size| {
            let mut model = model(size, ten());
            keys(&mut model, typed);
            model
        });
    }
}

#[test]
fn every_overlay() {
    let lock: Lock = read!(
        json!({"resource": "/home/u/src/api", "kind": "directory", "fence": 7, "since": "2026-11-17T11:00:00Z", "reason": null,
        "session": "api", "run": "01R", "others": [], "removed": false,
        "holder": {"pid": 4711, "start_ticks": 1, "boot_id": "b", "pid_ns": 1, "host": "h", "command": "claude", "verdict": "alive"}}),
    );
    let skipped = Skipped { name: "api".into(), why: "a turn is under way".into() };
    let purged =
        Purged { archived: vec!["notes".into(), "old".into()], skipped: vec![skipped], left: Vec::new() };
    let overlays: [(&str, &str); 9] = [
        ("help", "?"),
        ("locks", "L"),
        ("palette", ": a r c"),
        ("send", "s h e l l o alt-enter y o u"),
        ("confirm", "g j j j j x"),
        ("new", "n right right tab"),
        ("tags", "G k t"),
        ("purge", "P"),
        ("follow", "f"),
    ];
    for (name, typed) in overlays {
        frames(name, |size| {
            let mut model = model(size, ten());
            keys(&mut model, typed);
            let answer = match name {
                "locks" => Some(UiReply::Locks(Ok(vec![lock.clone()]))),
                "purge" => Some(UiReply::Purged { dry: true, purged: Ok(purged.clone()) }),
                _ => None,
            };
            if let Some(answer) = answer {
                update(&mut model, UiInput::Answered(answer), NOW);
            }
            if name == "follow" {
                let of = model.list.selected.clone().unwrap();
                let lines = Ok((1..=100).map(|line| format!("line {line} \u{1b}]0;title\u{7}")).collect());
                update(&mut model, UiInput::Followed { of, lines }, NOW);
            }
            model
        });
    }
}

#[test]
fn a_terminal_that_is_looked_at_and_a_daemon_that_is_away() {
    frames("screen", |size| {
        let mut model = model(size, ten());
        keys(&mut model, "v");
        let mut terminal = pinfold_terminal::Terminal::new(pinfold_terminal::Size::new(5, 40));
        terminal.feed("$ \u{1b}[1mls\u{1b}[0m\r\n\u{1b}[34msrc\u{1b}[0m  日本  README".as_bytes());
        let of = model.list.selected.clone().unwrap();
        update(&mut model, UiInput::Screen { of, shown: Ok(terminal.lines()) }, NOW);
        model
    });
    frames("away", |size| {
        let mut model = model(size, ten());
        update(
            &mut model,
            UiInput::Feed(crate::tui::sessions::SessionsNews::Away("it went away".into())),
            NOW,
        );
        update(&mut model, UiInput::Tick, NOW + 180_000);
        model
    });
}

#[test]
fn no_size_is_too_small_or_too_large_and_no_line_is_too_long() {
    for size in [(1, 1), (19, 3), (20, 4), (30, 8), (60, 15), (149, 30), (300, 100)] {
        for typed in ["j", "?", "n", "s", "a", "L", ":", "/", "v", "o o", "d"] {
            let mut model = model(size, ten());
            keys(&mut model, typed);
            let UiFrame { buffer, cursor } = view(&model, DARK);
            assert_eq!((buffer.area.width, buffer.area.height), size);
            assert!(cursor.is_none_or(|(x, y)| x < size.0 && y < size.1), "{size:?} {typed} {cursor:?}");
        }
    }
}

#[test]
fn what_a_terminal_would_obey_is_shown() {
    let model = model((200, 60), ten());
    let text = shown(&model);
    assert!(text.contains("weird\\u001b[31m") && !text.contains('\u{1b}'), "{text}");
}

/// The numbers of a sequence and its last letter, where a piece begins after `ESC [`.
fn sequence(piece: &str) -> (&str, Option<char>) {
    let end = piece.find(|letter: char| letter.is_ascii_alphabetic());
    (&piece[..end.unwrap_or(0)], end.and_then(|end| piece[end..].chars().next()))
}

/// What a terminal is sent for a frame, with a line for each place that is gone to.
fn painted(model: &Model, theme: Theme, depth: Depth) -> String {
    let text = String::from_utf8(Painter::new(depth).paint(view(model, theme))).unwrap();
    let line = |piece: &str| if sequence(piece).1 == Some('H') { "\n␛[" } else { "␛[" };
    text.split("\x1b[").skip(1).map(|piece| format!("{}{piece}", line(piece))).collect()
}

#[test]
fn light_and_dark_ground_in_every_number_of_colours() {
    let model = model((80, 24), ten());
    let grounds = [("dark", false), ("light", true)];
    let depths = [(Depth::True, true), (Depth::Indexed, true), (Depth::Sixteen, false), (Depth::None, false)];
    for (ground, light) in grounds {
        let frames = depths.map(|(depth, rich)| painted(&model, Theme { light, rich }, depth));
        let [truecolour, indexed, sixteen, none] = &frames;
        assert_eq!(truecolour, indexed, "the theme has no colour that 256 do not have");
        insta::assert_snapshot!(format!("{ground}_256"), indexed);
        insta::assert_snapshot!(format!("{ground}_16"), sixteen);
        // Of looks, only those that need no colour: bold, faint and reversed.
        let looks = none.split("␛[").map(sequence).filter(|(_, last)| *last == Some('m'));
        let numbers: BTreeSet<&str> = looks.flat_map(|(numbers, _)| numbers.split(';')).collect();
        assert_eq!(numbers, BTreeSet::from(["0", "1", "2", "7"]), "{ground}");
        insta::assert_snapshot!(format!("{ground}_none"), none);
    }
}

#[test]
fn light_and_dark_and_no_colours_have_the_same_words() {
    let model = model((120, 40), ten());
    let read = |theme| {
        let UiFrame { buffer, .. } = view(&model, theme);
        buffer.content().iter().map(|cell| cell.symbol().to_owned()).collect::<String>()
    };
    let dark = read(DARK);
    assert_eq!(read(Theme { light: true, rich: true }), dark);
    assert_eq!(read(Theme { light: false, rich: false }), dark);
}

#[test]
fn text_from_right_to_left_stays_in_its_columns_and_in_its_order() {
    let (hebrew, arabic) = ("שלום-עולם", "مُهِمّة");
    let sessions = vec![
        session(1, "plain", json!({})),
        session(2, hebrew, json!({})),
        session(3, arabic, json!({"why": "idle: \u{202e}evil\u{202c}"})),
    ];
    let model = model((120, 40), sessions);
    let UiFrame { buffer, .. } = view(&model, DARK);
    let row = |name: &str| -> Vec<String> {
        let cell = |x: u16, y: u16| buffer[(x, y)].symbol().to_owned();
        let rows = (2..buffer.area.height).map(|y| (0..buffer.area.width).map(|x| cell(x, y)).collect());
        rows.into_iter().find(|row: &Vec<String>| row.concat().contains(name)).unwrap()
    };
    let column = |row: &[String], text: &str| {
        (0..row.len())
            .find(|at| row[*at..].concat().starts_with(text))
            .unwrap_or_else(|| panic!("{text} in {row:?}"))
    };
    let plain = row("plain");
    for name in [hebrew, arabic] {
        let row = row(name);
        assert_eq!(column(&row, name), column(&plain, "plain"), "the first letter comes first");
        assert_eq!(column(&row, "~/src/"), column(&plain, "~/src/"), "{row:?}");
        assert_eq!(column(&row, "idle"), column(&plain, "idle"));
    }
    // What turns the order of everything after it is not sent: it is shown as text.
    let sent = painted(&model, DARK, Depth::True);
    assert!(!sent.contains(['\u{202e}', '\u{202c}']) && sent.contains("\\u202eevil\\u202c"), "{sent}");
    // Whatever a terminal makes of such letters, what is behind them is painted at its own place.
    let behind = sent.split(hebrew.chars().last().unwrap()).nth(1).unwrap();
    assert!(behind.trim_start_matches('\n').starts_with("␛["), "{behind}");
}

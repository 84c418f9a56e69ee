use super::*;
use crate::tui::effect::{UiReply, UiRequest};
use crate::tui::fixture::{NOW, changed, keys, model, session, snapshot, ten, text};
use crate::tui::model::{ConnectionState, Overlay};
use crate::tui::sessions::SessionsNews;
use pinfold_api::object::Purged;
use serde_json::{Value, json};

fn ten_of() -> Model {
    model((120, 40), ten())
}

/// The requests to the daemon, without those that the pane makes by itself.
fn asked(effects: Vec<Effect>) -> Vec<UiRequest> {
    let ask = |effect| if let Effect::Ask(request) = effect { Some(request) } else { None };
    let own = |request: &UiRequest| !matches!(request, UiRequest::Detail { .. });
    effects.into_iter().filter_map(ask).filter(own).collect()
}

fn selected(model: &Model) -> String {
    model.selected().map(|known| known.told.session.name.clone()).unwrap_or_default()
}

fn go_to(model: &mut Model, name: &str) {
    let at = model.list.rows.iter().position(|row| row.id().is_some_and(|id| model.name(id) == name));
    model.select(at.unwrap_or_else(|| panic!("{name} is not in the list")));
}

fn id(number: u32) -> String {
    format!("01TEST{number:020}")
}

#[test]
fn who_needs_a_person_comes_first_and_the_selection_stays_with_its_session() {
    let mut model = ten_of();
    let names = |model: &Model| -> Vec<String> {
        model.list.rows.iter().filter_map(|row| row.id()).map(|id| model.name(id).to_owned()).collect()
    };
    let expected = [
        "deploy",
        "broken",
        "other-agent",
        "crasher",
        "api",
        "weird\u{1b}[31m",
        "editor",
        "notes",
        "会議-メモ",
    ];
    assert_eq!(names(&model), expected);
    go_to(&mut model, "notes");
    changed(&mut model, session(6, "notes", json!({"state": "failed", "why": "failed: x"})));
    assert_eq!((selected(&model).as_str(), names(&model)[2].as_str()), ("notes", "notes"));
    keys(&mut model, "p");
    assert_eq!((names(&model)[0].as_str(), selected(&model).as_str()), ("notes", "notes"));
    keys(&mut model, "!");
    assert_eq!(names(&model), ["notes", "deploy", "broken", "other-agent"]);
    keys(&mut model, "esc z G");
    assert_eq!(selected(&model), "old");
}

#[test]
fn stop_and_restart_ask_once_where_a_turn_is_under_way() {
    for (key, act) in [("x", KeyAction::Stop), ("r", KeyAction::Restart)] {
        let mut model = ten_of();
        go_to(&mut model, "api");
        assert!(asked(keys(&mut model, key)).is_empty(), "it is asked first");
        assert!(matches!(&model.overlay, Some(Overlay::Confirm { act: of, .. }) if *of == act));
        assert_eq!(asked(keys(&mut model, "esc")), []);
        let request = asked(keys(&mut model, &format!("{key} y")));
        let (id, name) = (id(1), "api".to_owned());
        let expected = if act == KeyAction::Stop {
            UiRequest::Stop { id, name }
        } else {
            UiRequest::Restart { id, name }
        };
        assert_eq!(request, [expected]);
        go_to(&mut model, "editor");
        assert_eq!(asked(keys(&mut model, key)).len(), 1, "nothing is under way");
    }
}

#[test]
fn a_request_is_answered_by_the_id_that_was_read() {
    let rows = [("a y", "allow", false, None), ("a n", "deny", false, None), ("a A", "allow", true, None)];
    for (typed, answer, always, words) in rows {
        let mut model = ten_of();
        let request = asked(keys(&mut model, typed));
        let Some(UiRequest::Answer { permission, .. }) = request.first() else { panic!("{request:?}") };
        let told = (permission.answer.as_str(), permission.always, permission.message.clone());
        assert_eq!((told, permission.id.as_deref()), ((answer, always, words), Some("r1")));
    }
    let mut model = ten_of();
    keys(&mut model, "a w");
    // Another request has taken its place meanwhile.
    let request =
        json!({"id": "r2", "kind": "permission", "title": "Bash: rm -rf /", "since": "2026-11-17T11:59:00Z"});
    changed(
        &mut model,
        session(2, "deploy", json!({"state": "running", "activity": "waiting", "request": request})),
    );
    text(&mut model, "yes, once");
    let request = asked(keys(&mut model, "enter"));
    let Some(UiRequest::Answer { permission, .. }) = request.first() else { panic!("{request:?}") };
    assert_eq!((permission.id.as_deref(), permission.message.as_deref()), (Some("r1"), Some("yes, once")));
}

#[test]
fn what_is_typed_for_the_editor_is_no_key_and_a_draft_is_kept_until_it_is_sent() {
    let mut model = ten_of();
    keys(&mut model, "s");
    assert_eq!(asked(text(&mut model, "qxrA!")), []);
    keys(&mut model, "alt-enter");
    text(&mut model, "two");
    keys(&mut model, "esc");
    assert_eq!(model.drafts[&id(2)], "qxrA!\ntwo");
    let sent = asked(keys(&mut model, "s enter"));
    assert_eq!(sent, [UiRequest::Send { id: id(2), name: "deploy".into(), text: "qxrA!\ntwo".into() }]);
    assert!(model.drafts.contains_key(&id(2)), "until the daemon has it");
    update(&mut model, UiInput::Answered(UiReply::Failed("no".into())), NOW);
    assert!(model.drafts.contains_key(&id(2)));
    update(&mut model, UiInput::Answered(UiReply::Sent { id: id(2), said: "sent".into() }), NOW);
    assert!(model.drafts.is_empty());
}

#[test]
fn what_is_pasted_is_never_keys() {
    let mut model = ten_of();
    let paste = |model: &mut Model, text: &str| update(model, UiInput::Typed(Typed::Paste(text.into())), NOW);
    assert_eq!(asked(paste(&mut model, "xy\rq")), []);
    assert!(model.overlay.is_none() && model.note.as_ref().is_some_and(|note| note.bad));
    keys(&mut model, "a");
    assert_eq!(asked(paste(&mut model, "y")), [], "a paste answers nothing");
    keys(&mut model, "esc s");
    assert_eq!(asked(paste(&mut model, "one\ntwo\n")), []);
    assert!(matches!(&model.overlay, Some(Overlay::Send { field, .. }) if field.text() == "one\ntwo\n"));
}

#[test]
fn somebody_who_begins_to_wait_is_called_only_when_nobody_looks_and_never_at_the_first_load() {
    let mut model = ten_of();
    let asks = |title: &str| {
        let request =
            json!({"id": "r9", "kind": "permission", "title": title, "since": "2026-11-17T11:59:00Z"});
        session(6, "notes", json!({"state": "running", "activity": "waiting", "request": request}))
    };
    let calls =
        |effects: Vec<Effect>| effects.into_iter().filter(|effect| matches!(effect, Effect::Call(_))).count();
    assert_eq!(calls(changed(&mut model, asks("a"))), 0, "it has the focus");
    update(&mut model, UiInput::Typed(Typed::Focus(false)), NOW);
    assert_eq!(calls(changed(&mut model, asks("b"))), 0, "it waits already");
    assert_eq!(calls(changed(&mut model, session(6, "notes", json!({})))), 0);
    let called = changed(&mut model, asks("Bash: ls"));
    assert!(called.contains(&Effect::Call("notes asks: Bash: ls".into())), "{called:?}");
    assert_eq!(calls(snapshot(&mut model, ten())), 0);
    let failed = changed(&mut model, session(8, "editor", json!({"state": "failed", "why": "failed: x"})));
    assert!(failed.contains(&Effect::Call("editor has failed".into())), "{failed:?}");
}

#[test]
fn a_search_asks_one_question_at_a_time_and_the_last_one_counts() {
    let mut model = ten_of();
    let first = asked(text(&mut model, "/cra"));
    assert_eq!(first, [UiRequest::Search { text: "c".into() }]);
    assert_eq!(selected(&model), "crasher");
    let found = |text: &str| UiInput::Answered(UiReply::Found { text: text.into(), hits: Ok(Vec::new()) });
    let next = asked(update(&mut model, found("c"), NOW));
    assert_eq!(next, [UiRequest::Search { text: "cra".into() }]);
    keys(&mut model, "enter");
    assert!(model.list.search.as_ref().is_some_and(|search| !search.typing));
    keys(&mut model, "esc");
    assert_eq!((model.list.search.is_none(), selected(&model).as_str()), (true, "crasher"));
}

#[test]
fn archive_has_an_undo_and_purge_a_preview() {
    let mut model = ten_of();
    go_to(&mut model, "notes");
    let (id, name) = (id(6), "notes".to_owned());
    assert_eq!(asked(keys(&mut model, "A")), [UiRequest::Archive { id: id.clone(), name: name.clone() }]);
    update(&mut model, UiInput::Answered(UiReply::Archived { id: id.clone(), name: name.clone() }), NOW);
    assert_eq!(asked(keys(&mut model, "u")), [UiRequest::Restore { id, name }]);
    assert_eq!(asked(keys(&mut model, "u")), []);
    assert_eq!(asked(keys(&mut model, "P")), [UiRequest::Purge { dry: true }]);
    assert_eq!(asked(keys(&mut model, "y")), [], "nothing is known of it yet");
    let purged = Purged { archived: vec!["notes".into()], ..Purged::default() };
    update(&mut model, UiInput::Answered(UiReply::Purged { dry: true, purged: Ok(purged) }), NOW);
    assert_eq!(asked(keys(&mut model, "y")), [UiRequest::Purge { dry: false }]);
}

#[test]
fn the_pane_asks_for_details_once_and_again_when_that_session_has_changed() {
    let mut model = ten_of();
    let details = |effects: &[Effect]| {
        effects.iter().filter(|effect| matches!(effect, Effect::Ask(UiRequest::Detail { .. }))).count()
    };
    assert_eq!(details(&keys(&mut model, "j")), 0, "the first is not answered yet");
    let answered = |id: String| UiInput::Answered(UiReply::Detail { id, gathered: Err("x".into()) });
    assert_eq!(details(&update(&mut model, answered(id(2)), NOW)), 1);
    assert_eq!(details(&update(&mut model, answered(id(4)), NOW)), 0);
    assert_eq!(details(&changed(&mut model, session(1, "api", json!({})))), 0, "another one");
    let broken: Value = ten().remove(3);
    assert_eq!(details(&changed(&mut model, broken)), 1);
}

#[test]
fn a_terminal_is_looked_at_while_its_pane_is_open_and_again_when_its_run_is_another() {
    let mut model = ten_of();
    let watches = |effects: Vec<Effect>| -> Vec<bool> {
        effects
            .into_iter()
            .filter_map(|effect| if let Effect::Watch(watch) = effect { Some(watch.is_some()) } else { None })
            .collect()
    };
    assert_eq!(watches(keys(&mut model, "v")), [true]);
    assert_eq!(watches(keys(&mut model, "j")), [true], "the selection is another");
    assert_eq!(watches(keys(&mut model, "k k")), [true]);
    let again = session(2, "deploy", json!({"state": "running", "run": "01NEW"}));
    assert_eq!(watches(changed(&mut model, again)), [true]);
    assert_eq!(watches(update(&mut model, UiInput::Resized(200, 60), NOW)), [true]);
    assert_eq!(watches(keys(&mut model, "v")), [false], "its seat is given back");
}

#[test]
fn a_daemon_that_is_away_is_said_and_what_was_known_stays() {
    let mut model = ten_of();
    update(&mut model, UiInput::Feed(SessionsNews::Away("gone".into())), NOW);
    assert!(matches!(model.link, ConnectionState::Away { .. }) && !model.list.rows.is_empty());
    changed(&mut model, session(1, "api", json!({})));
    assert_eq!(model.link, ConnectionState::Up);
}

#[test]
fn the_mouse_selects_and_never_acts_and_is_left_alone_where_the_user_wants() {
    let mut model = ten_of();
    let click = |model: &mut Model, row| {
        let mouse = Mouse { what: Click::Left, column: 5, row };
        asked(update(model, UiInput::Typed(Typed::Mouse(mouse)), NOW))
    };
    assert_eq!(click(&mut model, 4), []);
    assert_eq!(selected(&model), "other-agent");
    keys(&mut model, "m");
    click(&mut model, 2);
    assert_eq!(selected(&model), "other-agent");
}

#[test]
fn done_and_not_looked_at_is_marked_until_its_pane_was_open() {
    let mut model = ten_of();
    let turned =
        session(6, "notes", json!({"inbox": {"queued": 0, "in_flight": 0, "done": 12, "failed": 0}}));
    changed(&mut model, turned);
    let unseen = |model: &Model| {
        model.list.wanted.need(model.sessions.get(&id(6)).unwrap()) == crate::tui::need::PersonNeed::Unseen
    };
    assert!(unseen(&model));
    go_to(&mut model, "notes");
    update(&mut model, UiInput::Tick, NOW);
    assert!(!unseen(&model));
}

#[test]
fn the_daemon_is_told_once_that_the_pane_showed_what_nobody_had_seen() {
    let mut model = ten_of();
    let unseen = || session(6, "notes", json!({"seen": false}));
    changed(&mut model, unseen());
    let need = |model: &Model| model.list.wanted.need(model.sessions.get(&id(6)).unwrap());
    assert_eq!(need(&model), crate::tui::need::PersonNeed::Unseen);
    let looks = |effects: &[Effect]| {
        let look = Effect::Ask(UiRequest::Look { id: id(6) });
        effects.iter().filter(|effect| **effect == look).count()
    };
    go_to(&mut model, "notes");
    model.focused = false;
    changed(&mut model, unseen());
    assert_eq!(looks(&update(&mut model, UiInput::Tick, NOW)), 0, "no person looks");
    assert_eq!(need(&model), crate::tui::need::PersonNeed::Unseen);
    model.focused = true;
    let told: usize = (0..3).map(|_| looks(&update(&mut model, UiInput::Tick, NOW))).sum();
    assert_eq!(told, 1);
}

#[test]
fn any_keys_and_news_in_any_order_leave_a_selection_that_is_there() {
    let mut model = ten_of();
    let mut dice: u64 = 7;
    let all: Vec<&str> = crate::tui::keymap::TABLE
        .iter()
        .flat_map(|row| row.keys.iter().copied())
        .filter(|key| *key != "q")
        .collect();
    for _ in 0..3000 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let roll = usize::try_from(dice >> 33).unwrap_or(0);
        let number = roll / 10;
        _ = match roll % 10 {
            0 => changed(&mut model, ten()[number % 10].clone()),
            1 => {
                let id = id(1 + (number % 10) as u32);
                update(&mut model, UiInput::Feed(SessionsNews::Removed { revision: "1.3".into(), id }), NOW)
            }
            2 => update(&mut model, UiInput::Resized((number % 300) as u16, (number / 300 % 90) as u16), NOW),
            _ => keys(&mut model, all[number % all.len()]),
        };
        let row = model.list.rows.get(model.list.at);
        assert!(
            model.list.rows.is_empty() || row.is_some_and(|row| row.id() == model.list.selected.as_deref())
        );
        crate::tui::view::view(&model, crate::tui::view::Theme { light: false, rich: true });
    }
}

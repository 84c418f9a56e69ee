//! Handles keys in the list.

use super::super::editor::Editor;
use super::super::effect::{Effect, Request};
use super::super::form::Form;
use super::super::keymap::Act;
use super::super::known::Known;
use super::super::model::{Logs, Model, Note, Overlay, Search};
use super::super::order::Row;
use super::{open, pane};
use pinfold_api::word::{Activity, State};

/// Handles a key in the list.
pub(super) fn key(model: &mut Model, act: Option<Act>, effects: &mut Vec<Effect>) {
    let Some(act) = act else { return };
    match act {
        Act::Down | Act::Up | Act::PageDown | Act::PageUp | Act::First | Act::Last | Act::NextNeedy => {
            model.select(moved(model, act));
        }
        Act::Attach | Act::Send | Act::Answer | Act::Tags | Act::Follow => on_selected(model, act, effects),
        Act::Interrupt | Act::Start | Act::Stop | Act::Restart | Act::Archive => steer(model, act, effects),
        Act::Search => model.list.search = Some(Search { typing: true, ..Search::default() }),
        Act::Needy | Act::Archived | Act::Group | Act::Pin | Act::Fold => arrange(model, act, effects),
        Act::Pane | Act::Screen | Act::PaneDown | Act::PaneUp => pane::key(model, act, effects),
        Act::Undo => undo(model, effects),
        Act::New => {
            let form = Form::new(&model.here.agents, &model.here.dir);
            open(model, Overlay::New(Box::new(form)));
        }
        Act::Purge => {
            open(model, Overlay::Purge { preview: None, top: 0 });
            effects.push(Effect::Ask(Request::Purge { dry: true }));
        }
        Act::Locks => {
            open(model, Overlay::Locks { locks: None, top: 0 });
            effects.push(Effect::Ask(Request::Locks));
        }
        Act::Palette => open(model, Overlay::Palette { field: Editor::default(), at: 0 }),
        Act::Help => open(model, Overlay::Help { top: 0 }),
        Act::Mouse => {
            model.mouse = !model.mouse;
            model.note =
                Note::good(if model.mouse { "the mouse is taken" } else { "the mouse is the terminal's" });
            effects.push(Effect::Mouse(model.mouse));
        }
        Act::Redraw => effects.push(Effect::Redraw),
        Act::Quit => effects.extend([Effect::Keep, Effect::Quit]),
        Act::Close => leave(model),
        Act::Accept
        | Act::Newline
        | Act::FieldNext
        | Act::FieldBack
        | Act::Allow
        | Act::Deny
        | Act::Always => {}
    }
}

/// The row that a movement key goes to.
fn moved(model: &Model, act: Act) -> usize {
    let (at, last) = (model.list.at, model.list.rows.len().saturating_sub(1));
    let page = model.list_rows().saturating_sub(1).max(1);
    let places = [
        (Act::Down, at + 1),
        (Act::Up, at.saturating_sub(1)),
        (Act::PageDown, at + page),
        (Act::PageUp, at.saturating_sub(page)),
        (Act::First, 0),
        (Act::NextNeedy, next_needy(model).unwrap_or(at)),
    ];
    places.into_iter().find(|(of, _)| *of == act).map_or(last, |(_, to)| to)
}

fn next_needy(model: &Model) -> Option<usize> {
    let rows = &model.list.rows;
    let needs = |at: &usize| {
        let known = rows.get(*at).and_then(Row::id).and_then(|id| model.sessions.get(id));
        known.is_some_and(|known| model.list.wanted.need(known).is_for_person())
    };
    (model.list.at + 1..rows.len()).chain(0..model.list.at).find(needs)
}

/// Leaves the search first, then the filter.
fn leave(model: &mut Model) {
    if model.list.search.take().is_none() {
        model.list.wanted.needy = false;
    }
    model.arrange();
}

fn arrange(model: &mut Model, act: Act, effects: &mut Vec<Effect>) {
    let wanted = &mut model.list.wanted;
    if act == Act::Needy {
        wanted.needy = !wanted.needy;
    } else if act == Act::Archived {
        wanted.archived = !wanted.archived;
    } else if act == Act::Group {
        wanted.grouping = wanted.grouping.next();
    } else if act == Act::Fold {
        fold(model);
    } else if let Some(id) = model.list.selected.clone()
        && !wanted.pins.remove(&id)
    {
        wanted.pins.insert(id);
    }
    model.arrange();
    effects.push(Effect::Keep);
}

/// Folds the selected group, or the group of the selected session.
fn fold(model: &mut Model) {
    let rows = &model.list.rows;
    let head = (0..=model.list.at).rev().find_map(|at| match rows.get(at) {
        Some(Row::Head { label, .. }) => Some((at, label.clone())),
        Some(Row::Session { .. }) | None => None,
    });
    let Some((at, label)) = head else { return };
    let folded = &mut model.list.wanted.folded;
    if !folded.remove(&label) {
        folded.insert(label);
    }
    model.select(at);
}

fn on_selected(model: &mut Model, act: Act, effects: &mut Vec<Effect>) {
    let Some(known) = model.selected() else { return none(model) };
    let (id, own) = (known.told.session.id.clone(), model.is_own(&known.told.session));
    if act == Act::Attach {
        if own {
            model.note = Note::bad("this UI runs inside that session");
        } else {
            effects.push(Effect::Attach { id });
        }
    } else if act == Act::Send {
        let field = Editor::of(model.drafts.get(&id).map_or("", String::as_str));
        open(model, Overlay::Send { of: id, field });
    } else if act == Act::Tags {
        let field = Editor::of(&known.told.session.tags.join(" "));
        open(model, Overlay::Tags { of: id, field });
    } else if act == Act::Follow {
        let (of, lines) = (id.clone(), std::collections::VecDeque::new());
        open(model, Overlay::Logs(Logs { of, lines, up: 0, over: None }));
        effects.push(Effect::Follow(Some(id)));
    } else if let Some(request) = known.told.session.request.as_ref().map(|request| request.id.clone()) {
        open(model, Overlay::Answer { of: id, request, words: None });
    } else {
        model.note = Note::bad(format!("`{}` asks nothing", known.told.session.name));
    }
}

fn none(model: &mut Model) {
    model.note = Note::bad("no session is selected");
}

/// Stop and restart ask for confirmation if a turn is under way.
fn steer(model: &mut Model, act: Act, effects: &mut Vec<Effect>) {
    let Some(known) = model.selected() else { return none(model) };
    let id = known.told.session.id.clone();
    if matches!(act, Act::Stop | Act::Restart) && works(known) {
        return open(model, Overlay::Confirm { act, of: id });
    }
    ask(model, act, &id, effects);
}

/// Whether a turn is under way.
fn works(known: &Known) -> bool {
    let session = &known.told.session;
    let lives = matches!(session.state, State::Running | State::Held | State::Starting);
    lives && (session.inbox.in_flight > 0 || session.activity == Activity::Working)
}

/// Makes a request about the session with this id and name.
type OfSession = fn(String, String) -> Request;

/// The keys that steer a session: what to tell the user meanwhile, and the request.
const STEERS: [(Act, &str, OfSession); 5] = [
    (Act::Interrupt, "interrupting", |id, name| Request::Interrupt { id, name }),
    (Act::Start, "starting", |id, name| Request::Start { id, name }),
    (Act::Stop, "stopping", |id, name| Request::Stop { id, name }),
    (Act::Restart, "restarting", |id, name| Request::Restart { id, name }),
    (Act::Archive, "archiving", |id, name| Request::Archive { id, name }),
];

/// Asks the daemon to steer a session.
pub(super) fn ask(model: &mut Model, act: Act, id: &str, effects: &mut Vec<Effect>) {
    let Some((_, said, request)) = STEERS.iter().find(|(of, ..)| *of == act) else { return };
    let name = model.name(id).to_owned();
    model.note = Note::good(format!("{said} `{name}`"));
    effects.push(Effect::Ask(request(id.to_owned(), name)));
}

fn undo(model: &mut Model, effects: &mut Vec<Effect>) {
    match model.archived.pop() {
        Some((id, name)) => effects.push(Effect::Ask(Request::Restore { id, name })),
        None => model.note = Note::bad("nothing was archived here"),
    }
}

/// Performs an action chosen in the palette, which has everything with a key in the list.
pub(super) fn from_palette(model: &mut Model, act: Act, effects: &mut Vec<Effect>) {
    model.overlay = None;
    key(model, Some(act), effects);
}

//! Handles keys in the list.

use super::super::editor::Editor;
use super::super::effect::{Effect, UiRequest};
use super::super::form::NewSessionForm;
use super::super::keymap::KeyAction;
use super::super::model::{FollowedLogs, Model, Overlay, SearchState, StatusNote};
use super::super::order::ListRow;
use super::super::sessions::KnownSession;
use super::{open, pane};
use pinfold_api::word::{Activity, State};

/// Handles a key in the list.
pub(super) fn key(model: &mut Model, act: Option<KeyAction>, effects: &mut Vec<Effect>) {
    let Some(act) = act else { return };
    match act {
        KeyAction::Down
        | KeyAction::Up
        | KeyAction::PageDown
        | KeyAction::PageUp
        | KeyAction::First
        | KeyAction::Last
        | KeyAction::NextNeedy => {
            model.select(moved(model, act));
        }
        KeyAction::Attach | KeyAction::Send | KeyAction::Answer | KeyAction::Tags | KeyAction::Follow => {
            on_selected(model, act, effects);
        }
        KeyAction::Interrupt
        | KeyAction::Start
        | KeyAction::Stop
        | KeyAction::Restart
        | KeyAction::Archive => steer(model, act, effects),
        KeyAction::Search => model.list.search = Some(SearchState { typing: true, ..SearchState::default() }),
        KeyAction::Needy | KeyAction::Archived | KeyAction::Group | KeyAction::Pin | KeyAction::Fold => {
            arrange(model, act, effects);
        }
        KeyAction::Pane | KeyAction::Screen | KeyAction::PaneDown | KeyAction::PaneUp => {
            pane::key(model, act, effects);
        }
        KeyAction::Undo => undo(model, effects),
        KeyAction::New => open_form(model),
        KeyAction::Purge => open_purge(model, effects),
        KeyAction::Locks => open_locks(model, effects),
        KeyAction::Palette => open(model, Overlay::Palette { field: Editor::default(), at: 0 }),
        KeyAction::Help => open(model, Overlay::Help { top: 0 }),
        KeyAction::Mouse => toggle_mouse(model, effects),
        KeyAction::Redraw => effects.push(Effect::Redraw),
        KeyAction::Quit => effects.extend([Effect::Keep, Effect::Quit]),
        KeyAction::Close => leave(model),
        KeyAction::Accept
        | KeyAction::Newline
        | KeyAction::FieldNext
        | KeyAction::FieldBack
        | KeyAction::Allow
        | KeyAction::Deny
        | KeyAction::Always => {}
    }
}

fn open_form(model: &mut Model) {
    let form = NewSessionForm::new(&model.here.agents, &model.here.dir);
    open(model, Overlay::New(Box::new(form)));
}

fn open_purge(model: &mut Model, effects: &mut Vec<Effect>) {
    open(model, Overlay::Purge { preview: None, top: 0 });
    effects.push(Effect::Ask(UiRequest::Purge { dry: true }));
}

fn open_locks(model: &mut Model, effects: &mut Vec<Effect>) {
    open(model, Overlay::Locks { locks: None, top: 0 });
    effects.push(Effect::Ask(UiRequest::Locks));
}

fn toggle_mouse(model: &mut Model, effects: &mut Vec<Effect>) {
    model.mouse = !model.mouse;
    let told = if model.mouse { "the mouse is taken" } else { "the mouse is the terminal's" };
    model.note = StatusNote::good(told);
    effects.push(Effect::Mouse(model.mouse));
}

/// The row that a movement key goes to.
fn moved(model: &Model, act: KeyAction) -> usize {
    let (at, last) = (model.list.at, model.list.rows.len().saturating_sub(1));
    let page = model.list_rows().saturating_sub(1).max(1);
    let places = [
        (KeyAction::Down, at + 1),
        (KeyAction::Up, at.saturating_sub(1)),
        (KeyAction::PageDown, at + page),
        (KeyAction::PageUp, at.saturating_sub(page)),
        (KeyAction::First, 0),
        (KeyAction::NextNeedy, next_needy(model).unwrap_or(at)),
    ];
    places.into_iter().find(|(of, _)| *of == act).map_or(last, |(_, to)| to)
}

fn next_needy(model: &Model) -> Option<usize> {
    let rows = &model.list.rows;
    let needs = |at: &usize| {
        let known = rows.get(*at).and_then(ListRow::id).and_then(|id| model.sessions.get(id));
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

fn arrange(model: &mut Model, act: KeyAction, effects: &mut Vec<Effect>) {
    let wanted = &mut model.list.wanted;
    if act == KeyAction::Needy {
        wanted.needy = !wanted.needy;
    } else if act == KeyAction::Archived {
        wanted.archived = !wanted.archived;
    } else if act == KeyAction::Group {
        wanted.grouping = wanted.grouping.next();
    } else if act == KeyAction::Fold {
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
        Some(ListRow::Head { label, .. }) => Some((at, label.clone())),
        Some(ListRow::Session { .. }) | None => None,
    });
    let Some((at, label)) = head else { return };
    let folded = &mut model.list.wanted.folded;
    if !folded.remove(&label) {
        folded.insert(label);
    }
    model.select(at);
}

fn on_selected(model: &mut Model, act: KeyAction, effects: &mut Vec<Effect>) {
    let Some(known) = model.selected() else { return none(model) };
    let (id, own) = (known.told.session.id.clone(), model.is_own(&known.told.session));
    if act == KeyAction::Attach {
        if own {
            model.note = StatusNote::bad("this UI runs inside that session");
        } else {
            effects.push(Effect::Attach { id });
        }
    } else if act == KeyAction::Send {
        let field = Editor::of(model.drafts.get(&id).map_or("", String::as_str));
        open(model, Overlay::Send { of: id, field });
    } else if act == KeyAction::Tags {
        let field = Editor::of(&known.told.session.tags.join(" "));
        open(model, Overlay::Tags { of: id, field });
    } else if act == KeyAction::Follow {
        let (of, lines) = (id.clone(), std::collections::VecDeque::new());
        open(model, Overlay::Logs(FollowedLogs { of, lines, up: 0, over: None }));
        effects.push(Effect::Follow(Some(id)));
    } else if let Some(request) = known.told.session.request.as_ref().map(|request| request.id.clone()) {
        open(model, Overlay::Answer { of: id, request, words: None });
    } else {
        model.note = StatusNote::bad(format!("`{}` asks nothing", known.told.session.name));
    }
}

fn none(model: &mut Model) {
    model.note = StatusNote::bad("no session is selected");
}

/// Stop and restart ask for confirmation if a turn is under way.
fn steer(model: &mut Model, act: KeyAction, effects: &mut Vec<Effect>) {
    let Some(known) = model.selected() else { return none(model) };
    let id = known.told.session.id.clone();
    if matches!(act, KeyAction::Stop | KeyAction::Restart) && works(known) {
        return open(model, Overlay::Confirm { act, of: id });
    }
    ask(model, act, &id, effects);
}

/// Whether a turn is under way.
fn works(known: &KnownSession) -> bool {
    let session = &known.told.session;
    let lives = matches!(session.state, State::Running | State::Held | State::Starting);
    lives && (session.inbox.in_flight > 0 || session.activity == Activity::Working)
}

/// Makes a request about the session with this id and name.
type OfSession = fn(String, String) -> UiRequest;

/// The keys that steer a session: what to tell the user meanwhile, and the request.
const STEERS: [(KeyAction, &str, OfSession); 5] = [
    (KeyAction::Interrupt, "interrupting", |id, name| UiRequest::Interrupt { id, name }),
    (KeyAction::Start, "starting", |id, name| UiRequest::Start { id, name }),
    (KeyAction::Stop, "stopping", |id, name| UiRequest::Stop { id, name }),
    (KeyAction::Restart, "restarting", |id, name| UiRequest::Restart { id, name }),
    (KeyAction::Archive, "archiving", |id, name| UiRequest::Archive { id, name }),
];

/// Asks the daemon to steer a session.
pub(super) fn ask(model: &mut Model, act: KeyAction, id: &str, effects: &mut Vec<Effect>) {
    let Some((_, said, request)) = STEERS.iter().find(|(of, ..)| *of == act) else { return };
    let name = model.name(id).to_owned();
    model.note = StatusNote::good(format!("{said} `{name}`"));
    effects.push(Effect::Ask(request(id.to_owned(), name)));
}

fn undo(model: &mut Model, effects: &mut Vec<Effect>) {
    match model.archived.pop() {
        Some((id, name)) => effects.push(Effect::Ask(UiRequest::Restore { id, name })),
        None => model.note = StatusNote::bad("nothing was archived here"),
    }
}

/// Performs an action chosen in the palette, which has everything with a key in the list.
pub(super) fn from_palette(model: &mut Model, act: KeyAction, effects: &mut Vec<Effect>) {
    model.overlay = None;
    key(model, Some(act), effects);
}

//! Handles the pane beside the list: it follows the selection, and requests what it shows.

use super::super::effect::{Effect, UiRequest, WatchTarget};
use super::super::keymap::KeyAction;
use super::super::model::{Detail, Model, Pane, WatchedScreen};
use super::super::need::turns;
use pinfold_terminal::Looks;

/// Handles a key of the pane.
pub(super) fn key(model: &mut Model, act: KeyAction, effects: &mut Vec<Effect>) {
    if let (Pane::Detail(detail), KeyAction::PaneDown | KeyAction::PaneUp) = (&mut model.pane, act) {
        let down = act == KeyAction::PaneDown;
        detail.top = if down { detail.top + 5 } else { detail.top.saturating_sub(5) };
        return;
    }
    let watched = matches!(&model.pane, Pane::Screen(screen) if screen.of.is_some());
    model.pane = match (act, &model.pane) {
        (KeyAction::Pane, Pane::Hidden | Pane::Screen(_)) | (KeyAction::Screen, Pane::Screen(_)) => {
            Pane::Detail(Box::default())
        }
        (KeyAction::Pane, Pane::Detail(_)) => Pane::Hidden,
        (KeyAction::Screen, Pane::Hidden | Pane::Detail(_)) => Pane::Screen(WatchedScreen::default()),
        _ => return,
    };
    if watched {
        effects.push(Effect::Watch(None));
    }
    let at = model.list.at;
    model.select(at);
    effects.push(Effect::Keep);
}

/// Requests what the pane shows, when the selection or the selected session has changed.
pub(super) fn follow_selection(model: &mut Model, effects: &mut Vec<Effect>) {
    let selected = model.selected().map(|known| known.told.session.id.clone());
    let pane = model.layout().pane;
    match &mut model.pane {
        Pane::Hidden => {}
        Pane::Screen(screen) => {
            if screen.of != selected {
                *screen = WatchedScreen { of: selected.clone(), ..WatchedScreen::default() };
                let watch = |id| WatchTarget { id, rows: pane.height.max(1), columns: pane.width.max(1) };
                effects.push(Effect::Watch(selected.map(watch)));
            }
        }
        Pane::Detail(detail) => {
            if detail.of != selected {
                **detail = Detail {
                    of: selected.clone(),
                    stale: true,
                    waiting: detail.waiting,
                    ..Detail::default()
                };
            }
            if detail.stale && !detail.waiting {
                detail.stale = false;
                if let Some(id) = selected.clone() {
                    detail.waiting = true;
                    effects.push(Effect::Ask(UiRequest::Detail { id }));
                }
            }
            look_at(model, selected.as_deref(), effects);
        }
    }
}

/// Marks a session shown in the pane as looked at, and tells the daemon if it does not know.
pub(super) fn look_at(model: &mut Model, id: Option<&str>, effects: &mut Vec<Effect>) {
    let focused = model.focused;
    let Some(known) = id.and_then(|id| model.sessions.all.get_mut(id)).filter(|_| focused) else { return };
    let (id, turns) = (known.told.session.id.clone(), turns(known));
    if known.told.seen == Some(false) {
        // Until the feed says so: it is told once.
        known.told.seen = Some(true);
        effects.push(Effect::Ask(UiRequest::Look { id: id.clone() }));
    }
    model.list.wanted.looked.insert(id, turns);
}

/// Requests a watched terminal again when the pane's size has changed.
pub(super) fn look_again(model: &mut Model, effects: &mut Vec<Effect>) {
    let pane = model.layout().pane;
    if let Pane::Screen(WatchedScreen { of: Some(id), .. }) = &model.pane {
        let watch = WatchTarget { id: id.clone(), rows: pane.height.max(1), columns: pane.width.max(1) };
        effects.push(Effect::Watch(Some(watch)));
    }
}

/// Handles the contents of the watched terminal.
pub(super) fn screen(model: &mut Model, of: &str, shown: Result<Vec<Vec<(String, Looks)>>, String>) {
    let Pane::Screen(screen) = &mut model.pane else { return };
    if screen.of.as_deref() != Some(of) {
        return;
    }
    match shown {
        Ok(lines) => (screen.lines, screen.why) = (lines, None),
        Err(why) => screen.why = Some(why),
    }
}

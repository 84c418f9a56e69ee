//! Decides what each input means: changes the model and returns what to do. No clock, no file, no socket.

mod answers;
mod fields;
mod list;
mod news;
mod pages;
mod pane;
mod sending;

use super::effect::{Effect, UiInput};
use super::keymap::{KeyAction, KeyContext};
use super::model::{Model, Overlay, Pane, StatusNote};
use super::typed::{Click, Mouse, Typed};

/// Handles one input, at this time of the wall clock.
pub(crate) fn update(model: &mut Model, input: UiInput, now: u64) -> Vec<Effect> {
    model.now = now;
    let mut effects = Vec::new();
    match input {
        UiInput::Typed(typed) => take_typed(model, typed, &mut effects),
        UiInput::Resized(columns, rows) => {
            model.size = (columns, rows);
            let at = model.list.at;
            model.select(at);
            pane::look_again(model, &mut effects);
        }
        UiInput::Feed(told) => news::take(model, told, &mut effects),
        UiInput::Answered(answer) => answers::take(model, answer, &mut effects),
        UiInput::Screen { of, shown } => pane::screen(model, &of, shown),
        UiInput::Followed { of, lines } => pages::followed(model, &of, lines),
        UiInput::Back(Ok(said)) => model.note = StatusNote::good(said),
        UiInput::Back(Err(said)) => model.note = StatusNote::bad(said),
        UiInput::Tick => {}
    }
    pane::follow_selection(model, &mut effects);
    effects
}

fn take_typed(model: &mut Model, typed: Typed, effects: &mut Vec<Effect>) {
    match typed {
        Typed::Key(key) => {
            model.note = None;
            let place = model.place();
            let act = model.keymap.act(place, key);
            match place {
                KeyContext::List => list::key(model, act, effects),
                KeyContext::Field => fields::key(model, act, key, effects),
                KeyContext::Page => pages::key(model, act, effects),
                KeyContext::Request => sending::request_key(model, act, effects),
            }
        }
        Typed::Paste(text) => fields::paste(model, &text, effects),
        Typed::Mouse(mouse) => clicked(model, mouse, effects),
        Typed::Focus(focused) => {
            model.focused = focused;
            if focused {
                effects.push(Effect::Calm);
            }
        }
    }
}

/// The mouse selects in the list and scrolls what is in front; it never acts on a session.
fn clicked(model: &mut Model, mouse: Mouse, effects: &mut Vec<Effect>) {
    if !model.mouse {
        return;
    }
    let act = match mouse.what {
        Click::Up => KeyAction::Up,
        Click::Down => KeyAction::Down,
        Click::Left => return pointed(model, mouse),
    };
    match &model.overlay {
        Some(_) if model.place() == KeyContext::Page => pages::key(model, Some(act), effects),
        Some(_) => {}
        None if is_in_pane(model, mouse) => {
            let by = if act == KeyAction::Up { KeyAction::PaneUp } else { KeyAction::PaneDown };
            list::key(model, Some(by), effects);
        }
        None => list::key(model, Some(act), effects),
    }
}

fn is_in_pane(model: &Model, mouse: Mouse) -> bool {
    let pane = model.layout().pane;
    pane.contains((mouse.column, mouse.row).into()) && matches!(model.pane, Pane::Detail(_))
}

fn pointed(model: &mut Model, mouse: Mouse) {
    let list = model.layout().list;
    if model.overlay.is_none() && list.contains((mouse.column, mouse.row).into()) {
        let at = model.list.top + usize::from(mouse.row - list.y);
        if at < model.list.rows.len() {
            model.select(at);
        }
    }
}

/// Opens an overlay in front of the list.
fn open(model: &mut Model, overlay: Overlay) {
    model.overlay = Some(overlay);
}

#[cfg(test)]
mod tests;

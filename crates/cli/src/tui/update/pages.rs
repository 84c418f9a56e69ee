//! Handles keys on pages that are read and at yes-or-no questions.

use super::super::effect::{Effect, UiRequest};
use super::super::keymap::KeyAction;
use super::super::model::{Model, Overlay};
use super::list;

/// How many lines of followed output are kept.
const KEPT: usize = 5000;

/// Handles a key on a page.
pub(super) fn key(model: &mut Model, act: Option<KeyAction>, effects: &mut Vec<Effect>) {
    let page = usize::from(model.size.1.saturating_sub(6)).max(1);
    let by = match act {
        Some(KeyAction::Close) => return close(model, effects),
        Some(KeyAction::Accept) => return accept(model, effects),
        Some(KeyAction::Down) => 1,
        Some(KeyAction::Up) => -1,
        Some(KeyAction::PageDown) => isize::try_from(page).unwrap_or(1),
        Some(KeyAction::PageUp) => -isize::try_from(page).unwrap_or(1),
        _ => return,
    };
    match &mut model.overlay {
        Some(Overlay::Help { top } | Overlay::Locks { top, .. } | Overlay::Purge { top, .. }) => {
            *top = top.saturating_add_signed(by);
        }
        Some(Overlay::Logs(logs)) => {
            logs.up = logs.up.saturating_add_signed(-by).min(logs.lines.len().saturating_sub(1));
        }
        _ => {}
    }
}

fn close(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some(Overlay::Logs(_)) = model.overlay.take() {
        effects.push(Effect::Follow(None));
    }
}

fn accept(model: &mut Model, effects: &mut Vec<Effect>) {
    match &model.overlay {
        Some(Overlay::Confirm { act, of }) => {
            let (act, of) = (*act, of.clone());
            model.overlay = None;
            list::ask(model, act, &of, effects);
        }
        Some(Overlay::Purge { preview: Some(preview), .. }) => {
            if !preview.archived.is_empty() {
                effects.push(Effect::Ask(UiRequest::Purge { dry: false }));
            }
            model.overlay = None;
        }
        Some(Overlay::Help { .. } | Overlay::Locks { .. } | Overlay::Logs(_)) => close(model, effects),
        _ => {}
    }
}

/// Handles output of the followed session.
pub(super) fn followed(model: &mut Model, of: &str, came: Result<Vec<String>, String>) {
    let Some(Overlay::Logs(logs)) = &mut model.overlay else { return };
    if logs.of != of {
        return;
    }
    match came {
        Err(why) => logs.over = Some(why),
        Ok(lines) => {
            // If the user has scrolled up, the view stays where it is.
            if logs.up > 0 {
                logs.up += lines.len();
            }
            logs.lines.extend(lines);
            let over = logs.lines.len().saturating_sub(KEPT);
            logs.lines.drain(..over);
        }
    }
}

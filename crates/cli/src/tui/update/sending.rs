//! Handles messages and answers to requests: an agent is sent nothing but what was typed for it.

use super::super::editor::Editor;
use super::super::effect::{Effect, UiRequest};
use super::super::key::KeyPress;
use super::super::keymap::KeyAction;
use super::super::model::{Model, Overlay, StatusNote};
use pinfold_api::request::Permission;

/// Handles a key in the message editor. An unsent message is kept for the next time.
pub(super) fn message_key(
    model: &mut Model,
    act: Option<KeyAction>,
    key: KeyPress,
    effects: &mut Vec<Effect>,
) {
    let Some(Overlay::Send { of, field }) = &mut model.overlay else { return };
    match act {
        Some(KeyAction::Newline) => field.insert("\n"),
        Some(KeyAction::Accept) if field.text().trim().is_empty() => model.overlay = None,
        Some(act @ (KeyAction::Accept | KeyAction::Close)) => {
            let (id, text) = (of.clone(), field.text().to_owned());
            let name = model.name(&id).to_owned();
            model.overlay = None;
            model.drafts.remove(&id);
            if act == KeyAction::Close {
                if !text.is_empty() {
                    model.drafts.insert(id, text);
                    model.note = StatusNote::good("what you began is kept");
                }
                return;
            }
            // Kept as a draft until the daemon has it.
            model.drafts.insert(id.clone(), text.clone());
            model.note = StatusNote::good(format!("sending to `{name}`"));
            effects.push(Effect::Ask(UiRequest::Send { id, name, text }));
        }
        _ => _ = field.key(key),
    }
}

/// Handles a key at a request to be answered.
pub(super) fn request_key(model: &mut Model, act: Option<KeyAction>, effects: &mut Vec<Effect>) {
    let (answer, always) = match act {
        Some(KeyAction::Allow) => ("allow", false),
        Some(KeyAction::Always) => ("allow", true),
        Some(KeyAction::Deny) => ("deny", false),
        Some(KeyAction::Accept) => {
            if let Some(Overlay::Answer { words, .. }) = &mut model.overlay {
                *words = Some(Editor::default());
            }
            return;
        }
        Some(KeyAction::Close) => return model.overlay = None,
        _ => return,
    };
    answered(model, answer, always, None, effects);
}

/// Handles a key in the text that goes with an answer. The agent gets the text and goes on.
pub(super) fn words_key(model: &mut Model, act: Option<KeyAction>, key: KeyPress, effects: &mut Vec<Effect>) {
    let Some(Overlay::Answer { words: Some(field), .. }) = &mut model.overlay else { return };
    match act {
        Some(KeyAction::Newline) => field.insert("\n"),
        Some(KeyAction::Close) => {
            if let Some(Overlay::Answer { words, .. }) = &mut model.overlay {
                *words = None;
            }
        }
        Some(KeyAction::Accept) => {
            let text = field.text().trim().to_owned();
            answered(model, "allow", false, Some(text).filter(|text| !text.is_empty()), effects);
        }
        _ => _ = field.key(key),
    }
}

/// Answers the request that the user read, whatever the agent asks by now.
fn answered(
    model: &mut Model,
    answer: &str,
    always: bool,
    message: Option<String>,
    effects: &mut Vec<Effect>,
) {
    let Some(Overlay::Answer { of, request, .. }) = model.overlay.take() else { return };
    let name = model.name(&of).to_owned();
    let permission = Permission { answer: answer.to_owned(), id: Some(request), message, always };
    effects.push(Effect::Ask(UiRequest::Answer { id: of, name, permission }));
}

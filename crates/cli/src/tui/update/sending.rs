//! Handles messages and answers to requests: an agent is sent nothing but what was typed for it.

use super::super::editor::Editor;
use super::super::effect::{Effect, Request};
use super::super::key::Key;
use super::super::keymap::Act;
use super::super::model::{Model, Note, Overlay};
use pinfold_api::request::Permission;

/// Handles a key in the message editor. An unsent message is kept for the next time.
pub(super) fn message_key(model: &mut Model, act: Option<Act>, key: Key, effects: &mut Vec<Effect>) {
    let Some(Overlay::Send { of, field }) = &mut model.overlay else { return };
    match act {
        Some(Act::Newline) => field.insert("\n"),
        Some(Act::Accept) if field.text().trim().is_empty() => model.overlay = None,
        Some(act @ (Act::Accept | Act::Close)) => {
            let (id, text) = (of.clone(), field.text().to_owned());
            let name = model.name(&id).to_owned();
            model.overlay = None;
            model.drafts.remove(&id);
            if act == Act::Close {
                if !text.is_empty() {
                    model.drafts.insert(id, text);
                    model.note = Note::good("what you began is kept");
                }
                return;
            }
            // Kept as a draft until the daemon has it.
            model.drafts.insert(id.clone(), text.clone());
            model.note = Note::good(format!("sending to `{name}`"));
            effects.push(Effect::Ask(Request::Send { id, name, text }));
        }
        _ => _ = field.key(key),
    }
}

/// Handles a key at a request to be answered.
pub(super) fn request_key(model: &mut Model, act: Option<Act>, effects: &mut Vec<Effect>) {
    let (answer, always) = match act {
        Some(Act::Allow) => ("allow", false),
        Some(Act::Always) => ("allow", true),
        Some(Act::Deny) => ("deny", false),
        Some(Act::Accept) => {
            if let Some(Overlay::Answer { words, .. }) = &mut model.overlay {
                *words = Some(Editor::default());
            }
            return;
        }
        Some(Act::Close) => return model.overlay = None,
        _ => return,
    };
    answered(model, answer, always, None, effects);
}

/// Handles a key in the text that goes with an answer. The agent gets the text and goes on.
pub(super) fn words_key(model: &mut Model, act: Option<Act>, key: Key, effects: &mut Vec<Effect>) {
    let Some(Overlay::Answer { words: Some(field), .. }) = &mut model.overlay else { return };
    match act {
        Some(Act::Newline) => field.insert("\n"),
        Some(Act::Close) => {
            if let Some(Overlay::Answer { words, .. }) = &mut model.overlay {
                *words = None;
            }
        }
        Some(Act::Accept) => {
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
    effects.push(Effect::Ask(Request::Answer { id: of, name, permission }));
}

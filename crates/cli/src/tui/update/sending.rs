//! Messages and answers to requests: nothing is said to an agent but what was typed for it.

use super::super::editor::Editor;
use super::super::effect::{Effect, Request};
use super::super::key::Key;
use super::super::keymap::Act;
use super::super::model::{Model, Note, Overlay};
use pinfold_api::request::Permission;

/// Keys in the editor of a message. One that was begun is kept for the next time.
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
            // Until the daemon has it, it is not lost here.
            model.drafts.insert(id.clone(), text.clone());
            model.note = Note::good(format!("sending to `{name}`"));
            effects.push(Effect::Ask(Request::Send { id, name, text }));
        }
        _ => _ = field.key(key),
    }
}

/// Keys where a request is answered.
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

/// Keys in the words that go with an answer: they are said to the agent, which goes on.
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

/// The answer is to the request that was read, whatever is asked by now.
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

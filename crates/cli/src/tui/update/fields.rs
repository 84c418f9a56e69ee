//! Handles keys where text is typed. A paste goes into the field, and nowhere else.

use super::super::effect::{Effect, UiRequest};
use super::super::form::Field;
use super::super::key::{Code, KeyPress};
use super::super::keymap::KeyAction;
use super::super::model::{Model, Overlay, StatusNote};
use super::super::palette;
use super::{answers, list, sending};

/// Handles a key in the current field.
pub(super) fn key(model: &mut Model, act: Option<KeyAction>, key: KeyPress, effects: &mut Vec<Effect>) {
    match &mut model.overlay {
        None => search(model, act, key, effects),
        Some(Overlay::Palette { .. }) => palette_key(model, act, key, effects),
        Some(Overlay::New(_)) => form(model, act, key, effects),
        Some(Overlay::Tags { .. }) => tags(model, act, key, effects),
        Some(Overlay::Send { .. }) => sending::message_key(model, act, key, effects),
        Some(Overlay::Answer { .. }) => sending::words_key(model, act, key, effects),
        Some(
            Overlay::Help { .. }
            | Overlay::Locks { .. }
            | Overlay::Confirm { .. }
            | Overlay::Purge { .. }
            | Overlay::Logs(_),
        ) => {}
    }
}

/// Handles a paste: always text, whatever it looks like, and dropped where nothing can be typed.
pub(super) fn paste(model: &mut Model, text: &str, effects: &mut Vec<Effect>) {
    match &mut model.overlay {
        Some(Overlay::Send { field, .. } | Overlay::Answer { words: Some(field), .. }) => field.insert(text),
        Some(Overlay::Tags { field, .. } | Overlay::Palette { field, .. }) => field.insert_line(text),
        Some(Overlay::New(form)) => {
            if let Some(field) = form.editor() {
                field.insert_line(text);
            }
        }
        None => match &mut model.list.search {
            Some(search) if search.typing => {
                search.field.insert_line(text);
                answers::ask_search(model, effects);
                model.arrange();
            }
            Some(_) | None => dropped(model),
        },
        Some(_) => dropped(model),
    }
}

fn dropped(model: &mut Model) {
    model.note = StatusNote::bad("what was pasted is not keys; open a field for it first");
}

fn search(model: &mut Model, act: Option<KeyAction>, key: KeyPress, effects: &mut Vec<Effect>) {
    let Some(search) = &mut model.list.search else { return };
    match act {
        Some(KeyAction::Close) => model.list.search = None,
        Some(KeyAction::Accept) => search.typing = false,
        Some(KeyAction::FieldNext) => return list::key(model, Some(KeyAction::Down), effects),
        Some(KeyAction::FieldBack) => return list::key(model, Some(KeyAction::Up), effects),
        _ => {
            search.field.key(key);
            answers::ask_search(model, effects);
            model.list.at = 0;
            model.list.selected = None;
        }
    }
    model.arrange();
}

fn palette_key(model: &mut Model, act: Option<KeyAction>, key: KeyPress, effects: &mut Vec<Effect>) {
    let Some(Overlay::Palette { field, at }) = &mut model.overlay else { return };
    let found = palette::found(field.text());
    match act {
        Some(KeyAction::Close) => model.overlay = None,
        Some(KeyAction::FieldNext) => *at = (*at + 1).min(found.len().saturating_sub(1)),
        Some(KeyAction::FieldBack) => *at = at.saturating_sub(1),
        Some(KeyAction::Accept) => {
            if let Some(row) = found.get(*at) {
                list::from_palette(model, row.act, effects);
            }
        }
        _ => {
            field.key(key);
            *at = 0;
        }
    }
}

fn tags(model: &mut Model, act: Option<KeyAction>, key: KeyPress, effects: &mut Vec<Effect>) {
    let Some(Overlay::Tags { of, field }) = &mut model.overlay else { return };
    match act {
        Some(KeyAction::Close) => model.overlay = None,
        Some(KeyAction::Accept) => {
            let tags =
                field.text().split([' ', ',']).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
            let (id, of) = (of.clone(), of.clone());
            let name = model.name(&of).to_owned();
            model.overlay = None;
            effects.push(Effect::Ask(UiRequest::Tags { id, name, tags }));
        }
        _ => _ = field.key(key),
    }
}

fn form(model: &mut Model, act: Option<KeyAction>, key: KeyPress, effects: &mut Vec<Effect>) {
    let Some(Overlay::New(form)) = &mut model.overlay else { return };
    let typed = form.dir.text().to_owned();
    match (act, form.field()) {
        (Some(KeyAction::Close), _) => model.overlay = None,
        (Some(KeyAction::Accept), _) if form.waiting => {}
        (Some(KeyAction::Accept), _) => match form.request() {
            Ok(request) => {
                form.waiting = true;
                form.problem = None;
                effects.push(Effect::Ask(UiRequest::New(Box::new(request))));
            }
            Err(problem) => form.problem = Some(problem),
        },
        // Tab completes a directory first; when there is nothing more to complete, it goes to the next field.
        (Some(KeyAction::FieldNext), Field::Directory)
            if key.code == Code::Tab && !form.candidates.contains(&typed) =>
        {
            if is_settled(&typed) {
                form.go(1);
            } else {
                effects.push(Effect::Ask(UiRequest::Complete { path: typed }));
            }
        }
        (Some(KeyAction::FieldNext), _) => form.go(1),
        (Some(KeyAction::FieldBack), _) => form.go(-1),
        (_, Field::Agent | Field::Mode) => {
            if key.code == Code::Left {
                form.choose(-1);
            } else if [Code::Right, Code::Char(' ')].contains(&key.code) {
                form.choose(1);
            }
        }
        (_, _) => {
            form.candidates.clear();
            if let Some(field) = form.editor() {
                field.key(key);
            }
        }
    }
}

/// Whether a directory is meant as it is: one that is empty or ends with a slash.
fn is_settled(path: &str) -> bool {
    path.is_empty() || path.ends_with('/')
}

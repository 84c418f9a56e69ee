//! Handles the results of requests.

use super::super::effect::{Effect, UiReply, UiRequest};
use super::super::model::{Model, Overlay, Pane, StatusNote};
use pinfold_api::object::{Hit, Purged};
use pinfold_api::word::TextKind;

/// Handles an answer.
pub(super) fn take(model: &mut Model, answer: UiReply, effects: &mut Vec<Effect>) {
    match answer {
        UiReply::Nothing => {}
        UiReply::Done(said) => model.note = StatusNote::good(said),
        UiReply::Failed(why) => model.note = StatusNote::bad(why),
        UiReply::Sent { id, said } => {
            model.drafts.remove(&id);
            model.note = StatusNote::good(said);
        }
        UiReply::Archived { id, name } => {
            let undo = model.keymap.word(super::KeyContext::List, super::KeyAction::Undo);
            model.note = StatusNote::good(format!("archived `{name}`; {undo} brings it back"));
            model.archived.push((id, name));
        }
        UiReply::Detail { id, gathered } => {
            let Pane::Detail(detail) = &mut model.pane else { return };
            detail.waiting = false;
            if detail.of.as_deref() == Some(&id) {
                match gathered {
                    Ok(gathered) => detail.gathered = Some(*gathered),
                    Err(why) => model.note = StatusNote::bad(why),
                }
            }
        }
        UiReply::Found { text, hits } => found(model, &text, hits, effects),
        UiReply::Made(made) => self::made(model, made),
        UiReply::Purged { dry, purged } => self::purged(model, dry, purged),
        UiReply::Locks(found) => match (&mut model.overlay, found) {
            (Some(Overlay::Locks { locks, .. }), Ok(found)) => *locks = Some(found),
            (_, Err(why)) => model.note = StatusNote::bad(why),
            (_, Ok(_)) => {}
        },
        UiReply::Completed { path, found } => completed(model, &path, found),
    }
}

/// Handles search results. There is one query at a time; what was typed since is asked next.
fn found(model: &mut Model, text: &str, hits: Result<Vec<Hit>, String>, effects: &mut Vec<Effect>) {
    let Some(search) = &mut model.list.search else { return };
    search.waiting = false;
    match hits {
        Err(why) => model.note = StatusNote::bad(why),
        Ok(hits) if search.field.text() == text => {
            search.found.clear();
            for hit in hits {
                // Text that the list shows anyway is not repeated.
                let told = !matches!(hit.kind, TextKind::Name | TextKind::Why);
                if let Some(session) = hit.session {
                    let excerpt = search.found.entry(session).or_default();
                    if told && excerpt.is_empty() {
                        *excerpt = hit.excerpt;
                    }
                }
            }
        }
        Ok(_) => {}
    }
    ask_search(model, effects);
    model.arrange();
}

/// Asks the daemon to search for the typed text, unless a query is outstanding.
pub(super) fn ask_search(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(search) = &mut model.list.search else { return };
    let text = search.field.text().trim().to_owned();
    if search.waiting || search.asked.as_deref() == Some(&text) {
        return;
    }
    search.found.clear();
    search.asked = Some(text.clone());
    if !text.is_empty() {
        search.waiting = true;
        effects.push(Effect::Ask(UiRequest::Search { text }));
    }
}

fn made(model: &mut Model, made: Result<(String, String), String>) {
    match made {
        Ok((id, name)) => {
            model.overlay = None;
            model.note = StatusNote::good(format!("made `{name}`"));
            model.list.selected = Some(id);
            // If the list does not have it yet, it is selected when the feed tells of it.
            model.arrange_for_new();
        }
        Err(why) => {
            if let Some(Overlay::New(form)) = &mut model.overlay {
                form.waiting = false;
                form.problem = Some(why);
            } else {
                model.note = StatusNote::bad(why);
            }
        }
    }
}

fn purged(model: &mut Model, dry: bool, purged: Result<Purged, String>) {
    match (dry, purged) {
        (true, Ok(would)) => {
            if let Some(Overlay::Purge { preview, .. }) = &mut model.overlay {
                *preview = Some(would);
            }
        }
        (false, Ok(done)) => {
            model.note = StatusNote::good(format!(
                "archived {}, left {} alone",
                done.archived.len(),
                done.skipped.len()
            ));
        }
        (_, Err(why)) => {
            model.overlay = None;
            model.note = StatusNote::bad(why);
        }
    }
}

/// Completes a directory as far as all candidates agree.
fn completed(model: &mut Model, path: &str, found: Vec<String>) {
    let Some(Overlay::New(form)) = &mut model.overlay else { return };
    if form.dir.text() != path {
        return;
    }
    let common = found.iter().skip(1).fold(found.first().cloned().unwrap_or_default(), |common, next| {
        let same = common.chars().zip(next.chars()).take_while(|(one, other)| one == other);
        same.map(|(one, _)| one).collect()
    });
    if common.len() > path.len() {
        form.dir = super::super::editor::Editor::of(&common);
    }
    form.candidates = if found.len() > 1 { found } else { Vec::new() };
}

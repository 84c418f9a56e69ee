//! The first line, with the counts, and the last line, with the latest message or the useful keys.

use super::super::keymap::{KeyAction, KeyContext};
use super::super::model::{ConnectionState, Model, Pane};
use super::super::need::PersonNeed;
use super::super::order::Grouping;
use super::canvas::Canvas;
use super::moments::age;
use super::theme::Role;
use crate::output::columns;

/// With fewer columns only the most useful keys are shown.
const ROOMY: u16 = 100;

/// Paints the first line.
pub(super) fn title(canvas: &mut Canvas<'_>, model: &Model) {
    let area = model.layout().title;
    canvas.ground(area, Role::Bar);
    let mut pieces = vec![(" pinfold ".to_owned(), Role::Strong)];
    pieces.extend(away(model));
    pieces.extend(counts(model));
    canvas.pieces(area.x, area.y, area.width, &pieces);
    let right = right(model);
    let width = u16::try_from(columns(&right)).unwrap_or(u16::MAX);
    let used: usize = pieces.iter().map(|(text, _)| columns(text)).sum();
    if usize::from(area.width) > used + usize::from(width) + 2 {
        canvas.text(area.width - width - 1, area.y, width, &right, Role::Faint);
    }
}

/// How many sessions are in each condition.
fn counts(model: &Model) -> Vec<(String, Role)> {
    let needs: Vec<PersonNeed> =
        model.sessions.all.values().map(|known| model.list.wanted.need(known)).collect();
    let many = |wanted: &[PersonNeed]| needs.iter().filter(|need| wanted.contains(need)).count();
    let all = needs.len() - many(&[PersonNeed::Archived]);
    let mut pieces =
        vec![(format!(" {all} {} ", if all == 1 { "session" } else { "sessions" }), Role::Plain)];
    let told = [
        (many(&[PersonNeed::Asks]), "waiting for you", Role::Asks),
        (many(&[PersonNeed::Failed]), "failed", Role::Bad),
        (many(&[PersonNeed::Held]), "held", Role::Busy),
        (many(&[PersonNeed::Unseen]), "not looked at", Role::Strong),
        (many(&[PersonNeed::Works]), "working", Role::Good),
    ];
    for (count, what, role) in told {
        if count > 0 {
            pieces.push((format!("· {count} {what} "), role));
        }
    }
    pieces
}

/// The state of the connection, if it is not well; it is shown before anything else.
fn away(model: &Model) -> Option<(String, Role)> {
    match &model.link {
        ConnectionState::Up => None,
        ConnectionState::Connecting => Some((" connecting ".to_owned(), Role::Busy)),
        ConnectionState::Away { since, .. } => {
            let minutes = model.now.saturating_sub(*since) / 60_000;
            let time = if minutes == 0 { String::new() } else { format!(" for {minutes} min") };
            Some((format!(" the daemon is away{time} "), Role::Bad))
        }
    }
}

/// How the list is filtered and grouped.
fn right(model: &Model) -> String {
    let wanted = &model.list.wanted;
    let mut words = Vec::new();
    if wanted.needy {
        words.push("only those that need you".to_owned());
    }
    if wanted.archived {
        words.push("with archived ones".to_owned());
    }
    if wanted.grouping != Grouping::Tree {
        words.push(format!("by {}", wanted.grouping.word()));
    }
    words.join(" · ")
}

/// Paints the last line; returns the position of the cursor if a search is being typed there.
pub(super) fn last(canvas: &mut Canvas<'_>, model: &Model) -> Option<(u16, u16)> {
    let area = model.layout().last;
    let noted = model.note.is_some();
    if let Some(search) = model.list.search.as_ref().filter(|search| search.typing || !noted) {
        let (lines, _, column) = search.field.shown();
        let text = lines.first().map(String::as_str).unwrap_or_default();
        let used = canvas.text(area.x, area.y, area.width, "/", Role::Key);
        canvas.text(area.x + used, area.y, area.width.saturating_sub(used), text, Role::Strong);
        if search.typing {
            let x = used + u16::try_from(column).unwrap_or(0);
            return Some((x.min(area.width.saturating_sub(1)), area.y));
        }
        let told =
            format!("  {} found; {} leaves the search", model.list.rows.len(), key(model, KeyAction::Close));
        let x = used + u16::try_from(columns(text)).unwrap_or(0);
        canvas.text(x, area.y, area.width.saturating_sub(x), &told, Role::Faint);
        return None;
    }
    if let Some(note) = &model.note {
        let role = if note.bad { Role::Bad } else { Role::Plain };
        canvas.text(area.x, area.y, area.width, &format!(" {}", note.text), role);
        return None;
    }
    hints(canvas, model);
    None
}

fn key(model: &Model, act: KeyAction) -> String {
    model.keymap.word(KeyContext::List, act)
}

/// The most useful keys for the selection.
fn hints(canvas: &mut Canvas<'_>, model: &Model) {
    let area = model.layout().last;
    let asks = model.selected().is_some_and(|known| known.told.session.request.is_some());
    let mut acts = vec![(KeyAction::Attach, "attach"), (KeyAction::Send, "send")];
    if asks {
        acts.insert(0, (KeyAction::Answer, "answer"));
    }
    if model.selected().is_none() {
        acts.clear();
    }
    acts.extend([(KeyAction::New, "new"), (KeyAction::Search, "search"), (KeyAction::Needy, "needs you")]);
    // Keys left out for lack of room are in the help.
    if area.width >= ROOMY {
        acts.push(match model.pane {
            Pane::Screen(_) => (KeyAction::Screen, "details"),
            Pane::Hidden | Pane::Detail(_) => (KeyAction::Screen, "its terminal"),
        });
        acts.push((KeyAction::Palette, "commands"));
    }
    acts.extend([(KeyAction::Help, "help"), (KeyAction::Quit, "quit")]);
    let mut pieces = Vec::new();
    for (act, what) in acts {
        pieces.push((format!(" {}", key(model, act)), Role::Key));
        pieces.push((format!(" {what} "), Role::Faint));
    }
    canvas.pieces(area.x, area.y, area.width, &pieces);
}

/// How long ago a time was, in brackets.
pub(super) fn since(model: &Model, at: &str) -> String {
    age(model, at).map(|age| format!(" ({age} ago)")).unwrap_or_default()
}

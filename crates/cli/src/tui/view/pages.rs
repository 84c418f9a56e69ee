//! Pages to read: help, locks, the preview of a purge, followed output.

use super::super::keymap::{KeyAction, KeyContext, TABLE};
use super::super::model::{FollowedLogs, Model};
use super::bars::since;
use super::canvas::{Pieces, shown};
use super::page::{Page, foot};
use super::theme::Role;
use pinfold_api::object::{Lock, Purged};
use pinfold_terminal::plain;

/// All keys, by context.
pub(super) fn help(model: &Model, top: usize) -> Page {
    let places = [
        (KeyContext::List, "in the list"),
        (KeyContext::Field, "where you type; what is pasted is never keys"),
        (KeyContext::Page, "on a page"),
        (KeyContext::Request, "where a request is answered"),
    ];
    let mut lines: Vec<Pieces> = Vec::new();
    for (place, title) in places {
        if !lines.is_empty() {
            lines.push(Vec::new());
        }
        lines.push(vec![(title.to_owned(), Role::Strong)]);
        for row in TABLE.iter().filter(|row| row.place == place) {
            let keys = model.keymap.words(place, row.act);
            lines.push(vec![(format!("{keys:<18}"), Role::Key), (row.help.to_owned(), Role::Plain)]);
        }
    }
    lines.push(Vec::new());
    let marks = "! waits for you   ✗ failed   ‖ held   • not looked at   ↻ comes back   ▸ works   * pinned   @ this one";
    lines.push(vec![(marks.to_owned(), Role::Faint)]);
    Page { top, ..Page::new("keys", lines, reading(model)) }
}

fn reading(model: &Model) -> String {
    foot(
        model,
        KeyContext::Page,
        &[(KeyAction::Down, "down"), (KeyAction::Up, "up"), (KeyAction::Close, "closes")],
    )
}

/// The held locks.
pub(super) fn locks(model: &Model, locks: Option<&[Lock]>, top: usize) -> Page {
    let mut lines: Vec<Pieces> = Vec::new();
    match locks {
        None => lines.push(vec![("reading …".to_owned(), Role::Faint)]),
        Some([]) => lines.push(vec![("no lock is held".to_owned(), Role::Faint)]),
        Some(all) => lines.extend(all.iter().flat_map(|lock| one_lock(model, lock))),
    }
    Page { top, ..Page::new("locks", lines, reading(model)) }
}

fn one_lock(model: &Model, lock: &Lock) -> [Pieces; 2] {
    let since = lock.since.as_deref().map(|at| since(model, at)).unwrap_or_default();
    let session = lock.session.as_deref().map(|name| format!(" session {name}")).unwrap_or_default();
    let pid = lock.holder.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string());
    let by = format!("  {} by pid {pid}{session}: {}", lock.holder.verdict, lock.holder.command);
    [vec![(lock.resource.clone(), Role::Strong), (since, Role::Faint)], vec![(by, Role::Plain)]]
}

/// What a purge would archive, and what it would leave.
pub(super) fn purge(model: &Model, preview: Option<&Purged>, top: usize) -> Page {
    let Some(preview) = preview else {
        return Page::new("purge", vec![vec![("looking …".to_owned(), Role::Faint)]], reading(model));
    };
    let mut lines: Vec<Pieces> = Vec::new();
    if preview.archived.is_empty() {
        lines.push(vec![("nothing would be archived".to_owned(), Role::Plain)]);
    }
    for name in &preview.archived {
        lines.push(vec![("archive ".to_owned(), Role::Busy), (name.clone(), Role::Strong)]);
    }
    for skipped in &preview.skipped {
        let why = format!(": {}", skipped.why);
        lines.push(vec![
            ("leave   ".to_owned(), Role::Faint),
            (skipped.name.clone(), Role::Plain),
            (why, Role::Faint),
        ]);
    }
    let acts = [(KeyAction::Accept, "archive them"), (KeyAction::Close, "leave all as it is")];
    Page {
        top,
        ..Page::new(
            format!("purge: {} of them", preview.archived.len()),
            lines,
            foot(model, KeyContext::Page, &acts),
        )
    }
}

/// Followed output; the last lines unless the user has scrolled up.
pub(super) fn logs(model: &Model, logs: &FollowedLogs) -> Page {
    let seen = usize::from(model.size.1.saturating_sub(5));
    let end = logs.lines.len().saturating_sub(logs.up);
    let from = end.saturating_sub(seen);
    let mut lines: Vec<Pieces> =
        logs.lines.range(from..end).map(|line| vec![(shown(&plain(line)), Role::Plain)]).collect();
    if let Some(over) = &logs.over {
        lines.push(vec![(over.clone(), Role::Bad)]);
    }
    lines.resize_with(seen.max(lines.len()), Vec::new);
    Page::new(format!("output of {}", model.name(&logs.of)), lines, reading(model))
}

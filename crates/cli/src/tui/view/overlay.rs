//! What covers the list: a box in the middle, to type in or to read.

use super::super::editor::Editor;
use super::super::form::{Field, MODES, NewSessionForm};
use super::super::keymap::{KeyAction, KeyContext};
use super::super::model::{Model, Overlay};
use super::super::palette;
use super::canvas::{Canvas, Pieces, folded};
use super::page::{Page, foot};
use super::pages;
use super::theme::Role;
use ratatui_core::layout::Rect;

/// Paints the overlay; returns the position of the cursor.
pub(super) fn overlay(canvas: &mut Canvas<'_>, model: &Model) -> Option<(u16, u16)> {
    let (columns, _) = model.size;
    let inner = usize::from(columns.saturating_sub(8)).min(96);
    let page = match model.overlay.as_ref()? {
        Overlay::Help { top } => pages::help(model, *top),
        Overlay::Locks { locks, top } => pages::locks(model, locks.as_deref(), *top),
        Overlay::Purge { preview, top } => pages::purge(model, preview.as_ref(), *top),
        Overlay::Logs(logs) => pages::logs(model, logs),
        Overlay::Confirm { act, of } => confirm(model, *act, of, inner),
        Overlay::Palette { field, at } => palette_page(model, field, *at),
        Overlay::Send { of, field } => {
            let waits = model.sessions.get(of).is_some_and(|known| known.told.session.request.is_some());
            let note = waits.then_some("It asks something: this message waits until that is answered.");
            let mut page = typed(model, format!("message to {}", model.name(of)), field, note);
            page.lines.resize_with(page.lines.len().max(6), Vec::new);
            page
        }
        Overlay::Tags { of, field } => typed(model, format!("tags of {}", model.name(of)), field, None),
        Overlay::Answer { of, request, words } => answer(model, (of, request), words.as_ref(), inner),
        Overlay::New(form) => form_page(model, form),
    };
    boxed(canvas, model, &page)
}

/// Paints a page in a box.
fn boxed(canvas: &mut Canvas<'_>, model: &Model, page: &Page) -> Option<(u16, u16)> {
    let (columns, rows) = model.size;
    let wide = page.lines.len() > usize::from(rows) / 2;
    let width = columns.saturating_sub(4).min(if wide { columns } else { 100 });
    let most = rows.saturating_sub(2);
    let height = u16::try_from(page.lines.len()).unwrap_or(most).saturating_add(3).min(most);
    let area = Rect::new((columns - width) / 2, (rows - height) / 2, width, height);
    canvas.clear(area);
    frame(canvas, area);
    canvas.text(area.x + 2, area.y, width.saturating_sub(4), &format!(" {} ", page.title), Role::Strong);
    canvas.text(area.x + 2, area.bottom() - 2, width.saturating_sub(4), &page.foot, Role::Faint);
    let inside = Rect::new(area.x + 2, area.y + 1, width.saturating_sub(4), height.saturating_sub(3));
    let top = scrolled(page, usize::from(inside.height));
    canvas.lines(inside, top, &page.lines);
    let (line, column) = page.cursor?;
    let x = inside.x + u16::try_from(column).unwrap_or(0).min(inside.width.saturating_sub(1));
    Some((
        x,
        inside.y + u16::try_from(line.saturating_sub(top)).unwrap_or(0).min(inside.height.saturating_sub(1)),
    ))
}

/// The first visible line, chosen so that the cursor is visible.
fn scrolled(page: &Page, height: usize) -> usize {
    page.cursor.map_or(page.top, |(line, _)| (line + 1).saturating_sub(height))
}

fn frame(canvas: &mut Canvas<'_>, area: Rect) {
    let line = "─".repeat(usize::from(area.width.saturating_sub(2)));
    for (y, left, right) in [(area.y, "┌", "┐"), (area.bottom() - 1, "└", "┘")] {
        canvas.text(area.x, y, area.width, &format!("{left}{line}{right}"), Role::Faint);
    }
    for y in area.y + 1..area.bottom().saturating_sub(1) {
        canvas.text(area.x, y, 1, "│", Role::Faint);
        canvas.text(area.right() - 1, y, 1, "│", Role::Faint);
    }
}

/// A page with one text field.
fn typed(model: &Model, title: String, field: &Editor, note: Option<&str>) -> Page {
    let (texts, row, column) = field.shown();
    let mut lines: Vec<Pieces> = texts.into_iter().map(|text| vec![(text, Role::Plain)]).collect();
    let count = lines.len();
    if let Some(note) = note {
        lines.insert(0, vec![(note.to_owned(), Role::Busy)]);
    }
    let acts =
        [(KeyAction::Accept, "takes it"), (KeyAction::Newline, "new line"), (KeyAction::Close, "closes")];
    let mut page = Page::new(title, lines, foot(model, KeyContext::Field, &acts));
    page.cursor = Some((page.lines.len() - count + row, column));
    page
}

fn confirm(model: &Model, act: KeyAction, of: &str, width: usize) -> Page {
    let name = model.name(of);
    let verb = act.word();
    let text = format!(
        "A turn of `{name}` is under way. To {verb} it now ends the turn; its message is delivered again."
    );
    let foot = foot(
        model,
        KeyContext::Page,
        &[(KeyAction::Accept, &format!("{verb} it")), (KeyAction::Close, "leave it")],
    );
    Page::new(format!("{verb} {name}?"), folded(&text, width, Role::Plain), foot)
}

fn answer(model: &Model, (of, asked): (&str, &str), words: Option<&Editor>, width: usize) -> Page {
    let request = model.sessions.get(of).and_then(|known| known.told.session.request.as_ref());
    // Another request may have taken its place, which the user has not read.
    let mut lines = match request.filter(|request| request.id == asked) {
        Some(request) => folded(&request.title, width, Role::Strong),
        None => vec![vec![("It does not ask this any more.".to_owned(), Role::Faint)]],
    };
    let title = format!("{} asks ({asked})", model.name(of));
    let Some(field) = words else {
        let acts = [
            (KeyAction::Allow, "allow"),
            (KeyAction::Deny, "deny"),
            (KeyAction::Always, "always"),
            (KeyAction::Accept, "with words"),
            (KeyAction::Close, "close"),
        ];
        return Page::new(title, lines, foot(model, KeyContext::Request, &acts));
    };
    lines.extend([Vec::new(), vec![("say with it:".to_owned(), Role::Faint)]]);
    let (texts, row, column) = field.shown();
    let first = lines.len();
    lines.extend(texts.into_iter().map(|text| vec![(text, Role::Plain)]));
    let acts = [(KeyAction::Accept, "allows it with these words"), (KeyAction::Close, "back")];
    let mut page = Page::new(title, lines, foot(model, KeyContext::Field, &acts));
    page.cursor = Some((first + row, column));
    page
}

fn palette_page(model: &Model, field: &Editor, at: usize) -> Page {
    let (texts, _, column) = field.shown();
    let mut lines: Vec<Pieces> = vec![vec![(":".to_owned(), Role::Key), (texts.concat(), Role::Strong)]];
    // The field stays visible, and so does the selected row.
    let seen = usize::from(model.size.1.saturating_sub(8)).max(1);
    let above = (at + 1).saturating_sub(seen);
    for (index, row) in palette::found(field.text()).into_iter().enumerate().skip(above).take(seen) {
        let here = index == at;
        let role = if here { Role::Selected } else { Role::Plain };
        let keys = model.keymap.words(KeyContext::List, row.act);
        lines.push(vec![
            (format!("{:<12}", row.act.word()), role),
            (format!(" {keys:<16}"), Role::Key),
            (row.help.to_owned(), Role::Faint),
        ]);
    }
    let acts = [(KeyAction::Accept, "does it"), (KeyAction::FieldNext, "next"), (KeyAction::Close, "closes")];
    let mut page = Page::new("commands", lines, foot(model, KeyContext::Field, &acts));
    page.cursor = Some((0, column + 1));
    page
}

fn form_page(model: &Model, form: &NewSessionForm) -> Page {
    let fields = form.fields();
    let here = form.field();
    let (mut lines, mut cursor): (Vec<Pieces>, _) = (Vec::new(), None);
    for field in fields {
        let (label, text, column) = match field {
            Field::Agent => ("agent", format!("◂ {} ▸", form.agent()), None),
            Field::Mode => ("mode", format!("◂ {} ▸", MODES[form.mode]), None),
            Field::Command => ("command", form.command.shown().0.concat(), Some(form.command.shown().2)),
            Field::Directory => ("directory", form.dir.shown().0.concat(), Some(form.dir.shown().2)),
            Field::Name => ("name", form.name.shown().0.concat(), Some(form.name.shown().2)),
        };
        let at_it = field == here;
        if let Some(column) = column.filter(|_| at_it) {
            cursor = Some((lines.len(), column + 11));
        }
        let role = if at_it { Role::Strong } else { Role::Plain };
        let hint = if field == Field::Name && text.is_empty() { "made of the directory" } else { "" };
        lines.push(vec![
            (format!("{label:>9}  "), if at_it { Role::Key } else { Role::Faint }),
            (text, role),
            (hint.to_owned(), Role::Faint),
        ]);
    }
    lines.push(Vec::new());
    for candidate in form.candidates.iter().take(8) {
        lines.push(vec![(format!("           {candidate}"), Role::Faint)]);
    }
    if let Some(problem) = &form.problem {
        lines.extend(folded(problem, 90, Role::Bad));
    } else if form.waiting {
        lines.push(vec![("making it …".to_owned(), Role::Faint)]);
    }
    let acts =
        [(KeyAction::Accept, "makes it"), (KeyAction::FieldNext, "next field"), (KeyAction::Close, "closes")];
    let mut page =
        Page::new("a new session", lines, format!("{} · ← → choose", foot(model, KeyContext::Field, &acts)));
    page.cursor = cursor;
    page
}

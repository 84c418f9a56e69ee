//! The details of a session: why, its request, its messages, runs, output and events.

use super::super::keymap::{KeyAction, KeyContext};
use super::super::model::{Detail, Model, SessionDetails};
use super::super::sessions::KnownSession;
use super::bars::since;
use super::canvas::{Canvas, Pieces, folded, shown};
use super::moments::{clock, lasting};
use super::theme::Role;
use super::timeline::runs;
use crate::output::{below_home, names_home, preview};
use pinfold_api::object::{Message, Session};
use pinfold_api::word::MessageState;
use pinfold_terminal::plain;
use ratatui_core::layout::Rect;

/// How many lines of a message, and of an answer, are shown.
const LINES: usize = 6;
/// How many lines of output are shown.
const TAIL: usize = 15;
/// How many events are shown.
const EVENTS: usize = 10;

/// Paints the details.
pub(super) fn detail(canvas: &mut Canvas<'_>, model: &Model, detail: &Detail) {
    let layout = model.layout();
    if layout.pane.height == 0 {
        return;
    }
    let name = model.selected().map(|known| known.told.session.name.as_str()).unwrap_or_default();
    border(canvas, layout.border, name);
    let Some(known) = model.selected() else { return };
    let lines = lines(model, known, detail, usize::from(layout.pane.width));
    canvas.lines(layout.pane, detail.top, &lines);
}

/// The line between the list and the pane, with a title if it is horizontal.
pub(super) fn border(canvas: &mut Canvas<'_>, area: Rect, name: &str) {
    for y in area.y..area.bottom() {
        for x in area.x..area.right() {
            canvas.text(x, y, 1, if area.width > 1 { "─" } else { "│" }, Role::Faint);
        }
    }
    if area.width > 1 && !name.is_empty() {
        canvas.text(area.x + 2, area.y, area.width.saturating_sub(4), &format!(" {name} "), Role::Strong);
    }
}

fn lines(model: &Model, known: &KnownSession, detail: &Detail, width: usize) -> Vec<Pieces> {
    let session = &known.told.session;
    let why = lasting(model, &names_home(&session.why, model.here.home.as_deref()), known.at);
    let mut lines = folded(&format!("{} is {why}.", session.name), width, Role::Strong);
    lines.extend(request(model, session, width));
    lines.extend(facts(model, known));
    let Some(gathered) = detail.gathered.as_ref().filter(|gathered| gathered.session.id == session.id) else {
        if detail.waiting {
            lines.push(vec![("reading …".to_owned(), Role::Faint)]);
        }
        return lines;
    };
    section(&mut lines, "messages", messages(model, gathered, width));
    section(&mut lines, "runs", runs(model, gathered));
    section(&mut lines, "output", output(gathered));
    section(&mut lines, "events", events(model, gathered));
    lines
}

fn section(lines: &mut Vec<Pieces>, head: &str, own: Vec<Pieces>) {
    if !own.is_empty() {
        lines.push(Vec::new());
        lines.push(vec![(head.to_owned(), Role::Faint)]);
        lines.extend(own);
    }
}

/// What the session asks, in its exact words.
fn request(model: &Model, session: &Session, width: usize) -> Vec<Pieces> {
    let Some(request) = &session.request else { return Vec::new() };
    let key = model.keymap.word(KeyContext::List, KeyAction::Answer);
    let more =
        if session.requests > 1 { format!(", and {} more", session.requests - 1) } else { String::new() };
    let head = format!("{} ({}){}{more}:", request.kind, request.id, since(model, &request.since));
    let mut lines = vec![Vec::new(), vec![(format!("asks for {head}"), Role::Asks)]];
    lines.extend(folded(&request.title, width, Role::Strong));
    lines.push(vec![(key, Role::Key), (" answers it".to_owned(), Role::Faint)]);
    lines
}

/// The facts about a session, each with its label.
fn facts(model: &Model, known: &KnownSession) -> Vec<Pieces> {
    let session = &known.told.session;
    let dir = below_home(&session.dir, model.here.home.as_deref());
    let command = session.command.join(" ");
    let mut all =
        vec![("agent", format!("{} · {}", session.agent, session.mode)), ("directory", dir.into_owned())];
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let exit = session.last_exit.as_ref();
    let optional = [
        ("command", some(preview(&command, 200).into_owned())),
        ("account", known.told.account.clone()),
        ("tags", some(session.tags.join(" "))),
        ("status", session.status.clone()),
        ("last exit", exit.map(|exit| format!("{}{}", super::timeline::told(exit), since(model, &exit.at)))),
        ("next", session.next.as_ref().map(|next| format!("{} at {}", next.what, clock(model, &next.at)))),
        ("memory", session.memory_bytes.map(|bytes| memory(bytes, session.memory_limit_bytes))),
        ("cost", known.told.cost.map(|cost| format!("${cost:.2}"))),
    ];
    all.extend(optional.into_iter().filter_map(|(label, text)| Some((label, text?))));
    let line =
        |(label, text): (&str, String)| vec![(format!("{label:>9}  "), Role::Faint), (text, Role::Plain)];
    std::iter::once(Vec::new()).chain(all.into_iter().map(line)).collect()
}

fn memory(bytes: u64, limit: Option<u64>) -> String {
    let limit = limit.map(|limit| format!(" of {}", pinfold_core::words::size(limit))).unwrap_or_default();
    format!("{}{limit}", pinfold_core::words::size(bytes))
}

fn messages(model: &Model, gathered: &SessionDetails, width: usize) -> Vec<Pieces> {
    let mut lines = Vec::new();
    for message in &gathered.messages {
        let (mark, role) = match message.state {
            MessageState::Failed | MessageState::Damaged => ("✗", Role::Bad),
            MessageState::Done => ("✓", Role::Good),
            MessageState::Queued | MessageState::Delivered | MessageState::Other(_) => ("…", Role::Busy),
        };
        let who = message.from.as_deref().unwrap_or("you");
        let head = format!(" {who} {}", clock(model, &message.enqueued_at));
        lines.push(vec![(mark.to_owned(), role), (head, Role::Faint)]);
        lines.extend(some_lines(&message.text, width, Role::Strong));
        lines.extend(answered(message, width));
    }
    lines
}

fn answered(message: &Message, width: usize) -> Vec<Pieces> {
    match (&message.answer, &message.reason, &message.failure) {
        (Some(answer), ..) => some_lines(&plain(answer), width, Role::Plain),
        (None, Some(reason), _) => some_lines(reason, width, Role::Bad),
        (None, None, Some(failure)) => some_lines(&failure.replace('_', " "), width, Role::Bad),
        (None, None, None) => Vec::new(),
    }
}

/// The first lines of a text, indented.
fn some_lines(text: &str, width: usize, role: Role) -> Vec<Pieces> {
    let mut lines = folded(text.trim_end(), width.saturating_sub(2), role);
    let more = lines.len() > LINES;
    lines.truncate(LINES);
    if more {
        lines.push(vec![("…".to_owned(), Role::Faint)]);
    }
    for line in &mut lines {
        line.insert(0, ("  ".to_owned(), Role::Plain));
    }
    lines
}

fn output(gathered: &SessionDetails) -> Vec<Pieces> {
    let from = gathered.log.len().saturating_sub(TAIL);
    let line = |text: &str| vec![(shown(&plain(text)), Role::Plain)];
    gathered.log[from..].iter().map(|log| line(log.text.trim_end())).collect()
}

fn events(model: &Model, gathered: &SessionDetails) -> Vec<Pieces> {
    let from = gathered.events.len().saturating_sub(EVENTS);
    let line = |event: &pinfold_api::object::Event| {
        let why = event.why.as_deref().unwrap_or_default();
        let kind = event.kind.word();
        vec![
            (format!("{} ", clock(model, &event.at)), Role::Faint),
            (format!("{kind} "), Role::Plain),
            (why.to_owned(), Role::Faint),
        ]
    };
    gathered.events[from..].iter().map(line).collect()
}

//! The list: columns by worth, group headings, and what to do if it is empty.

use super::super::keymap::{KeyAction, KeyContext};
use super::super::model::{ConnectionState, Model};
use super::super::order::ListRow;
use super::canvas::Canvas;
use super::row::{COLUMNS, cells, role};
use super::theme::Role;
use crate::output::{Worth, below_home, columns, cut_front, fit};
use pinfold_core::visible::visible_line;
use ratatui_core::layout::Rect;

const HEADS: [&str; COLUMNS] = ["NAME", "ACTIVITY", "INBOX", "MEMORY", "COST", "DIR", "WHY"];
const WORTH: [Worth; COLUMNS] = [
    Worth::Needed(12),
    Worth::Needed(9),
    Worth::Wanted(3),
    Worth::Wanted(1),
    Worth::Wanted(4),
    Worth::Path(2),
    Worth::Sentence,
];
const NAME: usize = 0;
const ACTIVITY: usize = 1;
const INBOX: usize = 2;
const MEMORY: usize = 3;
const COST: usize = 4;
const DIR: usize = 5;
const WHY: usize = 6;
/// The length of `archived 11-15`; no age is longer.
const LONGEST_ACTIVITY: usize = 14;
/// A blank and `1000 MiB`, after the sparkline.
const LONGEST_SIZE: usize = 9;
/// The length of `$999.99`.
const LONGEST_COST: usize = 7;
/// A mark for a pin or the UI's own session, and the sign of the need.
const GUTTER: u16 = 3;
/// No name gets more columns than this.
const LONGEST_NAME: usize = 40;

/// Paints the list.
pub(super) fn list(canvas: &mut Canvas<'_>, model: &Model) {
    let layout = model.layout();
    let area = layout.list;
    if model.list.rows.is_empty() {
        return empty(canvas, model, area);
    }
    let shown: Vec<(usize, &ListRow)> =
        model.list.rows.iter().enumerate().skip(model.list.top).take(usize::from(area.height)).collect();
    let widths = widths(model, usize::from(area.width.saturating_sub(GUTTER)));
    heads(canvas, layout.heads, &widths);
    for ((at, row), y) in shown.into_iter().zip(area.y..) {
        let line = Rect::new(area.x, y, area.width, 1);
        match row {
            ListRow::Head { label, count, folded } => {
                let sign = if *folded { "▸" } else { "▾" };
                let label = below_home(label, model.here.home.as_deref());
                canvas.text(line.x, y, line.width, &format!("{sign} {label} ({count})"), Role::Strong);
            }
            ListRow::Session { id, depth } => session(canvas, model, (id, *depth), line, &widths),
        }
        if at == model.list.at {
            canvas.ground(line, Role::Selected);
        }
    }
}

type Widths = [Option<usize>; COLUMNS];

/// The width of each column. All rows count, so that columns do not move while the list is scrolled; what
/// changes with the clock has a fixed width, so that they do not move with time either.
fn widths(model: &Model, width: usize) -> Widths {
    let mut natural: [usize; COLUMNS] = std::array::from_fn(|at| HEADS[at].len());
    natural[ACTIVITY] = LONGEST_ACTIVITY;
    let mut used = [false; COLUMNS];
    let readings = model.sessions.all.values().map(|known| known.memory.len()).max().unwrap_or(0);
    used[MEMORY] = readings > 0;
    natural[MEMORY] = natural[MEMORY].max(readings + LONGEST_SIZE);
    for row in &model.list.rows {
        let ListRow::Session { id, depth } = row else { continue };
        let Some(known) = model.sessions.get(id) else { continue };
        let session = &known.told.session;
        let wide = |text: &str| columns(&visible_line(text));
        let inbox = session.inbox;
        used[INBOX] |= inbox.queued + inbox.in_flight + inbox.failed > 0;
        used[COST] |= known.told.cost.is_some();
        natural[NAME] = natural[NAME].max(wide(&session.name) + 2 * depth);
        natural[DIR] = natural[DIR].max(wide(&below_home(&session.dir, model.here.home.as_deref())));
        natural[WHY] = natural[WHY].max(wide(&session.why));
    }
    natural[NAME] = natural[NAME].min(LONGEST_NAME);
    natural[COST] = LONGEST_COST;
    used[DIR] = true;
    // A column without contents takes no room.
    let shown = |at: usize| used[at] || matches!(at, NAME | ACTIVITY | WHY);
    let worth = std::array::from_fn(|at| if shown(at) { WORTH[at] } else { Worth::Extra });
    let natural = std::array::from_fn(|at| if shown(at) { natural[at] } else { usize::from(u16::MAX) });
    fit(&worth, &natural, width)
}

fn heads(canvas: &mut Canvas<'_>, area: Rect, widths: &Widths) {
    let mut x = area.x + GUTTER;
    for (head, width) in HEADS.iter().zip(widths) {
        let Some(width) = width.map(narrow) else { continue };
        if area.height > 0 {
            canvas.text(x, area.y, width.min(area.right().saturating_sub(x)), head, Role::Faint);
        }
        x += width + 2;
    }
}

fn narrow(width: usize) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}

fn session(canvas: &mut Canvas<'_>, model: &Model, (id, depth): (&str, usize), line: Rect, widths: &Widths) {
    let Some(known) = model.sessions.get(id) else { return };
    let need = model.list.wanted.need(known);
    let front = match (model.is_own(&known.told.session), model.list.wanted.pins.contains(id)) {
        (true, _) => "@",
        (false, true) => "*",
        (false, false) => " ",
    };
    canvas.text(line.x, line.y, 1, front, Role::Key);
    canvas.text(line.x + 1, line.y, 1, need.mark(), role(need));
    let cells = cells(model, known, depth);
    let mut x = line.x + GUTTER;
    for at in 0..COLUMNS {
        let Some(width) = widths[at] else { continue };
        let room = narrow(width).min(line.right().saturating_sub(x));
        let text = &cells.texts[at];
        let is_path = matches!(WORTH[at], Worth::Path(_)) && columns(text) > width;
        let cut = is_path.then(|| cut_front(text, width));
        canvas.text(x, line.y, room, cut.as_ref().unwrap_or(text), cells.roles[at]);
        x = x.saturating_add(narrow(width)).saturating_add(2);
    }
}

/// An empty list: why, and what to do next.
fn empty(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let key = |act| model.keymap.word(KeyContext::List, act);
    let lines: Vec<String> = match (&model.link, model.list.search.is_some(), model.list.wanted.needy) {
        (ConnectionState::Connecting, ..) => vec!["looking for the daemon".to_owned()],
        (ConnectionState::Away { .. }, ..) => {
            vec!["the daemon is away; this goes on when it is back".to_owned()]
        }
        (ConnectionState::Up, true, _) => {
            vec!["nothing has these words".to_owned(), format!("{} leaves the search", key(KeyAction::Close))]
        }
        (ConnectionState::Up, false, true) => {
            vec!["no session needs you".to_owned(), format!("{} shows all", key(KeyAction::Needy))]
        }
        (ConnectionState::Up, false, false) => vec![
            "No sessions yet.".to_owned(),
            String::new(),
            format!("{}  makes one: an agent, a directory, and it is kept alive", key(KeyAction::New)),
            format!("{}  shows every key", key(KeyAction::Help)),
            String::new(),
            "Or in a shell:  pinfold new NAME --agent claude --dir .".to_owned(),
        ],
    };
    for (line, y) in lines.iter().zip(area.y + 1..area.bottom()) {
        canvas.text(area.x + GUTTER, y, area.width.saturating_sub(GUTTER), line, Role::Plain);
    }
}

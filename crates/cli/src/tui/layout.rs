//! Divides the screen: title, list, pane, last line.

use ratatui_core::layout::Rect;

/// With at least this many columns the pane is beside the list, otherwise below it.
const BESIDE: u16 = 150;
/// With fewer rows there is no pane below the list.
const BELOW: u16 = 16;

/// The areas of the screen. An area without room has no height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) title: Rect,
    /// The column headings.
    pub(crate) heads: Rect,
    pub(crate) list: Rect,
    /// The line between the list and the pane, with the pane's title.
    pub(crate) border: Rect,
    pub(crate) pane: Rect,
    pub(crate) last: Rect,
}

/// Divides a screen of this many columns and rows, with or without a pane.
pub(crate) fn layout((columns, rows): (u16, u16), with_pane: bool) -> Layout {
    let line = |y: u16| Rect::new(0, y.min(rows), columns, u16::from(y < rows));
    let middle = rows.saturating_sub(3);
    let none = Rect::new(0, 0, 0, 0);
    let (mut list, mut border, mut pane) = (Rect::new(0, 2.min(rows), columns, middle), none, none);
    if with_pane {
        if columns >= BESIDE {
            let right = columns * 2 / 5;
            list.width = columns - right - 1;
            border = Rect::new(list.width, 1, 1, rows.saturating_sub(2));
            pane = Rect::new(list.width + 2, 1, right.saturating_sub(1), rows.saturating_sub(2));
        } else if rows >= BELOW {
            let below = middle / 2;
            list.height = middle - below;
            border = Rect::new(0, 2 + list.height, columns, 1);
            pane = Rect::new(1, 3 + list.height, columns.saturating_sub(1), below.saturating_sub(1));
        }
    }
    let heads = Rect::new(0, 1.min(rows), list.width, u16::from(rows > 1));
    Layout { title: line(0), heads, list, border, pane, last: line(rows.saturating_sub(1)) }
}

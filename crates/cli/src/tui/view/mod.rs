//! Turns the model into a frame. Pure: the same model and size make the same frame.

mod bars;
mod canvas;
mod detail;
mod list;
mod moments;
mod overlay;
mod page;
mod pages;
mod row;
mod screen;
mod settled;
mod theme;
mod timeline;

use super::model::{Model, Pane};
use canvas::Canvas;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

pub(crate) use theme::Theme;

/// A frame, and the position of the cursor while something is typed.
pub(crate) struct UiFrame {
    pub(crate) buffer: Buffer,
    pub(crate) cursor: Option<(u16, u16)>,
}

/// The smallest terminal on which anything is painted.
const SMALLEST: (u16, u16) = (20, 4);

/// Paints the model.
pub(crate) fn view(model: &Model, theme: Theme) -> UiFrame {
    let (columns, rows) = model.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    let mut canvas = Canvas { buffer: &mut buffer, theme };
    if columns < SMALLEST.0 || rows < SMALLEST.1 {
        canvas.text(0, 0, columns, "too small", theme::Role::Plain);
        return UiFrame { buffer, cursor: None };
    }
    bars::title(&mut canvas, model);
    list::list(&mut canvas, model);
    match &model.pane {
        Pane::Hidden => {}
        Pane::Detail(detail) => detail::detail(&mut canvas, model, detail),
        Pane::Screen(screen) => screen::screen(&mut canvas, model, screen),
    }
    let typed = bars::last(&mut canvas, model);
    let cursor = overlay::overlay(&mut canvas, model).or(typed);
    UiFrame { buffer, cursor }
}

/// The text of a frame, without trailing blanks.
pub(crate) fn text(frame: &UiFrame) -> Vec<String> {
    let area = frame.buffer.area;
    let mut lines = Vec::with_capacity(usize::from(area.height));
    for y in 0..area.height {
        let (mut line, mut x) = (String::new(), 0);
        while x < area.width {
            let symbol = frame.buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(crate::output::columns(symbol)).unwrap_or(1).max(1);
        }
        line.truncate(line.trim_end().len());
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests;

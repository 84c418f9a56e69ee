//! A session's terminal in the pane: with its own colours, without its sequences.

use super::super::model::{Model, WatchedScreen};
use super::canvas::Canvas;
use super::detail::border;
use super::theme::Role;
use pinfold_terminal::{Colour, Looks};
use ratatui_core::style::{Color, Modifier, Style};

/// Paints the terminal.
pub(super) fn screen(canvas: &mut Canvas<'_>, model: &Model, screen: &WatchedScreen) {
    let layout = model.layout();
    if layout.pane.height == 0 {
        return;
    }
    let name = screen.of.as_deref().map(|id| model.name(id)).unwrap_or_default();
    border(canvas, layout.border, &format!("{name}: its terminal, read only"));
    let area = layout.pane;
    if let Some(why) = &screen.why {
        canvas.text(area.x, area.y, area.width, why, Role::Faint);
        return;
    }
    for (line, y) in screen.lines.iter().zip(area.y..area.bottom()) {
        let mut x = area.x;
        for (text, look) in line {
            x += canvas.styled(x, y, area.right().saturating_sub(x), text, style(*look));
        }
    }
}

fn style(look: Looks) -> Style {
    let mut style = Style::new();
    style = colour(look.foreground).map_or(style, |colour| style.fg(colour));
    style = colour(look.background).map_or(style, |colour| style.bg(colour));
    let switches = [
        (look.bold, Modifier::BOLD),
        (look.faint, Modifier::DIM),
        (look.italic, Modifier::ITALIC),
        (look.inverse, Modifier::REVERSED),
        (look.hidden, Modifier::HIDDEN),
        (look.struck, Modifier::CROSSED_OUT),
        (look.underlined, Modifier::UNDERLINED),
    ];
    for (on, modifier) in switches {
        if on {
            style = style.add_modifier(modifier);
        }
    }
    style
}

fn colour(colour: Colour) -> Option<Color> {
    match colour {
        Colour::Plain => None,
        Colour::Numbered(number) => Some(Color::Indexed(number)),
        Colour::Mixed(red, green, blue) => Some(Color::Rgb(red, green, blue)),
    }
}

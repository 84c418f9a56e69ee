//! How things look: a few roles, painted with the 16 colours of the terminal's own theme, so that they are
//! readable on light and dark backgrounds. Every role also differs by bold, faint or reversed, so nothing
//! depends on colour alone.

use ratatui_core::style::{Color, Modifier, Style};

/// What a piece of text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Faint,
    Strong,
    /// It waits for a person.
    Asks,
    Good,
    Busy,
    Bad,
    /// A name or a key.
    Key,
    /// The selected row.
    Selected,
    /// A bar at the top or bottom edge.
    Bar,
}

/// Which colours to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) light: bool,
    /// Whether there are more colours than the theme's 16.
    pub(crate) rich: bool,
}

impl Theme {
    /// The style of a role.
    pub(crate) fn style(self, role: Role) -> Style {
        let plain = Style::new();
        match role {
            Role::Plain => plain,
            Role::Faint => plain.add_modifier(Modifier::DIM),
            Role::Strong => plain.add_modifier(Modifier::BOLD),
            Role::Asks => plain.fg(Color::Magenta).add_modifier(Modifier::BOLD),
            Role::Good => plain.fg(Color::Green),
            Role::Busy => plain.fg(if self.light { Color::Blue } else { Color::Yellow }),
            Role::Bad => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
            Role::Key => plain.fg(Color::Cyan).add_modifier(Modifier::BOLD),
            Role::Selected if !self.rich => plain.add_modifier(Modifier::REVERSED),
            Role::Selected => {
                plain.bg(Color::Indexed(if self.light { 254 } else { 237 })).add_modifier(Modifier::BOLD)
            }
            Role::Bar if !self.rich => plain.add_modifier(Modifier::REVERSED),
            Role::Bar => plain.bg(Color::Indexed(if self.light { 252 } else { 236 })),
        }
    }
}

//! The size of a terminal, within bounds.

/// How many lines and columns a terminal has. Never zero, never more than [`Size::MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
}

impl Size {
    /// More lines or columns than any screen has: what memory is bounded by.
    pub const MOST: u16 = 1000;

    /// A size that can be: zero, which is what a terminal says that does not know, becomes 24 by 80.
    #[must_use]
    pub fn new(rows: u16, columns: u16) -> Size {
        let fit = |count: u16, usual: u16| if count == 0 { usual } else { count.min(Size::MOST) };
        Size { rows: fit(rows, 24), columns: fit(columns, 80) }
    }

    /// Lines.
    #[must_use]
    pub fn rows(self) -> u16 {
        self.rows
    }

    /// Columns.
    #[must_use]
    pub fn columns(self) -> u16 {
        self.columns
    }
}

impl Default for Size {
    fn default() -> Size {
        Size::new(0, 0)
    }
}

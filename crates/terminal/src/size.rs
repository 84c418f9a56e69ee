//! The size of a terminal, within bounds.

/// Lines and columns of a terminal. Never zero, never more than [`Size::MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
}

impl Size {
    /// More lines or columns than any real screen has; bounds the memory.
    pub const MOST: u16 = 1000;

    /// Makes a usable size: a zero, sent by a terminal that does not know its size, becomes 24 lines or 80
    /// columns.
    #[must_use]
    pub fn new(rows: u16, columns: u16) -> Size {
        let fit = |count: u16, usual: u16| if count == 0 { usual } else { count.min(Size::MOST) };
        Size { rows: fit(rows, 24), columns: fit(columns, 80) }
    }

    /// Returns the number of lines.
    #[must_use]
    pub fn rows(self) -> u16 {
        self.rows
    }

    /// Returns the number of columns.
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

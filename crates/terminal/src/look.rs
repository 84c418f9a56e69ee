//! How a piece of text looks, for whoever paints it with means of its own.

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// That of the terminal.
    Plain,
    /// One of 256; the first 16 are the theme's.
    Numbered(u8),
    /// Red, green and blue.
    Mixed(u8, u8, u8),
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Look {
    pub foreground: Colour,
    pub background: Colour,
    pub bold: bool,
    pub faint: bool,
    pub italic: bool,
    pub reversed: bool,
    pub hidden: bool,
    pub struck: bool,
    pub underlined: bool,
}

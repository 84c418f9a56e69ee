//! How characters look, for callers that draw them elsewhere.

/// A colour, as a program chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// The terminal's default colour.
    Plain,
    /// One of 256; the first 16 are the terminal's palette.
    Numbered(u8),
    /// Red, green and blue.
    Mixed(u8, u8, u8),
}

/// How characters look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    /// The colour of the characters.
    pub foreground: Colour,
    /// The colour behind the characters.
    pub background: Colour,
    /// Heavier than usual.
    pub bold: bool,
    /// Paler than usual.
    pub faint: bool,
    /// Slanted.
    pub italic: bool,
    /// With a line below, of any style.
    pub underlined: bool,
    /// With foreground and background exchanged.
    pub inverse: bool,
    /// Not visible, though present.
    pub hidden: bool,
    /// With a line through it.
    pub struck: bool,
}

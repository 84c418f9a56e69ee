//! How characters look, for whoever draws them elsewhere.

/// A colour, as programs choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// That of the terminal.
    Plain,
    /// One of 256; the first 16 are the terminal's own.
    Numbered(u8),
    /// Of red, green and blue.
    Mixed(u8, u8, u8),
}

/// How characters look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looks {
    /// The colour of the characters.
    pub foreground: Colour,
    /// What is behind them.
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
    /// There, and not to be seen.
    pub hidden: bool,
    /// With a line through it.
    pub struck: bool,
}

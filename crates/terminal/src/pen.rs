//! How characters look: colours and attributes, as `ESC [ ... m` sets them.

use crate::looks::{Colour, Looks};
use std::io::Write;

/// The looks of what is printed next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pen {
    foreground: Colour,
    background: Colour,
    attributes: u16,
}

/// Attributes that are switched: their bit, and the numbers that set and clear them.
const SWITCHES: [(u16, u16, u16); 8] =
    [(1, 1, 22), (2, 2, 22), (4, 3, 23), (8, 5, 25), (16, 7, 27), (32, 8, 28), (64, 9, 29), (128, 53, 55)];
/// Bits for the style of underlining, 1 to 5.
const UNDERLINE: u16 = 0b111 << 8;

impl Pen {
    pub(crate) const PLAIN: Pen = Pen { foreground: Colour::Plain, background: Colour::Plain, attributes: 0 };

    /// Returns these looks in their public form.
    pub(crate) fn looks(self) -> Looks {
        let on = |bit: u16| self.attributes & bit != 0;
        Looks {
            foreground: self.foreground,
            background: self.background,
            bold: on(1),
            faint: on(2),
            italic: on(4),
            underlined: on(UNDERLINE),
            inverse: on(16),
            hidden: on(32),
            struck: on(64),
        }
    }

    /// Returns the looks of what is erased with this pen.
    pub(crate) fn background_only(self) -> Pen {
        Pen { background: self.background, ..Pen::PLAIN }
    }

    /// Applies the numbers of one sequence.
    pub(crate) fn select<'a>(&mut self, mut groups: impl Iterator<Item = &'a [u16]>) {
        while let Some(group) = groups.next() {
            match *group {
                [38 | 48, _, ..] => self.colour(group[0], group_colour(group)),
                [number @ (38 | 48)] => {
                    let colour = next_colour(&mut groups);
                    self.colour(number, colour);
                }
                // The colour of the underline is not kept; its numbers are skipped.
                [58] => _ = next_colour(&mut groups),
                [4, style, ..] => self.underline(style.min(5)),
                [number, ..] => self.number(number),
                [] => {}
            }
        }
    }

    fn number(&mut self, number: u16) {
        match number {
            0 => *self = Pen::PLAIN,
            4 => self.underline(1),
            21 => self.underline(2),
            24 => self.underline(0),
            30..=37 => self.foreground = Colour::Numbered((number - 30) as u8),
            39 => self.foreground = Colour::Plain,
            40..=47 => self.background = Colour::Numbered((number - 40) as u8),
            49 => self.background = Colour::Plain,
            90..=97 => self.foreground = Colour::Numbered((number - 90 + 8) as u8),
            100..=107 => self.background = Colour::Numbered((number - 100 + 8) as u8),
            _ => self.switch(number),
        }
    }

    fn switch(&mut self, number: u16) {
        for (bit, on, off) in SWITCHES {
            if number == on || (number == 6 && on == 5) {
                self.attributes |= bit;
            } else if number == off {
                self.attributes &= !bit;
            }
        }
    }

    fn underline(&mut self, style: u16) {
        self.attributes = (self.attributes & !UNDERLINE) | style << 8;
    }

    fn colour(&mut self, which: u16, colour: Option<Colour>) {
        let Some(colour) = colour else { return };
        if which == 38 {
            self.foreground = colour;
        } else {
            self.background = colour;
        }
    }

    /// Writes the sequence that gives a terminal these looks, whatever its previous ones.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[0");
        for (bit, on, _) in SWITCHES {
            if self.attributes & bit != 0 {
                _ = write!(out, ";{on}");
            }
        }
        match (self.attributes & UNDERLINE) >> 8 {
            0 => {}
            1 => out.extend_from_slice(b";4"),
            style => _ = write!(out, ";4:{style}"),
        }
        self.foreground.write(out, 30);
        self.background.write(out, 40);
        out.push(b'm');
    }
}

impl Colour {
    fn write(self, out: &mut Vec<u8>, base: u16) {
        match self {
            Colour::Plain => {}
            Colour::Numbered(number @ 0..8) => _ = write!(out, ";{}", base + u16::from(number)),
            Colour::Numbered(number @ 8..16) => _ = write!(out, ";{}", base + 52 + u16::from(number)),
            Colour::Numbered(number) => _ = write!(out, ";{};5;{number}", base + 8),
            Colour::Mixed(red, green, blue) => _ = write!(out, ";{};2;{red};{green};{blue}", base + 8),
        }
    }
}

/// Reads a colour from one group: `38:5:n`, `38:2:r:g:b` or `38:2:space:r:g:b`.
fn group_colour(group: &[u16]) -> Option<Colour> {
    match *group {
        [_, 5, number, ..] => Some(Colour::Numbered(number as u8)),
        [_, 2, red, green, blue] | [_, 2, _, red, green, blue, ..] => {
            Some(Colour::Mixed(red as u8, green as u8, blue as u8))
        }
        _ => None,
    }
}

/// Reads a colour from the groups that follow: `38;5;n` or `38;2;r;g;b`.
fn next_colour<'a>(groups: &mut impl Iterator<Item = &'a [u16]>) -> Option<Colour> {
    let mut next = || groups.next().and_then(|group| group.first().copied());
    match next()? {
        5 => Some(Colour::Numbered(next()? as u8)),
        2 => Some(Colour::Mixed(next()? as u8, next()? as u8, next()? as u8)),
        _ => None,
    }
}

//! Passes over lines that scroll away before the end of the same piece of output: all that stays of them is the pen.
//!
//! Only plain lines are passed over: text, ends of lines, and sequences that choose looks or erase a part of a line. What follows them
//! is followed as usual, so the screen is the same in the end; it costs less to get there.

use crate::terminal::Terminal;

/// A shorter piece is not worth a look.
const WORTH_IT: usize = 4 << 10;
/// How many characters are tried to find out that no sequence is open.
const TRIES: usize = 16;

/// What a byte of plain output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    /// Moves in its line, or is a part of a character.
    Inside,
    End,
    Escape,
    /// May do anything.
    Other,
}

/// How far a piece of output is plain.
#[derive(Debug, Default)]
struct Plain {
    /// Its length.
    length: usize,
    /// How many lines end in it.
    ends: usize,
    /// The offset after the last letter.
    letter: usize,
}

impl Terminal {
    /// Follows the beginning of the output, or passes over it; returns the rest.
    pub(crate) fn skim<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let rows = self.screen.size.rows;
        let whole = self.screen.grid.region == (0, rows - 1) && self.screen.scrolled.is_none();
        if bytes.len() < WORTH_IT || !whole {
            return bytes;
        }
        let (rest, stands) = self.find_text(bytes);
        if !stands {
            return rest;
        }
        let plain = Plain::of(rest);
        let Some((to, ends)) = last_lines(&rest[..plain.length], usize::from(rows)) else { return rest };
        // The cursor must reach the last line before `to`, and the last letter must come after it.
        if plain.ends - ends < usize::from(rows) || plain.letter <= to {
            return rest;
        }
        self.pass_over(&rest[..to]);
        &rest[to..]
    }

    /// Follows the output up to a letter that shows that no sequence is open; returns the rest, and whether there
    /// was such a letter.
    fn find_text<'a>(&mut self, bytes: &'a [u8]) -> (&'a [u8], bool) {
        let mut rest = bytes;
        for _ in 0..TRIES {
            let Some(letter) = rest.iter().position(|byte| kind(*byte) == Kind::Letter) else { break };
            let (before, behind) = rest.split_at(letter);
            self.follow(before);
            let last = self.screen.last.take();
            self.follow(&behind[..1]);
            rest = &behind[1..];
            if self.screen.last.is_some() {
                return (rest, true);
            }
            self.screen.last = last;
        }
        (rest, false)
    }

    /// Leaves pen and cursor as these lines would, none of which stays on the screen.
    fn pass_over(&mut self, lines: &[u8]) {
        let mut rest = &lines[last_reset(lines)..];
        while let Some(at) = rest.iter().position(|byte| kind(*byte) == Kind::Escape) {
            let (sequence, behind) = rest[at..].split_at(sequence(&rest[at..]).unwrap_or(1));
            if sequence.ends_with(b"m") {
                self.follow(sequence);
            }
            rest = behind;
        }
        let cursor = &mut self.screen.grid.cursor;
        (cursor.row, cursor.column, cursor.full) = (self.screen.size.rows - 1, 0, false);
    }
}

impl Plain {
    fn of(bytes: &[u8]) -> Plain {
        let mut plain = Plain::default();
        while let Some(byte) = bytes.get(plain.length) {
            plain.length += match kind(*byte) {
                Kind::Letter => {
                    plain.letter = plain.length + 1;
                    1
                }
                Kind::Inside => 1,
                Kind::End => {
                    plain.ends += 1;
                    1
                }
                Kind::Escape => match sequence(&bytes[plain.length..]) {
                    Some(length) => length,
                    None => break,
                },
                Kind::Other => break,
            };
        }
        plain
    }
}

/// Where the last lines begin that are enough to fill the screen, and how many lines end after that.
fn last_lines(bytes: &[u8], enough: usize) -> Option<(usize, usize)> {
    let ends = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let begins = |at: &usize| *at > 0 && bytes[at - 1] == b'\r';
    let numbered = ends.map(|(at, _)| at).enumerate().skip(enough);
    numbered.filter(|(_, at)| begins(at)).map(|(behind, at)| (at + 1, behind)).next()
}

/// The offset of the last reset of the looks, or 0: looks chosen before it do not matter.
fn last_reset(bytes: &[u8]) -> usize {
    let mut before = bytes;
    while let Some(at) = before.iter().rposition(|byte| kind(*byte) == Kind::Escape) {
        if matches!(&bytes[at..], [_, b'[', b'm', ..] | [_, b'[', b'0', b'm', ..]) {
            return at;
        }
        before = &before[..at];
    }
    0
}

/// The length of a sequence that chooses looks or erases in its line, if it is one and whole.
fn sequence(bytes: &[u8]) -> Option<usize> {
    let numbers = bytes.strip_prefix(b"\x1b[")?;
    let count = numbers.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).count();
    matches!(numbers.get(count)?, b'm' | b'K').then_some(count + 3)
}

const fn kind(byte: u8) -> Kind {
    match byte {
        b' '..=b'~' => Kind::Letter,
        b'\t' | b'\r' | 0x08 | 0x80.. => Kind::Inside,
        b'\n' => Kind::End,
        0x1b => Kind::Escape,
        _ => Kind::Other,
    }
}

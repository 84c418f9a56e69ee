//! The terminal modes that a program sets and that a client joining later must be given too.

use std::io::Write;

/// Private modes that are tracked: their number, and whether they are on in a fresh terminal.
const PRIVATE: [(u16, bool); 17] = [
    (1, false),
    (5, false),
    (7, true),
    (9, false),
    (12, false),
    (25, true),
    (1000, false),
    (1002, false),
    (1003, false),
    (1004, false),
    (1005, false),
    (1006, false),
    (1007, false),
    (1015, false),
    (1016, false),
    (2004, false),
    (2031, false),
];
const WRAP: u16 = 7;
const VISIBLE: u16 = 25;
/// Beyond this, the oldest nested requests for key reports are forgotten.
const MOST_KEYBOARDS: usize = 16;
/// Longer titles are cut.
const LONGEST_TITLE: usize = 256;

/// All modes, and the title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TerminalModes {
    /// One bit for each of `PRIVATE`, set if the mode differs from a fresh terminal.
    changed: u32,
    /// `ESC [ 4 h`: characters are inserted.
    pub(crate) insert: bool,
    /// `ESC =`
    pub(crate) keypad: bool,
    /// `ESC [ n SP q`
    pub(crate) cursor_shape: u16,
    /// `ESC [ > 4 ; n m`
    pub(crate) other_keys: u16,
    /// `ESC [ > n u`, innermost last.
    keyboards: Vec<u16>,
    title: Vec<u8>,
}

impl Default for TerminalModes {
    fn default() -> Self {
        let (keyboards, title) = (Vec::new(), Vec::new());
        TerminalModes {
            changed: 0,
            insert: false,
            keypad: false,
            cursor_shape: 0,
            other_keys: 0,
            keyboards,
            title,
        }
    }
}

impl TerminalModes {
    /// Returns whether a private mode is tracked.
    pub(crate) fn knows(number: u16) -> bool {
        PRIVATE.iter().any(|(known, _)| *known == number)
    }

    /// Switches a private mode; one that is not tracked is ignored.
    pub(crate) fn switch(&mut self, number: u16, on: bool) {
        let known = PRIVATE.iter().enumerate().find(|(_, (known, _))| *known == number);
        if let Some((bit, (_, fresh))) = known {
            let changed = u32::from(on != *fresh) << bit;
            self.changed = self.changed & !(1 << bit) | changed;
        }
    }

    fn is_on(&self, number: u16) -> bool {
        let known = PRIVATE.iter().enumerate().find(|(_, (known, _))| *known == number);
        known.is_some_and(|(bit, (_, fresh))| (self.changed >> bit & 1 == 1) != *fresh)
    }

    pub(crate) fn wraps(&self) -> bool {
        self.is_on(WRAP)
    }

    pub(crate) fn cursor_is_visible(&self) -> bool {
        self.is_on(VISIBLE)
    }

    pub(crate) fn name(&mut self, title: &[u8]) {
        // A title must not end the sequence it will be sent in.
        let plain = title.iter().copied().filter(|byte| *byte >= 0x20 && *byte != 0x7f);
        let text: Vec<u8> = plain.take(LONGEST_TITLE).collect();
        self.title = String::from_utf8_lossy(&text).trim_end_matches('\u{fffd}').as_bytes().to_vec();
    }

    /// The program asks for key reports, until it takes that back.
    pub(crate) fn push_keyboard(&mut self, flags: u16) {
        if self.keyboards.len() == MOST_KEYBOARDS {
            self.keyboards.remove(0);
        }
        self.keyboards.push(flags);
    }

    pub(crate) fn pop_keyboards(&mut self, count: u16) {
        let left = self.keyboards.len().saturating_sub(usize::from(count.max(1)));
        self.keyboards.truncate(left);
    }

    /// Changes the current request for key reports: replaces it, or adds or removes bits.
    pub(crate) fn change_keyboard(&mut self, flags: u16, how: u16) {
        if self.keyboards.is_empty() {
            self.keyboards.push(0);
        }
        if let Some(now) = self.keyboards.last_mut() {
            match how {
                2 => *now |= flags,
                3 => *now &= !flags,
                _ => *now = flags,
            }
        }
    }

    /// Writes what puts a terminal into its fresh state, except that the cursor stays hidden.
    pub(crate) fn write_fresh(out: &mut Vec<u8>) {
        for (number, on) in PRIVATE.iter().filter(|(number, _)| *number != VISIBLE) {
            _ = write!(out, "\x1b[?{number}{}", if *on { 'h' } else { 'l' });
        }
        out.extend_from_slice(b"\x1b[?25l\x1b[4l\x1b>\x1b[0 q\x1b[>4;0m\x1b[<16u");
    }

    /// Writes what sets these modes in a fresh terminal; the cursor is shown last.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (bit, (number, fresh)) in PRIVATE.iter().enumerate() {
            if self.changed >> bit & 1 == 1 && *number != VISIBLE {
                _ = write!(out, "\x1b[?{number}{}", if *fresh { 'l' } else { 'h' });
            }
        }
        if self.insert {
            out.extend_from_slice(b"\x1b[4h");
        }
        if self.keypad {
            out.extend_from_slice(b"\x1b=");
        }
        if self.cursor_shape != 0 {
            _ = write!(out, "\x1b[{} q", self.cursor_shape);
        }
        if self.other_keys != 0 {
            _ = write!(out, "\x1b[>4;{}m", self.other_keys);
        }
        for flags in &self.keyboards {
            _ = write!(out, "\x1b[>{flags}u");
        }
        if !self.title.is_empty() {
            out.extend_from_slice(b"\x1b]2;");
            out.extend_from_slice(&self.title);
            out.push(7);
        }
    }
}

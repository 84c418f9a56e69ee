//! Which sequences of `ESC [` pass.

use super::is_known_mode;
use std::io::Write;

/// What a sequence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    /// A command, or dropped.
    Other,
    /// A question, which the terminal answers as if it were typed.
    Question,
}

/// A sequence without `ESC [` and its last character.
struct Sequence<'a> {
    /// One of `< = > ?`, or none.
    private: &'a [u8],
    numbers: &'a [u8],
    intermediates: &'a [u8],
}

impl<'a> Sequence<'a> {
    fn of(held: &'a [u8]) -> Option<Sequence<'a>> {
        let (private, rest) =
            held.split_at(held.iter().take_while(|byte| (0x3c..0x40).contains(*byte)).count());
        let (numbers, intermediates) =
            rest.split_at(rest.iter().take_while(|byte| (0x30..0x3c).contains(*byte)).count());
        // Anything else is in no order that a terminal knows.
        let ordered = private.len() < 2 && intermediates.iter().all(|byte| (0x20..0x30).contains(byte));
        ordered.then_some(Sequence { private, numbers, intermediates })
    }

    /// The first number; one that is missing is 0, one that is none is no number of ours.
    fn first(&self) -> u16 {
        number(self.numbers.split(|byte| *byte == b';').next().unwrap_or_default())
    }

    fn count(&self) -> usize {
        if self.numbers.is_empty() { 0 } else { self.numbers.split(|byte| *byte == b';').count() }
    }
}

fn number(digits: &[u8]) -> u16 {
    let text = std::str::from_utf8(digits).unwrap_or_default();
    if text.is_empty() { 0 } else { text.parse().unwrap_or(u16::MAX) }
}

/// Passes a sequence, or what of it may pass.
pub(super) fn pass(held: &[u8], last: u8, out: &mut Vec<u8>) -> Is {
    let Some(sequence) = Sequence::of(held) else { return Is::Other };
    if let b'h' | b'l' = last {
        switch(&sequence, last, out);
        return Is::Other;
    }
    let verdict = judge(&sequence, last);
    if verdict.is_some() {
        out.extend_from_slice(b"\x1b[");
        out.extend_from_slice(held);
        out.push(last);
    }
    verdict.unwrap_or(Is::Other)
}

/// What a sequence is, if it may pass.
fn judge(sequence: &Sequence<'_>, last: u8) -> Option<Is> {
    let (first, count) = (sequence.first(), sequence.count());
    let may = |may: bool, is: Is| may.then_some(is);
    match (sequence.private, sequence.intermediates, last) {
        // Looks; the cursor; erasing, inserting and deleting; margins; repeating.
        (b"", b"", b'm' | b'@'..=b'I' | b'K'..=b'M' | b'P' | b'S' | b'X' | b'Z') => Some(Is::Other),
        (b"", b"", b'`' | b'a' | b'b' | b'd' | b'e' | b'f' | b'r') => Some(Is::Other),
        // The scrollback is the terminal's owner's.
        (b"" | b"?", b"", b'J') => may(first < 3 && count <= 1, Is::Other),
        (b"?", b"", b'K') => Some(Is::Other),
        // With more numbers it is a way to follow the mouse that stops the terminal; save and restore are margins.
        (b"", b"", b'T') => may(count <= 1, Is::Other),
        (b"", b"", b's' | b'u') => may(count == 0, Is::Other),
        // The shape of the cursor; a reset of what a program has set.
        (b"", b" ", b'q') | (b"", b"!", b'p') => Some(Is::Other),
        // How keys are reported.
        (b">" | b"<" | b"=", b"", b'u') => Some(Is::Other),
        (b">", b"", b'm') => may(matches!(first, 0 | 4), Is::Other),
        (b"?", b"", b'u') => Some(Is::Question),
        (b"?", b"", b'm') => may(first == 4, Is::Question),
        // What are you, where is the cursor, is this mode on, are you dark.
        (b"" | b">", b"", b'c') | (b">", b"", b'q') => may(first == 0, Is::Question),
        (b"", b"", b'n') => may(matches!(first, 5 | 6), Is::Question),
        (b"?", b"", b'n') => may(matches!(first, 6 | 996), Is::Question),
        (b"" | b"?", b"$", b'p') => Some(Is::Question),
        // Sizes; the stack of titles. Other numbers move and resize the window, or read its title back.
        (b"", b"", b't') => match first {
            14 | 16 | 18 => Some(Is::Question),
            22 | 23 => Some(Is::Other),
            _ => None,
        },
        _ => None,
    }
}

/// Switches the modes that may be switched; a sequence may name several.
fn switch(sequence: &Sequence<'_>, last: u8, out: &mut Vec<u8>) {
    let may = |number: u16| match (sequence.private, sequence.intermediates) {
        // Insert; not the lock of the keyboard, and not what a line end is.
        (b"", b"") => number == 4,
        (b"?", b"") => is_known_mode(number),
        _ => false,
    };
    let all = sequence.numbers.split(|byte| *byte == b';').map(number);
    let passed: Vec<String> = all.filter(|number| may(*number)).map(|number| number.to_string()).collect();
    if !passed.is_empty() {
        out.extend_from_slice(b"\x1b[");
        out.extend_from_slice(sequence.private);
        // A vector takes everything.
        _ = write!(out, "{}{}", passed.join(";"), char::from(last));
    }
}

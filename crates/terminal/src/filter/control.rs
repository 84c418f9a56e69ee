//! Which sequences of `ESC [` may pass.

use super::is_known_mode;
use std::io::Write;

/// The kind of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    /// A command, or a dropped sequence.
    Other,
    /// A question, which the terminal answers as if typed.
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
        // Any other order is unknown to terminals.
        let ordered = private.len() < 2 && intermediates.iter().all(|byte| (0x20..0x30).contains(byte));
        ordered.then_some(Sequence { private, numbers, intermediates })
    }

    /// Returns the first number; a missing one is 0, and a malformed one is a number we do not allow.
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

/// Passes a sequence, or the part of it that may pass.
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

/// Returns the kind of a sequence that may pass, `None` for others.
fn judge(sequence: &Sequence<'_>, last: u8) -> Option<Is> {
    let (first, count) = (sequence.first(), sequence.count());
    let may = |may: bool, is: Is| may.then_some(is);
    match (sequence.private, sequence.intermediates, last) {
        // Looks; the cursor; erasing, inserting and deleting; margins; repeating.
        (b"", b"", b'm' | b'@'..=b'I' | b'K'..=b'M' | b'P' | b'S' | b'X' | b'Z') => Some(Is::Other),
        (b"", b"", b'`' | b'a' | b'b' | b'd' | b'e' | b'f' | b'r') => Some(Is::Other),
        // The scrollback belongs to the terminal's owner.
        (b"" | b"?", b"", b'J') => may(first < 3 && count <= 1, Is::Other),
        (b"?", b"", b'K') => Some(Is::Other),
        // With more numbers, `T` is a kind of mouse tracking that blocks the terminal, and `s` and `u` set
        // margins.
        (b"", b"", b'T') => may(count <= 1, Is::Other),
        (b"", b"", b's' | b'u') => may(count == 0, Is::Other),
        // The cursor's shape; a reset of what the program has set.
        (b"", b" ", b'q') | (b"", b"!", b'p') => Some(Is::Other),
        // How keys are reported.
        (b">" | b"<" | b"=", b"", b'u') => Some(Is::Other),
        (b">", b"", b'm') => may(matches!(first, 0 | 4), Is::Other),
        (b"?", b"", b'u') => Some(Is::Question),
        (b"?", b"", b'm') => may(first == 4, Is::Question),
        // Questions: what are you, where is the cursor, is this mode on, is your theme dark.
        (b"" | b">", b"", b'c') | (b">", b"", b'q') => may(first == 0, Is::Question),
        (b"", b"", b'n') => may(matches!(first, 5 | 6), Is::Question),
        (b"?", b"", b'n') => may(matches!(first, 6 | 996), Is::Question),
        (b"" | b"?", b"$", b'p') => Some(Is::Question),
        // Sizes and the title stack. Other numbers move or resize the window, or read its title back.
        (b"", b"", b't') => match first {
            14 | 16 | 18 => Some(Is::Question),
            22 | 23 => Some(Is::Other),
            _ => None,
        },
        _ => None,
    }
}

/// Passes on the modes that may be switched; one sequence may name several.
fn switch(sequence: &Sequence<'_>, last: u8, out: &mut Vec<u8>) {
    let may = |number: u16| match (sequence.private, sequence.intermediates) {
        // Insert mode; not the keyboard lock, and not the meaning of a line end.
        (b"", b"") => number == 4,
        (b"?", b"") => is_known_mode(number),
        _ => false,
    };
    let all = sequence.numbers.split(|byte| *byte == b';').map(number);
    let passed: Vec<String> = all.filter(|number| may(*number)).map(|number| number.to_string()).collect();
    if !passed.is_empty() {
        out.extend_from_slice(b"\x1b[");
        out.extend_from_slice(sequence.private);
        // Writing to a vector cannot fail.
        _ = write!(out, "{}{}", passed.join(";"), char::from(last));
    }
}

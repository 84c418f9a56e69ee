//! Parses a terminal's bytes into keys, pastes, mouse and focus events.
//!
//! A paste is never read as keys: the terminal marks where it begins and ends, and everything between is
//! text, whatever it looks like. Sequences that are not understood are dropped.

use super::key::{Code, KeyPress};

/// One parsed input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    Key(KeyPress),
    Paste(String),
    Mouse(Mouse),
    /// Whether the terminal now has the focus.
    Focus(bool),
}

/// A mouse event, at a column and a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mouse {
    pub(crate) what: Click,
    pub(crate) column: u16,
    pub(crate) row: u16,
}

/// The mouse events that mean something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Click {
    Left,
    Up,
    Down,
}

/// A longer sequence is not a valid one.
const LONGEST: usize = 64;
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Parses bytes that arrive in pieces of any length.
#[derive(Debug, Default)]
pub(crate) struct Typing {
    bytes: Vec<u8>,
    pasting: bool,
}

/// The result of parsing the next input.
enum Next {
    /// It is this many bytes long, and means this.
    Is(usize, Option<Typed>),
    /// More bytes are needed.
    More,
}

impl Typing {
    /// Takes bytes that were read, and returns all complete inputs.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Typed> {
        self.bytes.extend_from_slice(bytes);
        let (mut all, mut at) = (Vec::new(), 0);
        loop {
            let rest = &self.bytes[at..];
            let next = if self.pasting { pasted(rest) } else { one(rest) };
            let Next::Is(count, typed) = next else { break };
            at += count;
            match typed {
                // The mark at the beginning of a paste is not an input itself.
                Some(Typed::Paste(text)) if text.is_empty() && !self.pasting => self.pasting = true,
                Some(Typed::Paste(text)) => {
                    self.pasting = false;
                    all.push(Typed::Paste(text));
                }
                typed => all.extend(typed),
            }
        }
        self.bytes.drain(..at);
        all
    }

    /// Whether the bytes left over may be complete as they are: the Esc key.
    pub(crate) fn hangs(&self) -> bool {
        !self.bytes.is_empty() && !self.pasting
    }

    /// Nothing more arrived: what is left over is keys.
    pub(crate) fn settle(&mut self) -> Vec<Typed> {
        if self.pasting || self.bytes.first() != Some(&0x1b) {
            return Vec::new();
        }
        let rest: Vec<u8> = self.bytes.drain(..).skip(1).collect();
        let mut all = vec![Typed::Key(KeyPress::of(Code::Esc))];
        all.extend(self.take(&rest));
        all
    }
}

/// The text up to the end of a paste.
fn pasted(bytes: &[u8]) -> Next {
    let end = bytes.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS);
    let Some(end) = end else { return Next::More };
    let text = String::from_utf8_lossy(&bytes[..end]).replace("\r\n", "\n").replace('\r', "\n");
    Next::Is(end + PASTE_ENDS.len(), Some(Typed::Paste(text)))
}

/// The first input in these bytes.
fn one(bytes: &[u8]) -> Next {
    match bytes {
        [] => Next::More,
        [0x1b] => Next::More,
        [0x1b, b'[', ..] => sequence(bytes),
        [0x1b, b'O'] => Next::More,
        [0x1b, b'O', last, ..] => Next::Is(3, single(*last).map(|code| Typed::Key(KeyPress::of(code)))),
        [0x1b, b']' | b'P' | b'_' | b'^', ..] => answer(bytes),
        [0x1b, 0x1b, ..] => Next::Is(1, Some(Typed::Key(KeyPress::of(Code::Esc)))),
        [0x1b, rest @ ..] => match plain(rest) {
            Some((count, key)) => Next::Is(count + 1, key.map(|key| Typed::Key(key.with_alt()))),
            None => Next::More,
        },
        _ => match plain(bytes) {
            Some((count, key)) => Next::Is(count, key.map(Typed::Key)),
            None => Next::More,
        },
    }
}

/// A character or control character, and its length; `None` if it is incomplete.
fn plain(bytes: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    let first = *bytes.first()?;
    let key = match first {
        b'\r' => KeyPress::of(Code::Enter),
        b'\t' => KeyPress::of(Code::Tab),
        0x08 | 0x7f => KeyPress::of(Code::Backspace),
        0 => KeyPress::char(' ').with_ctrl(),
        1..=26 => KeyPress::char(char::from(b'a' + first - 1)).with_ctrl(),
        27..=31 => KeyPress::char(char::from(b'[' + first - 27)).with_ctrl(),
        _ => return character(bytes),
    };
    Some((1, Some(key)))
}

fn character(bytes: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Some((1, None)),
    };
    let text = bytes.get(..length)?;
    let character = std::str::from_utf8(text).ok().and_then(|text| text.chars().next());
    Some((if character.is_some() { length } else { 1 }, character.map(KeyPress::char)))
}

/// A terminal's answer to a query. The UI sends none, so it is dropped up to its end.
fn answer(bytes: &[u8]) -> Next {
    let ends = |window: &[u8]| window[0] == 0x07 || window == b"\x1b\\";
    match bytes[2..].windows(2).position(ends) {
        Some(at) => Next::Is(2 + at + if bytes[2 + at] == 0x07 { 1 } else { 2 }, None),
        None if bytes.last() == Some(&0x07) => Next::Is(bytes.len(), None),
        None if bytes.len() > LONGEST * LONGEST => Next::Is(bytes.len(), None),
        None => Next::More,
    }
}

/// Parses `ESC [ numbers letter`.
fn sequence(bytes: &[u8]) -> Next {
    let Some(end) = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)).map(|at| at + 2) else {
        return if bytes.len() > LONGEST { Next::Is(bytes.len(), None) } else { Next::More };
    };
    let parameters = String::from_utf8_lossy(&bytes[2..end]);
    Next::Is(end + 1, meaning(&parameters, bytes[end]))
}

fn meaning(parameters: &str, last: u8) -> Option<Typed> {
    if let Some(mouse) = parameters.strip_prefix('<') {
        return clicked(mouse, last).map(Typed::Mouse);
    }
    let mut numbers =
        parameters.split(';').map(|number| number.split(':').next().unwrap_or_default().parse::<u32>());
    let first = numbers.next().and_then(Result::ok);
    let held = numbers.next().and_then(Result::ok).unwrap_or(1).saturating_sub(1);
    let code = match (last, first) {
        (b'I', _) => return Some(Typed::Focus(true)),
        (b'O', _) => return Some(Typed::Focus(false)),
        (b'~', Some(200)) => return Some(Typed::Paste(String::new())),
        (b'~', Some(number)) => numbered(number)?,
        (b'u', Some(number)) => unicode(number)?,
        (b'Z', _) => Code::BackTab,
        (letter, _) => single(letter)?,
    };
    Some(Typed::Key(KeyPress { code, ctrl: held & 4 != 0, alt: held & 2 != 0 }))
}

/// The final letters of cursor keys and of the first function keys.
fn single(letter: u8) -> Option<Code> {
    Some(match letter {
        b'A' => Code::Up,
        b'B' => Code::Down,
        b'C' => Code::Right,
        b'D' => Code::Left,
        b'H' => Code::Home,
        b'F' => Code::End,
        b'M' => Code::Enter,
        b'P'..=b'S' => Code::F(letter - b'P' + 1),
        _ => return None,
    })
}

fn numbered(number: u32) -> Option<Code> {
    Some(match number {
        1 | 7 => Code::Home,
        2 => Code::Insert,
        3 => Code::Delete,
        4 | 8 => Code::End,
        5 => Code::PageUp,
        6 => Code::PageDown,
        11..=15 => Code::F(u8::try_from(number).ok()? - 10),
        17..=21 => Code::F(u8::try_from(number).ok()? - 11),
        23 | 24 => Code::F(u8::try_from(number).ok()? - 12),
        _ => return None,
    })
}

/// A key by its Unicode number, as some terminals report it.
fn unicode(number: u32) -> Option<Code> {
    Some(match number {
        13 => Code::Enter,
        27 => Code::Esc,
        9 => Code::Tab,
        127 => Code::Backspace,
        number => Code::Char(char::from_u32(number)?),
    })
}

/// Parses `button;column;row`, counted from 1; only presses and the wheel mean something.
fn clicked(parameters: &str, last: u8) -> Option<Mouse> {
    let mut numbers = parameters.split(';').map(|number| number.parse::<u16>().ok());
    let (button, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let what = match (button, last) {
        (0, b'M') => Click::Left,
        (64, _) => Click::Up,
        (65, _) => Click::Down,
        _ => return None,
    };
    Some(Mouse { what, column: column.saturating_sub(1), row: row.saturating_sub(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<String> {
        let mut typing = Typing::default();
        let mut all = typing.take(bytes);
        all.extend(typing.settle());
        let shown = |typed: Typed| match &typed {
            Typed::Key(key) => key.to_string(),
            Typed::Paste(_) | Typed::Mouse(_) | Typed::Focus(_) => format!("{typed:?}"),
        };
        all.into_iter().map(shown).collect()
    }

    #[test]
    fn keys_are_read_as_terminals_send_them() {
        let rows: [(&[u8], &[&str]); 10] = [
            (b"jA?", &["j", "A", "?"]),
            ("ü日".as_bytes(), &["ü", "日"]),
            (b"\r\t\x7f\x08\x01\x1d", &["enter", "tab", "backspace", "backspace", "ctrl-a", "ctrl-]"]),
            (b"\x1b[A\x1bOB\x1b[1;5C\x1b[Z", &["up", "down", "ctrl-right", "shift-tab"]),
            (b"\x1b[5~\x1b[6~\x1b[3~\x1b[15~", &["page-up", "page-down", "delete", "f5"]),
            (b"\x1b", &["esc"]),
            (b"\x1b\x1b[A", &["esc", "up"]),
            (b"\x1bx\x1b\r", &["alt-x", "alt-enter"]),
            (b"\x1b]11;rgb:0/0/0\x07k\x1bP1+r\x1b\\l", &["k", "l"]),
            (b"\x1b[99999999999999999999zq\xff\xfew", &["q", "w"]),
        ];
        for (bytes, expected) in rows {
            assert_eq!(keys(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_pasted_is_text_whatever_it_looks_like_and_however_it_is_cut() {
        let bytes = b"a\x1b[200~x\r\nq\x1b[A\x1b[201~b";
        let pasted = Typed::Paste("x\nq\u{1b}[A".to_owned());
        let expected = [Typed::Key(KeyPress::char('a')), pasted, Typed::Key(KeyPress::char('b'))];
        for cut in 0..bytes.len() {
            let mut typing = Typing::default();
            let mut all = typing.take(&bytes[..cut]);
            all.extend(typing.take(&bytes[cut..]));
            assert_eq!(all, expected, "{cut}");
        }
    }

    #[test]
    fn the_mouse_and_the_focus_are_told() {
        let mut typing = Typing::default();
        let all = typing.take(b"\x1b[<0;5;3M\x1b[<0;5;3m\x1b[<65;1;1M\x1b[I\x1b[O");
        let click = |what, column, row| Typed::Mouse(Mouse { what, column, row });
        assert_eq!(
            all,
            [click(Click::Left, 4, 2), click(Click::Down, 0, 0), Typed::Focus(true), Typed::Focus(false)]
        );
    }
}

//! Filters a program's output before it reaches another person's terminal.
//!
//! A joined terminal gets the program's own sequences. Painting, moving, switching known modes (`modes.rs`)
//! and harmless questions pass. Writing a clipboard, reading a title back, starting a download or changing
//! the terminal for good do not. `filter/` lists what passes; everything else is dropped, unknown sequences
//! included.
//!
//! Text passes as it comes. Only an unfinished sequence is held back, so a stream may be cut anywhere.

mod control;
mod words;

use crate::modes::TerminalModes;
use crate::paint::LEAVE;

/// What a program may do beyond drawing on its own screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its own in a configuration")]
pub struct Allow {
    /// Set the window's title.
    pub title: bool,
    /// Make text a link to http, https or mailto.
    pub links: bool,
    /// Ask for the terminal's colours.
    pub color_queries: bool,
    /// Change the terminal's colours.
    pub colors: bool,
    /// Write the clipboard; reading it is never allowed.
    pub clipboard: bool,
    /// Show notifications and progress outside the screen.
    pub notifications: bool,
    /// Tell the terminal the working directory.
    pub directory: bool,
}

impl Allow {
    /// The configuration word for each permission.
    pub const WORDS: [&str; 7] =
        ["title", "links", "color-queries", "colors", "clipboard", "notifications", "directory"];

    /// Allows nothing beyond the screen.
    pub const NOTHING: Allow = Allow {
        title: false,
        links: false,
        color_queries: false,
        colors: false,
        clipboard: false,
        notifications: false,
        directory: false,
    };

    /// Allows what `word` stands for; returns whether the word is known.
    pub fn allow(&mut self, word: &str) -> bool {
        let field = match word {
            "title" => &mut self.title,
            "links" => &mut self.links,
            "color-queries" => &mut self.color_queries,
            "colors" => &mut self.colors,
            "clipboard" => &mut self.clipboard,
            "notifications" => &mut self.notifications,
            "directory" => &mut self.directory,
            _ => return false,
        };
        *field = true;
        true
    }
}

impl Default for Allow {
    /// What full-screen programs use every day and can do no harm with.
    fn default() -> Self {
        Allow { title: true, links: true, color_queries: true, ..Allow::NOTHING }
    }
}

const BELL: u8 = 0x07;
/// Asks the terminal for its answerback text, which its owner set.
const ENQUIRY: u8 = 0x05;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

/// No program means a longer sequence of `ESC [`.
const LONGEST_CONTROL: usize = 512;
/// Looks are chosen with fewer characters than this; longer sequences are looked at more closely.
const USUAL_LOOKS: usize = 32;
/// A longer sequence of `ESC ]` is dropped; clipboard texts may be long.
const LONGEST_WORDS: usize = 1 << 20;

/// Where in the stream the filter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// After `ESC`, and perhaps intermediate characters.
    Escape,
    /// After `ESC [`.
    Control,
    /// After `ESC [`, in a sequence that is too long.
    Endless,
    /// After `ESC ]`.
    Words,
    /// After `ESC P`, `ESC X`, `ESC ^` or `ESC _`.
    Dropped,
    /// After an `ESC` that may end an `ESC ]` sequence.
    WordsEscape,
    /// After an `ESC` that may end a dropped sequence.
    DroppedEscape,
}

/// The filter of one stream.
#[derive(Debug)]
pub struct Filter {
    allow: Allow,
    state: State,
    /// The unfinished sequence that is held back.
    held: Vec<u8>,
    /// Set after the first byte of a split character whose next byte decides whether it passes.
    lead: bool,
    /// How many bytes of the current character are still to come.
    rest: u8,
    questions: u64,
}

impl Filter {
    /// Creates a filter at the start of a stream.
    #[must_use]
    pub fn new(allow: Allow) -> Filter {
        Filter { allow, state: State::Text, held: Vec::new(), lead: false, rest: 0, questions: 0 }
    }

    /// Returns how many questions have passed that the terminal answers as if typed.
    #[must_use]
    pub fn questions(&self) -> u64 {
        self.questions
    }

    /// Appends to `out` what may pass of the next bytes.
    pub fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut left = bytes;
        while let Some((first, behind)) = left.split_first() {
            if self.state == State::Text && self.rest == 0 && !self.lead {
                let plain = plain(left);
                out.extend_from_slice(&left[..plain]);
                left = &left[plain..];
                if plain > 0 {
                    continue;
                }
            }
            self.take(*first, out);
            left = behind;
        }
    }

    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            State::Text => self.text(byte, out),
            State::Escape => self.escape(byte, out),
            State::Control | State::Endless => self.control(byte, out),
            State::Words => self.words(byte, out),
            State::Dropped => self.dropped(byte),
            State::WordsEscape | State::DroppedEscape => self.perhaps_over(byte, out),
        }
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.held.clear();
    }

    /// Handles a byte of text. Characters pass whole, except for controls encoded as characters (U+0080 to
    /// U+009F), which some terminals obey. A byte that is not part of a character passes unless an 8-bit
    /// terminal would obey it.
    fn text(&mut self, byte: u8, out: &mut Vec<u8>) {
        let is_rest = (0x80..0xc0).contains(&byte);
        if std::mem::take(&mut self.lead) {
            match byte {
                0x80..0xa0 => return,
                _ => out.push(0xc2),
            }
            if is_rest {
                return out.push(byte);
            }
        }
        if self.rest > 0 && is_rest {
            self.rest -= 1;
            return out.push(byte);
        }
        self.rest = 0;
        match byte {
            ESCAPE => self.begin(State::Escape),
            ENQUIRY | CANCEL | SUBSTITUTE | 0x80..0xa0 => {}
            0xc2 => self.lead = true,
            _ => {
                self.rest = match byte {
                    0xc3..0xe0 => 1,
                    0xe0..0xf0 => 2,
                    0xf0..0xf5 => 3,
                    _ => 0,
                };
                out.push(byte);
            }
        }
    }

    fn escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ESCAPE => self.begin(State::Escape),
            CANCEL | SUBSTITUTE => self.begin(State::Text),
            b'[' if self.held.is_empty() => self.begin(State::Control),
            b']' if self.held.is_empty() => self.begin(State::Words),
            b'P' | b'X' | b'^' | b'_' if self.held.is_empty() => self.begin(State::Dropped),
            // No sequence that passes has more than two.
            0x20..0x30 if self.held.len() < 3 => self.held.push(byte),
            0x20..0x30 => {}
            0x30..DELETE => {
                self.single(byte, out);
                self.begin(State::Text);
            }
            _ => self.inside(byte, out),
        }
    }

    /// A control character inside a sequence takes effect at once, and the sequence goes on.
    fn inside(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ENQUIRY | DELETE => {}
            0..0x20 => out.push(byte),
            // No sequence contains such a byte: the sequence is over, and this is text.
            _ => {
                self.begin(State::Text);
                self.text(byte, out);
            }
        }
    }

    /// Handles `ESC` and a final character, perhaps with one in between.
    fn single(&self, last: u8, out: &mut Vec<u8>) {
        match (self.held.as_slice(), last) {
            ([], b'7' | b'8' | b'D' | b'E' | b'M' | b'=' | b'>') => out.extend_from_slice(&[ESCAPE, last]),
            ([set @ (b'(' | b')' | b'*' | b'+')], b'0' | b'1' | b'2' | b'A' | b'B') => {
                out.extend_from_slice(&[ESCAPE, *set, last]);
            }
            // A full reset would also clear the scrollback and the owner's settings.
            ([], b'c') => {
                out.extend_from_slice(LEAVE);
                out.extend_from_slice(b"\x1b[2J\x1b[H");
            }
            _ => {}
        }
    }

    fn control(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ESCAPE => self.begin(State::Escape),
            CANCEL | SUBSTITUTE => self.begin(State::Text),
            0x40..DELETE => {
                if self.state == State::Control {
                    self.questions +=
                        u64::from(control::pass(&self.held, byte, out) == control::Is::Question);
                }
                self.begin(State::Text);
            }
            0x20..0x40 if self.held.len() < LONGEST_CONTROL => self.held.push(byte),
            0x20..0x40 => self.begin(State::Endless),
            _ => self.inside(byte, out),
        }
    }

    fn words(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ESCAPE => self.state = State::WordsEscape,
            CANCEL | SUBSTITUTE => self.begin(State::Text),
            BELL => self.said(&[BELL], out),
            _ if self.held.len() < LONGEST_WORDS => self.held.push(byte),
            _ => self.begin(State::Dropped),
        }
    }

    fn said(&mut self, end: &[u8], out: &mut Vec<u8>) {
        self.questions += u64::from(words::pass(&self.held, end, self.allow, out) == control::Is::Question);
        self.begin(State::Text);
        // Room for a long text is given back.
        self.held.shrink_to(LONGEST_CONTROL);
    }

    fn dropped(&mut self, byte: u8) {
        match byte {
            ESCAPE => self.state = State::DroppedEscape,
            CANCEL | SUBSTITUTE => self.begin(State::Text),
            _ => {}
        }
    }

    /// Handles the byte after `ESC`: `ESC \` ends the sequence; anything else begins a new one and discards
    /// the old.
    fn perhaps_over(&mut self, byte: u8, out: &mut Vec<u8>) {
        match (self.state, byte) {
            (State::WordsEscape, b'\\') => self.said(b"\x1b\\", out),
            (_, b'\\') => self.begin(State::Text),
            (_, _) => {
                self.begin(State::Escape);
                self.escape(byte, out);
            }
        }
    }
}

/// How many bytes pass as they are: text, whole characters, and sequences that choose looks.
fn plain(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let length = match *byte {
            ESCAPE => looks(&bytes[at..]),
            ENQUIRY | CANCEL | SUBSTITUTE => 0,
            0..0x80 => 1,
            _ => character(&bytes[at..]),
        };
        if length == 0 {
            break;
        }
        at += length;
    }
    at
}

/// The length of a sequence that chooses looks and is no longer than usual; 0 where it is something else.
fn looks(bytes: &[u8]) -> usize {
    let Some(numbers) = bytes.strip_prefix(b"\x1b[") else { return 0 };
    let usual = &numbers[..numbers.len().min(USUAL_LOOKS)];
    let count = usual.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).count();
    if usual.get(count) == Some(&b'm') { count + 3 } else { 0 }
}

/// The length of a whole character that no terminal obeys; 0 where it is something else, or cut in two.
fn character(bytes: &[u8]) -> usize {
    let length = match bytes[0] {
        0xc3..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return 0,
    };
    let rest = bytes.get(1..length).unwrap_or_default();
    if rest.is_empty() || !rest.iter().all(|byte| (0x80..0xc0).contains(byte)) { 0 } else { length }
}

/// Returns whether a program may switch this private mode: one that leaving the terminal resets.
fn is_known_mode(number: u16) -> bool {
    TerminalModes::knows(number) || matches!(number, 6 | 47 | 1047..=1049 | 2026)
}

//! The edge of the program: everything that it prints leaves here.
//!
//! stdout is data, stderr is talk. No name, path, key or command reaches a terminal unseen: what a terminal would
//! obey is shown instead. Only a joined terminal (`attach`) and `logs --raw` pass an agent's own sequences on.

use pinfold_core::visible::{visible, visible_line};
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints one line of data: words for people, or JSON. A reader that has gone away is no failure of ours.
pub(crate) fn say(line: &impl Display) {
    _ = writeln!(std::io::stdout(), "{}", visible(&line.to_string()));
}

/// Prints lines that were painted here, as one piece; what is in them was made visible before.
pub(crate) fn print(painted: &str) {
    _ = std::io::stdout().write_all(painted.as_bytes());
}

/// Whether a line of progress stands at the end of standard error, which the next line takes the place of.
static PASSING: AtomicBool = AtomicBool::new(false);

/// Puts a line in the place of the passing one before; without a line it is wiped away.
pub(super) fn pass(line: Option<&str>) {
    let mut out = std::io::stderr().lock();
    let before = PASSING.swap(line.is_some(), Ordering::Relaxed);
    if before || line.is_some() {
        _ = write!(out, "\r\x1b[K{}", visible_line(line.unwrap_or_default()));
        _ = out.flush();
    }
}

/// Says one line to whoever looks on. Standard error may be closed; what was asked for is done all the same.
pub(crate) fn talk(line: &impl Display) {
    pass(None);
    _ = writeln!(std::io::stderr(), "{}", visible(&line.to_string()));
}

/// How an agent's own words are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// As they are, sequences included.
    Raw,
    /// As text without sequences.
    Plain,
}

impl Words {
    /// As text on a terminal; what goes to a file or a program is not touched.
    pub(crate) fn for_stdout() -> Words {
        if std::io::stdout().is_terminal() { Words::Plain } else { Words::Raw }
    }
}

/// Prints what an agent said: an answer, or a line of its output.
pub(crate) fn output(text: &str, words: Words) {
    let mut out = std::io::stdout().lock();
    match words {
        Words::Raw => _ = writeln!(out, "{text}"),
        Words::Plain => {
            for line in text.split('\n') {
                let line = pinfold_terminal::plain(line.strip_suffix('\r').unwrap_or(line));
                _ = writeln!(out, "{}", visible_line(&line));
            }
        }
    }
}

/// JSON on its way to stdout, in pieces of any length: what a terminal would obey is escaped, as JSON allows.
pub(crate) struct Json {
    out: std::io::StdoutLock<'static>,
    /// The beginning of a character whose end has not come yet.
    begun: Vec<u8>,
}

impl Json {
    pub(crate) fn stdout() -> Json {
        Json { out: std::io::stdout().lock(), begun: Vec::new() }
    }
}

impl Write for Json {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        self.begun.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&self.begun) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8_lossy(&self.begun[..whole]);
        for part in text.split_inclusive('\n') {
            // An end of a line between two values is not part of either.
            let (line, end) = part.strip_suffix('\n').map_or((part, ""), |line| (line, "\n"));
            self.out.write_all(visible(line).as_bytes())?;
            self.out.write_all(end.as_bytes())?;
        }
        self.begun.drain(..whole);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

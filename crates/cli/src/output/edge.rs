//! The edge of the program: everything it prints leaves here.
//!
//! Stdout is data, stderr is talk. No name, path, key or command reaches a terminal as it is: anything a
//! terminal would obey is made visible instead. Only a joined terminal (`attach`) and `logs --raw` pass on an
//! agent's own sequences.

use pinfold_core::visible::{visible, visible_line};
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints one line of data: text for people, or JSON. A reader that has gone away is not an error of ours.
pub(crate) fn say(line: &impl Display) {
    _ = writeln!(std::io::stdout(), "{}", visible(&line.to_string()));
}

/// Prints lines that were coloured here, in one write; their contents were made visible before.
pub(crate) fn print(painted: &str) {
    _ = std::io::stdout().write_all(painted.as_bytes());
}

/// Whether stderr ends with a line of progress, which the next line replaces.
static PASSING: AtomicBool = AtomicBool::new(false);

/// Replaces the line of progress; `None` erases it.
pub(super) fn pass(line: Option<&str>) {
    let mut out = std::io::stderr().lock();
    let before = PASSING.swap(line.is_some(), Ordering::Relaxed);
    if before || line.is_some() {
        _ = write!(out, "\r\x1b[K{}", visible_line(line.unwrap_or_default()));
        _ = out.flush();
    }
}

/// Prints one line to stderr. Stderr may be closed; the verb does its work all the same.
pub(crate) fn talk(line: &impl Display) {
    pass(None);
    _ = writeln!(std::io::stderr(), "{}", visible(&line.to_string()));
}

/// How an agent's own text is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputStyle {
    /// As it is, including terminal sequences.
    Raw,
    /// As text without sequences.
    Plain,
}

impl OutputStyle {
    /// Plain on a terminal; raw to a file or a program.
    pub(crate) fn for_stdout() -> OutputStyle {
        if std::io::stdout().is_terminal() { OutputStyle::Plain } else { OutputStyle::Raw }
    }
}

/// Prints an agent's own text: an answer, or a line of its output.
pub(crate) fn output(text: &str, words: OutputStyle) {
    let mut out = std::io::stdout().lock();
    match words {
        OutputStyle::Raw => _ = writeln!(out, "{text}"),
        OutputStyle::Plain => {
            for line in text.split('\n') {
                let line = pinfold_terminal::plain(line.strip_suffix('\r').unwrap_or(line));
                _ = writeln!(out, "{}", visible_line(&line));
            }
        }
    }
}

/// JSON written to stdout in pieces of any length; anything a terminal would obey is escaped, as JSON allows.
pub(crate) struct Json {
    out: std::io::StdoutLock<'static>,
    /// The first bytes of a character whose rest has not arrived yet.
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
            // A line break between two values is part of neither.
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

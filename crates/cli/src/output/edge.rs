//! The edge of the program: everything it prints leaves here.
//!
//! Stdout is data, stderr is talk. No name, path, key or command reaches a terminal as it is: anything a
//! terminal would obey is made visible instead. Only a joined terminal (`attach`) and `logs --raw` pass on an
//! agent's own sequences.

use pinfold_core::visible::{visible, visible_line};
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why data was lost: the first error of stdout. `main` reports it when the verb is done.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Notes an error of stdout. A reader that has gone away, as in `pinfold logs | head -1`, is not an error.
fn note(written: io::Result<()>) {
    if let Some(error) = written.err().filter(|error| error.kind() != ErrorKind::BrokenPipe) {
        LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
    }
}

/// Returns why data did not reach stdout, after writing what is left.
pub(crate) fn lost() -> Option<io::Error> {
    note(io::stdout().flush());
    LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}

/// Whether data was lost: a verb that prints until it is interrupted stops then.
pub(crate) fn has_lost() -> bool {
    LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_some()
}

/// Prints one line of data: text for people, or JSON.
pub(crate) fn say(line: &impl Display) {
    note(writeln!(io::stdout(), "{}", visible(&line.to_string())));
}

/// Prints lines that were coloured here, in one write; their contents were made visible before.
pub(crate) fn print(painted: &str) {
    note(io::stdout().write_all(painted.as_bytes()));
}

/// Whether stderr ends with a line of progress, which the next line replaces.
static PASSING: AtomicBool = AtomicBool::new(false);

/// Replaces the line of progress; `None` erases it.
pub(super) fn pass(line: Option<&str>) {
    let mut out = io::stderr().lock();
    let before = PASSING.swap(line.is_some(), Ordering::Relaxed);
    if before || line.is_some() {
        _ = write!(out, "\r\x1b[K{}", visible_line(line.unwrap_or_default()));
        _ = out.flush();
    }
}

/// Prints one line to stderr. Stderr may be closed; the verb does its work all the same.
pub(crate) fn talk(line: &impl Display) {
    pass(None);
    _ = writeln!(io::stderr(), "{}", visible(&line.to_string()));
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
        if io::stdout().is_terminal() { OutputStyle::Plain } else { OutputStyle::Raw }
    }
}

/// Prints an agent's own text: an answer, or a line of its output.
pub(crate) fn output(text: &str, words: OutputStyle) {
    let mut out = io::stdout().lock();
    match words {
        OutputStyle::Raw => note(writeln!(out, "{text}")),
        OutputStyle::Plain => {
            for line in text.split('\n') {
                let line = pinfold_terminal::plain(line.strip_suffix('\r').unwrap_or(line));
                note(writeln!(out, "{}", visible_line(&line)));
            }
        }
    }
}

/// JSON written to stdout in pieces of any length; anything a terminal would obey is escaped, as JSON allows.
pub(crate) struct Json {
    out: io::StdoutLock<'static>,
    /// The first bytes of a character whose rest has not arrived yet.
    begun: Vec<u8>,
}

impl Json {
    pub(crate) fn stdout() -> Json {
        Json { out: io::stdout().lock(), begun: Vec::new() }
    }
}

impl Json {
    fn write_whole(&mut self, whole: usize) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.begun[..whole]);
        for part in text.split_inclusive('\n') {
            // A line break between two values is part of neither.
            let (line, end) = part.strip_suffix('\n').map_or((part, ""), |line| (line, "\n"));
            self.out.write_all(visible(line).as_bytes())?;
            self.out.write_all(end.as_bytes())?;
        }
        Ok(())
    }
}

/// It never fails: an error of stdout must not look like an error of the daemon whose answer is passed on.
impl Write for Json {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&self.begun) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        note(self.write_whole(whole));
        self.begun.drain(..whole);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        note(self.out.flush());
        Ok(())
    }
}

//! The lines that a process prints: waiting for one has a limit, and the failure says what was waited for.

use crate::processes::PATIENCE;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// Lines from a pipe, which is closed at the next line after the reader is gone.
#[derive(Debug)]
pub(crate) struct Lines(Receiver<String>);

impl Lines {
    pub(crate) fn of(pipe: impl Read + Send + 'static) -> Lines {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // The reader is gone; the kernel tells the printing process.
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines(lines)
    }

    /// The next line.
    #[track_caller]
    pub(crate) fn next(&self, what: &str) -> String {
        self.until(what, |_| true)
    }

    /// The first line that satisfies `wanted`.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        let mut passed = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.0.recv_timeout(left) {
                Ok(line) if wanted(&line) => return line,
                Ok(line) => passed.push(line),
                Err(error) => {
                    let last = &passed[passed.len().saturating_sub(20)..];
                    panic!("{error} while waiting for {what}; last came: {last:#?}")
                }
            }
        }
    }
}

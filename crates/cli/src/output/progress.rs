//! One line that changes while something takes long: on stderr, and only if that is a terminal.

use super::edge::pass;
use crate::global::Global;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Anything over sooner than this needs no progress line.
const PATIENCE: Duration = Duration::from_secs(1);
/// Short enough for a countdown that changes every second.
const BEAT: Duration = Duration::from_millis(500);

/// A progress line; dropping this erases it.
pub(crate) struct ProgressLine {
    over: Option<(Sender<()>, JoinHandle<()>)>,
}

impl ProgressLine {
    /// From the first second on, shows the result of `words`, which is given the time taken so far.
    pub(crate) fn begin(
        global: &Global,
        words: impl FnMut(Duration) -> Option<String> + Send + 'static,
    ) -> ProgressLine {
        if global.quiet || global.json || !std::io::stderr().is_terminal() {
            return ProgressLine { over: None };
        }
        let (over, told) = channel::<()>();
        let begun = Instant::now();
        let mut words = words;
        let said = std::thread::Builder::new().spawn(move || {
            let mut wait = PATIENCE;
            while told.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = BEAT;
                pass(words(begun.elapsed()).as_deref());
            }
            pass(None);
        });
        // Without a thread there is no line; the command itself reports what is wrong.
        ProgressLine { over: said.ok().map(|said| (over, said)) }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some((over, said)) = self.over.take() {
            drop(over);
            _ = said.join();
        }
    }
}

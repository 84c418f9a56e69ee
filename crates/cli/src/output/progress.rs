//! One line that changes while something takes long: on the terminal of standard error, and nowhere else.

use super::edge::pass;
use crate::global::Global;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What is over sooner than this needs no word.
const PATIENCE: Duration = Duration::from_secs(1);
/// A countdown changes each second.
const BEAT: Duration = Duration::from_millis(500);

/// Says something while it is there; what it said is wiped away with it.
pub(crate) struct Progress {
    over: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Says what comes of `words`, which is given how long it has taken, from the first second on.
    pub(crate) fn begin(
        global: &Global,
        words: impl FnMut(Duration) -> Option<String> + Send + 'static,
    ) -> Progress {
        if global.quiet || global.json || !std::io::stderr().is_terminal() {
            return Progress { over: None };
        }
        let (over, told) = channel::<()>();
        let begun = Instant::now();
        let mut words = words;
        let said = std::thread::spawn(move || {
            let mut wait = PATIENCE;
            while told.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = BEAT;
                pass(words(begun.elapsed()).as_deref());
            }
            pass(None);
        });
        Progress { over: Some((over, said)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((over, said)) = self.over.take() {
            drop(over);
            _ = said.join();
        }
    }
}

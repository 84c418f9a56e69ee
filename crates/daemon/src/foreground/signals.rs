//! The signals that ask a run in the foreground to end: the first gently, the next at once.

use rustix::process::Signal as Number;
use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

const ASKING: [Number; 4] = [Number::INT, Number::TERM, Number::HUP, Number::QUIT];

/// The signals as they come.
pub(super) struct EndSignals(mpsc::UnboundedReceiver<i32>);

impl EndSignals {
    /// Listens to them, except those that the caller wants ignored, as with `nohup`.
    pub(super) fn new() -> io::Result<EndSignals> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let ignored = ignored();
        for number in ASKING.map(Number::as_raw).into_iter().filter(|number| !is_in(ignored, *number)) {
            let mut stream = signal(SignalKind::from_raw(number))?;
            let sender = sender.clone();
            tokio::spawn(
                async move { while stream.recv().await.is_some() && sender.send(number).is_ok() {} },
            );
        }
        Ok(EndSignals(receiver))
    }

    /// The number of the next signal; never returns if none is listened to.
    pub(super) async fn next(&mut self) -> i32 {
        match self.0.recv().await {
            Some(number) => number,
            None => std::future::pending().await,
        }
    }
}

/// The signals that this process was started to ignore, as a set of bits.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn is_in(set: u64, number: i32) -> bool {
    u32::try_from(number - 1).is_ok_and(|bit| set & (1 << bit) != 0)
}

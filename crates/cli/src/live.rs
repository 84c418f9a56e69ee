//! `-w`: shows something again whenever it changes, until the user interrupts it.

use crate::daemon::Daemon;
use crate::output::{Failure, has_lost, print};
use pinfold_api::{endpoint, query};
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often to redraw without news: the ages shown keep growing.
const BEAT: Duration = Duration::from_secs(1);
/// Changes within this time are shown together.
const TOGETHER: Duration = Duration::from_millis(100);

/// Shows something now and after each change of any session. Without a terminal, prints only changes.
pub(crate) fn watch(daemon: &Daemon, show: impl Fn() -> Result<(), Failure>) -> Result<(), Failure> {
    let terminal = std::io::stdout().is_terminal() && !daemon.global.json;
    let (sender, news) = channel();
    let client = daemon.client()?;
    std::thread::spawn(move || {
        loop {
            if let Ok(lines) = client.lines(&endpoint::Feed::call(&query::Feed::default())) {
                let told = tell(lines, &sender);
                if told.is_err() {
                    return;
                }
            }
            // The daemon has gone; the next one announces changes in its own feed.
            std::thread::sleep(BEAT);
        }
    });
    loop {
        if terminal {
            print("\x1b[H\x1b[2J");
        }
        show()?;
        if has_lost() {
            return Ok(());
        }
        match news.recv_timeout(if terminal { BEAT } else { Duration::MAX }) {
            Ok(()) => {
                std::thread::sleep(TOGETHER);
                news.try_iter().for_each(drop);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Sends a notice for each line with data; an error when the receiver is gone.
fn tell(lines: impl Iterator<Item = std::io::Result<String>>, sender: &Sender<()>) -> Result<(), ()> {
    for line in lines.map_while(Result::ok).filter(|line| line.starts_with("data:")) {
        _ = line;
        sender.send(()).map_err(drop)?;
    }
    Ok(())
}

//! `-w`: shows something again whenever it changes, until the user interrupts it or the daemon is stopped.

use crate::daemon::{Daemon, NextDaemon};
use crate::output::{Failure, Kind, exit_with_the_reader, has_lost, print};
use pinfold_api::{Client, endpoint, query};
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often to redraw without news: the ages shown keep growing.
const BEAT: Duration = Duration::from_secs(1);
/// Changes within this time are shown together.
const TOGETHER: Duration = Duration::from_millis(100);

/// Why to show it again.
enum News {
    Changed,
    /// The daemon was stopped, so nothing changes anymore.
    Stopped,
}

/// Shows something now and after each change of any session. Without a terminal, prints only changes.
/// `show` is given a daemon that is never started: that is decided here, because it depends on how it ended.
pub(crate) fn watch(daemon: &Daemon, show: impl Fn(&Daemon) -> Result<(), Failure>) -> Result<(), Failure> {
    let terminal = std::io::stdout().is_terminal() && !daemon.global.json;
    let (sender, news) = channel();
    let (client, follower) = (daemon.client()?, daemon.clone());
    let running = Daemon { global: daemon.global.never_starting() };
    exit_with_the_reader(0);
    std::thread::spawn(move || follow(client, &follower, &sender));
    loop {
        if terminal {
            print("\x1b[H\x1b[2J");
        }
        match show(&running) {
            Err(failure) if failure.kind() == Kind::Unavailable => {
                if let NextDaemon::Stopped = daemon.next()? {
                    daemon.tell_stopped();
                    return Ok(());
                }
                continue;
            }
            shown => shown?,
        }
        if has_lost() {
            return Ok(());
        }
        match news.recv_timeout(if terminal { BEAT } else { Duration::MAX }) {
            Ok(News::Changed) => {
                std::thread::sleep(TOGETHER);
                if news.try_iter().any(|news| matches!(news, News::Stopped)) {
                    daemon.tell_stopped();
                    return Ok(());
                }
            }
            Ok(News::Stopped) => {
                daemon.tell_stopped();
                return Ok(());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Reports changes, across the crash of any daemon, until the daemon is stopped or nobody listens.
fn follow(mut client: Client, daemon: &Daemon, sender: &Sender<News>) {
    loop {
        if let Ok(lines) = client.lines(&endpoint::Feed::call(&query::Feed::default()))
            && tell(lines, sender).is_err()
        {
            return;
        }
        // The daemon has gone; the next one announces changes in its own feed.
        std::thread::sleep(BEAT);
        match daemon.next() {
            Ok(NextDaemon::Up(next)) => client = next,
            Ok(NextDaemon::Stopped) => {
                _ = sender.send(News::Stopped);
                return;
            }
            // None may be started from here, or it cannot start now: another one may come.
            Err(_) => {}
        }
    }
}

/// Sends a notice for each line with data; an error when the receiver is gone.
fn tell(lines: impl Iterator<Item = std::io::Result<String>>, sender: &Sender<News>) -> Result<(), ()> {
    for line in lines.map_while(Result::ok).filter(|line| line.starts_with("data:")) {
        _ = line;
        sender.send(News::Changed).map_err(drop)?;
    }
    Ok(())
}

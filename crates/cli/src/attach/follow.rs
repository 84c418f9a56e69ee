//! Attaches to a session without a terminal: prints its output line by line and sends typed lines as messages.

use super::counted::{AttachmentNews, Counted};
use super::keys::say_detached;
use super::tty::{Borrowed, DETACH};
use crate::global::Global;
use crate::output::{Failure, OutputStyle, exit_with_the_reader, output, say, talk};
use crate::signals::Signals;
use pinfold_api::object::LogLine;
use pinfold_api::request::NewMessage;
use pinfold_api::{Client, endpoint, query};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io::{IsTerminal, Write};

/// Bytes per read.
const READ: usize = 64 << 10;

/// Follows the session until the user detaches.
pub(super) fn follow(
    name: &str,
    client: &Client,
    counted: &mut Counted,
    signals: &Signals,
    write: bool,
    global: &Global,
) -> Result<(), Failure> {
    // Without a terminal, lines arrive all the same.
    let _borrowed = Borrowed::lines().ok();
    // With a terminal, the hang-up is a signal, and the terminal has to be put right first.
    if !std::io::stdin().is_terminal() {
        exit_with_the_reader(0);
    }
    if !global.quiet {
        let typed = if write { "lines that you type are sent as messages; " } else { "" };
        talk(&format!("following `{name}`; {typed}Ctrl-] detaches"));
    }
    let mut typing = write.then(Typing::default);
    loop {
        while let Some(news) = counted.take()? {
            if let AttachmentNews::Output(line) = news {
                show(&line, global);
            }
        }
        if signals.end_asked() {
            return Ok(());
        }
        wait(counted, signals);
        if let Some(typed) = keys() {
            let (lines, over) = typing.get_or_insert_default().take(&typed);
            for line in lines.iter().filter(|_| write) {
                send(name, client, line, global)?;
            }
            if over == Over::Detached {
                erase_typed();
                say_detached(name, global);
                return Ok(());
            }
            if over == Over::Ended {
                return until_signal(counted, signals, global);
            }
        }
    }
}

/// Erases the detach key, which the terminal has echoed, with the line that was not sent.
fn erase_typed() {
    if std::io::stderr().is_terminal() {
        _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}

/// Only follows the output, once the lines piped into us have ended.
fn until_signal(counted: &mut Counted, signals: &Signals, global: &Global) -> Result<(), Failure> {
    loop {
        match counted.wait(signals)? {
            AttachmentNews::Output(line) => show(&line, global),
            AttachmentNews::Signal => return Ok(()),
            AttachmentNews::Line(_) => {}
        }
    }
}

fn show(line: &LogLine, global: &Global) {
    if global.json {
        say(&serde_json::json!(line));
    } else {
        output(&line.text, OutputStyle::for_stdout());
    }
}

fn wait(counted: &Counted, signals: &Signals) {
    let stdin = rustix::stdio::stdin();
    let mut fds = [
        PollFd::new(counted.woken(), PollFlags::IN),
        PollFd::new(&stdin, PollFlags::IN),
        PollFd::new(signals, PollFlags::IN),
    ];
    _ = rustix::event::poll(&mut fds, None);
}

/// Returns what was typed, if anything; an empty result means end of input.
fn keys() -> Option<Vec<u8>> {
    let stdin = rustix::stdio::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let none = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    if rustix::event::poll(&mut fds, Some(&none)) != Ok(1) {
        return None;
    }
    let mut bytes = vec![0; READ];
    match rustix::io::read(stdin, &mut bytes) {
        Ok(count) => bytes.truncate(count),
        Err(Errno::INTR | Errno::AGAIN) => return None,
        Err(_) => bytes.clear(),
    }
    Some(bytes)
}

fn send(name: &str, client: &Client, line: &str, global: &Global) -> Result<(), Failure> {
    let message = NewMessage { text: line.to_owned(), ..NewMessage::default() };
    let sent = client.ask(&endpoint::Send::call(name, &query::Patience::default(), &message))?;
    if let Some(note) = sent.note.filter(|_| !global.quiet) {
        talk(&note);
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    No,
    Detached,
    /// End of input.
    Ended,
}

/// Assembles typed bytes into lines.
#[derive(Debug, Default)]
struct Typing {
    partial: Vec<u8>,
}

impl Typing {
    fn take(&mut self, typed: &[u8]) -> (Vec<String>, Over) {
        let mut over = if typed.is_empty() { Over::Ended } else { Over::No };
        let mut lines = Vec::new();
        for byte in typed {
            match *byte {
                DETACH => {
                    over = Over::Detached;
                    self.partial.clear();
                    break;
                }
                b'\n' => lines.extend(self.line()),
                byte => self.partial.push(byte),
            }
        }
        if over == Over::Ended {
            lines.extend(self.line());
        }
        (lines, over)
    }

    fn line(&mut self) -> Option<String> {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.partial)).into_owned();
        Some(line).filter(|line| !line.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sent_whole_and_the_key_to_detach_ends_it() {
        let mut typing = Typing::default();
        assert_eq!(typing.take(b"hel"), (vec![], Over::No));
        assert_eq!(typing.take(b"lo\n\n  \nwor"), (vec!["hello".into()], Over::No));
        assert_eq!(typing.take(b"ld\x1d"), (vec![], Over::Detached));
        assert_eq!(typing.take(b"last"), (vec![], Over::No));
        assert_eq!(typing.take(b""), (vec!["last".into()], Over::Ended));
    }
}

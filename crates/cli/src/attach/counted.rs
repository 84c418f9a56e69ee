//! Our connection with the daemon. While it is open, the daemon counts us as attached.
//!
//! When the daemon dies we keep looking for the next one, which then counts us again.

use crate::output::{Failure, Kind};
use crate::signals::Signals;
use pinfold_api::endpoint::{self, Call};
use pinfold_api::object::{AttachLine, LogLine};
use pinfold_api::request::Attach;
use pinfold_api::{Client, ClientError};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// How long to wait before looking again for a daemon that has gone: nothing announces that the next one listens.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// The daemon's messages on an attach connection, as they arrive.
pub(super) struct Counted {
    lines: Receiver<Result<AttachmentNews, Failure>>,
    /// Readable when there is something in `lines`.
    woken: OwnedFd,
}

/// One thing that arrived.
pub(super) enum AttachmentNews {
    Line(AttachLine),
    Output(LogLine),
    /// A signal asked us to end.
    Signal,
}

impl Counted {
    /// Sends the request. A refusal is an error here; everything after it arrives as news.
    pub(super) fn begin(client: Client, session: &str, request: &Attach) -> Result<Counted, Failure> {
        let lines = client.lines(&endpoint::Attach::call(session, request))?;
        let again = endpoint::Attach::call(session, &Attach { again: true, ..request.clone() });
        let failed = |errno: Errno| Failure::from_error(Kind::Failed, &errno);
        let (woken, wakes) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(failed)?;
        let (sender, receiver) = channel();
        let teller = Teller { sender, wakes };
        std::thread::spawn(move || {
            let lost = teller.pass_on(lines);
            if lost.is_ok() {
                teller.count_again(&client, &again);
            }
        });
        Ok(Counted { lines: receiver, woken })
    }

    /// Returns what has arrived, without waiting.
    pub(super) fn take(&mut self) -> Result<Option<AttachmentNews>, Failure> {
        let mut bytes = [0; 64];
        _ = rustix::io::read(&self.woken, &mut bytes);
        match self.lines.try_recv() {
            Ok(news) => news.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(went_away()),
        }
    }

    /// Readable when something has arrived.
    pub(super) fn woken(&self) -> &OwnedFd {
        &self.woken
    }

    /// Returns how the run whose terminal was shown ended, if the daemon says so in time.
    pub(super) fn end_within(&mut self, time: Duration) -> Option<String> {
        let until = Instant::now() + time;
        loop {
            match self.take().ok()? {
                Some(AttachmentNews::Line(AttachLine::Ended { message })) => return Some(message),
                Some(AttachmentNews::Line(_) | AttachmentNews::Output(_) | AttachmentNews::Signal) => {
                    continue;
                }
                None => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let timeout = pinfold_kernel::clock::timespec(left);
            _ = rustix::event::poll(&mut [PollFd::new(&self.woken, PollFlags::IN)], Some(&timeout));
        }
    }

    /// Waits for the next thing to arrive.
    pub(super) fn wait(&mut self, signals: &Signals) -> Result<AttachmentNews, Failure> {
        loop {
            if let Some(news) = self.take()? {
                return Ok(news);
            }
            if signals.end_asked() {
                return Ok(AttachmentNews::Signal);
            }
            let mut fds = [PollFd::new(&self.woken, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
            _ = rustix::event::poll(&mut fds, None);
        }
    }
}

fn went_away() -> Failure {
    Failure::new(Kind::Unavailable, "the daemon went away").hint("`pinfold up` starts it again")
}

struct Teller {
    sender: Sender<Result<AttachmentNews, Failure>>,
    wakes: OwnedFd,
}

impl Teller {
    fn tell(&self, news: Result<AttachmentNews, Failure>) -> Result<(), ()> {
        self.sender.send(news).map_err(drop)?;
        _ = rustix::io::write(&self.wakes, &[1]);
        Ok(())
    }

    /// Passes on what arrives until the daemon has gone; an error when the receiver is gone.
    fn pass_on(&self, lines: impl Iterator<Item = std::io::Result<String>>) -> Result<(), ()> {
        let mut ready = false;
        for line in lines {
            let line = match line.map_err(ClientError::from) {
                Ok(line) => line,
                // A client that only follows has nothing left to show; a terminal belongs to its shim and stays open.
                Err(ClientError::Mute(mute)) => {
                    self.tell(Err(mute.into()))?;
                    break;
                }
                Err(_) => break,
            };
            if let Ok(line) = serde_json::from_str::<AttachLine>(&line) {
                let over = matches!(line, AttachLine::Failed(_));
                ready |= !matches!(line, AttachLine::Waiting { .. });
                self.tell(Ok(AttachmentNews::Line(line)))?;
                if over {
                    return Err(());
                }
            } else if let Ok(output) = serde_json::from_str::<LogLine>(&line) {
                self.tell(Ok(AttachmentNews::Output(output)))?;
            }
        }
        // If the daemon ends before there was a terminal, the attach ends too.
        if ready {
            return Ok(());
        }
        self.tell(Err(went_away()))?;
        Err(())
    }

    /// Reconnects to each next daemon for as long as this process lives.
    fn count_again(&self, client: &Client, call: &Call<endpoint::Attach>) {
        loop {
            std::thread::sleep(LOOK_AGAIN);
            match client.lines(call) {
                Ok(lines) => lines.map_while(Result::ok).for_each(drop),
                // The session is gone, so no daemon counts us any more.
                Err(ClientError::Refused(_)) => return,
                Err(
                    ClientError::Down { .. }
                    | ClientError::Broken(_)
                    | ClientError::Mute(_)
                    | ClientError::Stranger { .. }
                    | ClientError::Garbled(_),
                ) => {}
            }
        }
    }
}

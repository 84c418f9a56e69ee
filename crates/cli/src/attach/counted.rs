//! Our connection with the daemon: it is what counts us as attached, for as long as it is open.
//!
//! When the daemon dies it is looked for again and again, and the next one counts us from then on.

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

/// A daemon that has gone is looked for again after this: until the next one listens there is nobody to tell of it.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// What the daemon says, as it comes.
pub(super) struct Counted {
    lines: Receiver<Result<News, Failure>>,
    /// Readable when there is something in `lines`.
    woken: OwnedFd,
}

/// One thing that came.
pub(super) enum News {
    Line(AttachLine),
    Output(LogLine),
    /// We are asked to end.
    Signal,
}

impl Counted {
    /// Asks the daemon; a refusal is an error here, what follows comes as news.
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

    /// What came, without waiting.
    pub(super) fn take(&mut self) -> Result<Option<News>, Failure> {
        let mut bytes = [0; 64];
        _ = rustix::io::read(&self.woken, &mut bytes);
        match self.lines.try_recv() {
            Ok(news) => news.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(went_away()),
        }
    }

    /// Readable when something came.
    pub(super) fn woken(&self) -> &OwnedFd {
        &self.woken
    }

    /// How the run ended whose terminal was shown, if the daemon says so in time.
    pub(super) fn end_within(&mut self, time: Duration) -> Option<String> {
        let until = Instant::now() + time;
        loop {
            match self.take().ok()? {
                Some(News::Line(AttachLine::Ended { message })) => return Some(message),
                Some(News::Line(_) | News::Output(_) | News::Signal) => continue,
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

    /// Waits for the next thing that comes.
    pub(super) fn wait(&mut self, signals: &Signals) -> Result<News, Failure> {
        loop {
            if let Some(news) = self.take()? {
                return Ok(news);
            }
            if signals.end_asked() {
                return Ok(News::Signal);
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
    sender: Sender<Result<News, Failure>>,
    wakes: OwnedFd,
}

impl Teller {
    fn tell(&self, news: Result<News, Failure>) -> Result<(), ()> {
        self.sender.send(news).map_err(drop)?;
        _ = rustix::io::write(&self.wakes, &[1]);
        Ok(())
    }

    /// Passes on what comes until the daemon has gone; an error when nobody listens any more.
    fn pass_on(&self, lines: impl Iterator<Item = std::io::Result<String>>) -> Result<(), ()> {
        let mut ready = false;
        for line in lines {
            let line = match line.map_err(ClientError::from) {
                Ok(line) => line,
                // Whoever only follows has nothing to show any more; a terminal is its shim's, and stays.
                Err(ClientError::Mute(mute)) => {
                    self.tell(Err(mute.into()))?;
                    break;
                }
                Err(_) => break,
            };
            if let Ok(line) = serde_json::from_str::<AttachLine>(&line) {
                let over = matches!(line, AttachLine::Failed(_));
                ready |= !matches!(line, AttachLine::Waiting { .. });
                self.tell(Ok(News::Line(line)))?;
                if over {
                    return Err(());
                }
            } else if let Ok(output) = serde_json::from_str::<LogLine>(&line) {
                self.tell(Ok(News::Output(output)))?;
            }
        }
        // Before there was a terminal, the daemon's end is the end of it.
        if ready {
            return Ok(());
        }
        self.tell(Err(went_away()))?;
        Err(())
    }

    /// Finds the next daemon, for as long as this process lives.
    fn count_again(&self, client: &Client, call: &Call<endpoint::Attach>) {
        loop {
            std::thread::sleep(LOOK_AGAIN);
            match client.lines(call) {
                Ok(lines) => lines.map_while(Result::ok).for_each(drop),
                // The session is gone: nobody counts us any more.
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

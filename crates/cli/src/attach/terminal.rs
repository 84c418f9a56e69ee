//! Shows a session's terminal in ours: keys go to its shim, its screen comes to us.

use super::counted::Counted;
use super::keys::{before_detach, say_detached};
use super::tty::{self, Borrowed};
use crate::global::Global;
use crate::output::{Failure, Kind, talk};
use crate::signals::Signals;
use pinfold_core::RunNumber;
use pinfold_core::quoted::quoted;
use pinfold_kernel::awake;
use pinfold_shim::Decoder;
use pinfold_shim::attach::{Join, Keyboard, Seat, Shown, ViewerInput, connect};
use pinfold_terminal::{Allow, Filter};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes per read.
const READ: usize = 64 << 10;
/// The shim reports the end of a run first; a living daemon says how it ended within this time.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// How long the answer to a key is awaited without sleep.
const AWAKE: Duration = Duration::from_micros(200);

/// How long our terminal may take to answer a query; after that no answer is expected.
const LATE: Duration = Duration::from_millis(50);

/// Where a session's terminal is, and how to show it.
pub(super) struct AttachTarget<'a> {
    pub(super) name: &'a str,
    pub(super) socket: &'a Path,
    pub(super) run: u64,
    /// What pinfold does not notice of what is typed there.
    pub(super) note: Option<&'a str>,
    /// What its program may do to our terminal.
    pub(super) allow: Allow,
}

/// Why the terminal is no longer shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Detached,
    /// The run has ended.
    Ended,
    /// The shim has gone without a word.
    Lost,
    /// We got a signal, or our own terminal has gone.
    Asked,
}

/// Shows the terminal until the user detaches or the run ends.
pub(super) fn show(
    place: &AttachTarget<'_>,
    seat: Seat,
    counted: &mut Counted,
    signals: &Signals,
    global: &Global,
) -> Result<(), Failure> {
    if !tty::is_whole() {
        return Err(Failure::new(Kind::Usage, "`attach` needs a terminal for keys and screen")
            .hint(format!("`pinfold logs {} -f` follows the output without one", quoted(place.name))));
    }
    let size = tty::size().unwrap_or_default();
    let lost = |error: &(dyn std::error::Error + 'static)| Failure::from_error(Kind::Failed, error);
    let (stream, decoder) = connect(place.socket).map_err(|error| {
        if error.kind() != std::io::ErrorKind::PermissionDenied {
            return lost(&error);
        }
        let message = format!("another user's process answers at {}", place.socket.display());
        Failure::new(Kind::NotPermitted, message).hint("nothing was said to it")
    })?;
    let mut shown = Showing {
        stream,
        decoder,
        keyboard: Keyboard::Yours,
        watches: seat == Seat::Watches,
        filter: Filter::new(place.allow),
        passed: Vec::new(),
        asked: None,
    };
    if !global.quiet && !global.json {
        let types = if shown.watches { "looking on at" } else { "joining" };
        talk(&format!("{types} `{}`; Ctrl-] detaches", place.name));
        if let Some(note) = place.note.filter(|_| !shown.watches) {
            talk(&note);
        }
    }
    let borrowed = Borrowed::raw(size.rows()).map_err(|errno| lost(&errno))?;
    let join = Join { run: RunNumber(place.run), size, seat };
    let over = match shown.say(&ViewerInput::Join(join)) {
        Ok(()) => shown.live(signals),
        Err(_) => Over::Lost,
    };
    shown.drop_late_answers();
    drop(borrowed);
    tell(place.name, over, counted, global)
}

fn tell(name: &str, over: Over, counted: &mut Counted, global: &Global) -> Result<(), Failure> {
    let say = |text: String| {
        if !global.quiet {
            talk(&text);
        }
    };
    match over {
        Over::Detached => say_detached(name, global),
        Over::Ended => say(match counted.end_within(TOLD_WITHIN) {
            Some(how) => format!("`{name}` {how}"),
            None => format!("the run of `{name}` has ended"),
        }),
        Over::Asked => {}
        Over::Lost => {
            return Err(Failure::new(
                Kind::Failed,
                format!("the terminal of `{name}` is gone: its shim died"),
            )
            .hint(format!(
                "`pinfold why {0}` says what is; `pinfold attach {0}` tries again",
                quoted(name)
            )));
        }
    }
    Ok(())
}

struct Showing {
    stream: UnixStream,
    decoder: Decoder,
    keyboard: Keyboard,
    watches: bool,
    filter: Filter,
    /// Bytes that passed the filter and are still to be written.
    passed: Vec<u8>,
    /// When our terminal was last sent a query.
    asked: Option<Instant>,
}

impl Showing {
    fn live(&mut self, signals: &Signals) -> Over {
        let (mut typed, mut awake) = (vec![0; READ], Duration::ZERO);
        loop {
            let stdin = rustix::stdio::stdin();
            let mut fds = [
                PollFd::new(&self.stream, PollFlags::IN),
                PollFd::new(&stdin, PollFlags::IN),
                PollFd::new(signals, PollFlags::IN),
            ];
            match awake::poll(&mut fds, None, awake) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return Over::Asked,
            }
            let [shown, keys, signalled] = fds.map(|fd| !fd.revents().is_empty());
            awake = if keys { AWAKE } else { Duration::ZERO };
            // A new size goes to the shim before the keys typed after it.
            let over = None
                .or_else(|| if signalled { self.signals(signals) } else { None })
                .or_else(|| if shown { self.screen() } else { None })
                .or_else(|| if keys { self.keys(&mut typed) } else { None });
            if let Some(over) = over {
                return over;
            }
        }
    }

    fn say(&mut self, said: &ViewerInput) -> std::io::Result<()> {
        let mut frame = Vec::new();
        said.encode(&mut frame);
        self.stream.write_all(&frame)
    }

    /// Writes what has arrived to our screen.
    fn screen(&mut self) -> Option<Over> {
        match rustix::io::read(&self.stream, rustix::buffer::spare_capacity(self.decoder.room_for(READ))) {
            Ok(0) | Err(Errno::CONNRESET) => return Some(Over::Lost),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Some(Over::Lost),
        }
        self.passed.clear();
        let before = self.filter.questions();
        let over = self.understand();
        if self.filter.questions() != before {
            self.asked = Some(Instant::now());
        }
        if tty::show(&self.passed).is_err() { Some(Over::Asked) } else { over }
    }

    /// Understands what came; what is to be shown of it passes the filter.
    fn understand(&mut self) -> Option<Over> {
        loop {
            let frame = match self.decoder.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return None,
                Err(_) => return Some(Over::Lost),
            };
            if let Some(bytes) = Shown::output(&frame) {
                self.filter.pass(bytes, &mut self.passed);
                continue;
            }
            match Shown::decode(&frame) {
                Ok(Some(Shown::Keyboard(keyboard))) => self.keyboard = keyboard,
                Ok(Some(Shown::Ended)) => return Some(Over::Ended),
                Ok(Some(Shown::Output(_)) | None) => {}
                Err(_) => return Some(Over::Lost),
            }
        }
    }

    /// Discards late answers of our terminal, which would otherwise reach the shell that comes next.
    fn drop_late_answers(&self) {
        let mut answer = [0; 1024];
        while let Some(left) = self.asked.and_then(|asked| LATE.checked_sub(asked.elapsed())) {
            let stdin = rustix::stdio::stdin();
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            let until = pinfold_kernel::clock::timespec(left);
            match rustix::event::poll(&mut fds, Some(&until)) {
                Ok(1..) if rustix::io::read(stdin, &mut answer).is_ok_and(|count| count > 0) => {}
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn keys(&mut self, buffer: &mut [u8]) -> Option<Over> {
        let typed = match rustix::io::read(rustix::stdio::stdin(), &mut *buffer) {
            Ok(0) => return Some(Over::Asked),
            Ok(count) => &buffer[..count],
            Err(Errno::INTR | Errno::AGAIN) => return None,
            Err(_) => return Some(Over::Asked),
        };
        let (typed, over) = match before_detach(typed) {
            Some(before) => (before, Some(Over::Detached)),
            None => (typed, None),
        };
        if self.may_type(typed) && !typed.is_empty() && self.say(&ViewerInput::Typed(typed.to_vec())).is_err()
        {
            return Some(Over::Lost);
        }
        over
    }

    /// Whether our keys may go to the session. If another client has the keyboard, says so on the last line.
    fn may_type(&mut self, typed: &[u8]) -> bool {
        let Keyboard::Others(pid) = self.keyboard else { return !self.watches };
        // Input that begins like this is a mouse event or our terminal's answer to a query from the program.
        if !self.watches && !typed.starts_with(b"\x1b") && !typed.is_empty() {
            let mut out = std::io::stdout();
            // A process of another pid namespace has no number here.
            let who = if pid == 0 { "another process".to_owned() } else { format!("process {pid}") };
            let text = format!("{who} types; Ctrl-] detaches, `attach --now` takes the keyboard");
            _ = write!(out, "\x07\x1b7\x1b[9999;1H\x1b[7m[{text}]\x1b[m\x1b8");
            _ = out.flush();
        }
        false
    }

    fn signals(&mut self, signals: &Signals) -> Option<Over> {
        if signals.end_asked() {
            return Some(Over::Asked);
        }
        if let Some(size) = tty::size().filter(|_| signals.resized())
            && self.say(&ViewerInput::Resized(size)).is_err()
        {
            return Some(Over::Lost);
        }
        None
    }
}

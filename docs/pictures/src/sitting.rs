//! A program on a terminal of its own, with someone typing and looking.

use pinfold_terminal::{Size, Terminal};
use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A frame is on the terminal within this time.
const REST: Duration = Duration::from_millis(150);

/// A program that runs on a terminal. It is killed when this is dropped.
#[derive(Debug)]
pub struct Sitting {
    keyboard: OwnedFd,
    child: Child,
    screen: Arc<Screen>,
}

#[derive(Debug)]
struct Screen {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Debug)]
struct Seen {
    terminal: Terminal,
    over: bool,
}

/// The awaited text did not come.
#[derive(Debug)]
pub struct Unseen {
    /// What was on the screen instead.
    pub screen: String,
}

impl std::fmt::Display for Unseen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it was not seen on:\n{}", self.screen)
    }
}

impl std::error::Error for Unseen {}

impl Sitting {
    /// Starts a program on a terminal of this size. It leads a session that has the terminal, as in a window.
    ///
    /// # Errors
    /// No terminal, no program, or no `setsid` could be had.
    pub fn begin(command: &Command, size: Size) -> io::Result<Sitting> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keyboard = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&keyboard)?;
        rustix::pty::unlockpt(&keyboard)?;
        let name = rustix::pty::ptsname(&keyboard, Vec::new())?;
        let terminal =
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        let room = Winsize { ws_row: size.rows(), ws_col: size.columns(), ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&keyboard, room)?;
        let mut started = Command::new("setsid");
        started.arg("--ctty").arg(command.get_program()).args(command.get_args());
        started.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(dir) = command.get_current_dir() {
            started.current_dir(dir);
        }
        started.stdin(Stdio::from(terminal.try_clone()?)).stdout(Stdio::from(terminal.try_clone()?));
        let child = started.stderr(Stdio::from(terminal)).spawn()?;
        let seen = Mutex::new(Seen { terminal: Terminal::new(size), over: false });
        let screen = Arc::new(Screen { seen, changed: Condvar::new() });
        let (read, shown) = (keyboard.try_clone()?, Arc::clone(&screen));
        std::thread::spawn(move || shown.follow(&read));
        Ok(Sitting { keyboard, child, screen })
    }

    /// Types keys.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn keys(&self, mut keys: &[u8]) -> io::Result<()> {
        while !keys.is_empty() {
            let count = rustix::io::write(&self.keyboard, keys)?;
            keys = &keys[count..];
        }
        Ok(())
    }

    /// Waits until a text is on the screen.
    ///
    /// # Errors
    /// It does not come in time, or the program ends before.
    pub fn until(&self, text: &str, within: Duration) -> Result<(), Unseen> {
        self.wait(within, |seen| seen.terminal.text().contains(text))
    }

    /// Waits until the program has ended and all that it printed was read.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn until_its_end(&self, within: Duration) -> Result<(), Unseen> {
        self.wait(within, |seen| seen.over)
    }

    /// Waits until nothing new has come for a moment: what was awaited may be in the middle of a frame.
    pub fn until_it_rests(&self) {
        let mut before = None;
        loop {
            let now = self.look(Terminal::text);
            if before.as_ref() == Some(&now) {
                return;
            }
            before = Some(now);
            std::thread::sleep(REST);
        }
    }

    /// Looks at the screen.
    pub fn look<T>(&self, look: impl FnOnce(&Terminal) -> T) -> T {
        look(&self.screen.lock().terminal)
    }

    fn wait(&self, within: Duration, wanted: impl Fn(&Seen) -> bool) -> Result<(), Unseen> {
        let waits = |seen: &mut Seen| !wanted(seen) && !seen.over;
        let waited = self.screen.changed.wait_timeout_while(self.screen.lock(), within, waits);
        let (seen, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if wanted(&seen) { Ok(()) } else { Err(Unseen { screen: seen.terminal.text() }) }
    }
}

impl Screen {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is printed, and answers questions to the terminal, until its other side is closed.
    fn follow(&self, from: &OwnedFd) {
        let mut bytes = [0; 65536];
        loop {
            let count = rustix::io::read(from, &mut bytes).unwrap_or(0);
            let mut seen = self.lock();
            seen.terminal.feed(&bytes[..count]);
            let answers = seen.terminal.answers();
            seen.over = count == 0;
            drop(seen);
            self.changed.notify_all();
            if count == 0 {
                return;
            }
            _ = rustix::io::write(from, &answers);
        }
    }
}

impl Drop for Sitting {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

//! A terminal for a test: it types keys and reads the screen, as a person does.
#![expect(unsafe_code, reason = "a child takes its terminal between fork and exec")]

use crate::processes::PATIENCE;
use rustix::pty::OpenptFlags;
use rustix::termios::{Termios, Winsize};
use std::fmt::Write as _;
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A terminal with a program in it.
pub(crate) struct Tty {
    master: OwnedFd,
    slave: OwnedFd,
    pub(crate) child: Child,
    /// The terminal's settings before anything ran in it.
    pub(crate) before: String,
    screen: Arc<(Mutex<Seen>, Condvar)>,
    /// Where keys are typed that take their time.
    line: Option<(Sender<Piece>, Duration)>,
}

/// Bytes on a slow line, and when they come out of it.
type Piece = (Instant, Vec<u8>);

struct Seen {
    parser: vt100::Parser,
    all: Vec<u8>,
    over: bool,
}

/// A terminal's settings as text that can be compared.
fn settings(of: &OwnedFd) -> String {
    let Termios { input_modes, output_modes, control_modes, local_modes, special_codes, .. } =
        rustix::termios::tcgetattr(of).unwrap();
    format!("{input_modes:?} {output_modes:?} {control_modes:?} {local_modes:?} {special_codes:?}")
}

fn number(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

impl Tty {
    /// Opens a terminal of this size and starts a command in it.
    pub(crate) fn start(command: Command, rows: u16, columns: u16) -> Tty {
        Tty::open(command, (rows, columns), None)
    }

    /// The same at the other end of a slow line: what is typed and what is seen takes so long, each way.
    pub(crate) fn start_afar(command: Command, size: (u16, u16), delay: Duration) -> Tty {
        Tty::open(command, size, Some(delay))
    }

    fn open(mut command: Command, (rows, columns): (u16, u16), delay: Option<Duration>) -> Tty {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
        set_size(&master, rows, columns);
        let end = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm-256color");
        // SAFETY: two system calls that are allowed between fork and exec, and nothing else.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let before = settings(&slave);
        let child = command.spawn().unwrap();
        let parser = vt100::Parser::new(number(rows), number(columns), 0);
        let screen = Arc::new((Mutex::new(Seen { parser, all: Vec::new(), over: false }), Condvar::new()));
        let (reader, seen) = (master.try_clone().unwrap(), Arc::clone(&screen));
        let line = delay.map(|delay| {
            let keys = master.try_clone().unwrap();
            (carry(move |piece| write(&keys, piece)), delay)
        });
        std::thread::spawn(move || match delay {
            None => read(&reader, &mut |bytes| see(&seen, bytes)),
            Some(delay) => {
                let line = carry(move |piece| see(&seen, piece));
                read(&reader, &mut |bytes| _ = line.send((Instant::now() + delay, bytes.to_vec())));
            }
        });
        Tty { master, slave, child, before, screen, line }
    }

    /// The pid of the command.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Types keys.
    pub(crate) fn keys(&self, keys: &[u8]) {
        match &self.line {
            None => write(&self.master, keys),
            Some((line, delay)) => line.send((Instant::now() + *delay, keys.to_vec())).unwrap(),
        }
    }

    /// Waits until the screen is as wanted; shows it if that never happens.
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let (mutex, changed) = &*self.screen;
        let until = Instant::now() + PATIENCE;
        let mut seen = mutex.lock().unwrap();
        while !wanted(seen.parser.screen()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || seen.over {
                let tail = &seen.all[seen.all.len().saturating_sub(2000)..];
                let screen = seen.parser.screen().contents();
                panic!("no {what} on:\n{screen}\n--- {:?}", String::from_utf8_lossy(tail));
            }
            seen = changed.wait_timeout(seen, left.min(Duration::from_millis(500))).unwrap().0;
        }
    }

    pub(crate) fn shows(&self, text: &str) {
        self.until(&format!("`{text}`"), |screen| screen.contents().contains(text));
    }

    /// Whether a text appears before the program ends.
    pub(crate) fn comes_to(&mut self, text: &str) -> bool {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if self.everything().contains(text) {
                return true;
            }
            if self.is_over() {
                return self.everything().contains(text);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("neither `{text}` nor an end:\n{}", self.contents());
    }

    /// The text on the screen.
    pub(crate) fn contents(&self) -> String {
        self.screen.0.lock().unwrap().parser.screen().contents()
    }

    /// Every byte received, as text.
    pub(crate) fn everything(&self) -> String {
        let mut text = String::new();
        let all = self.screen.0.lock().unwrap().all.clone();
        write!(text, "{}", String::from_utf8_lossy(&all)).unwrap();
        text
    }

    /// Resizes the terminal, as a window manager does.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.screen.0.lock().unwrap().parser.set_size(number(rows), number(columns));
        set_size(&self.master, rows, columns);
    }

    pub(crate) fn settings(&self) -> String {
        settings(&self.slave)
    }

    /// Whether the program has ended. If it has, all of its output was received.
    pub(crate) fn is_over(&mut self) -> bool {
        let over = self.child.try_wait().unwrap().is_some();
        if over {
            self.drain();
        }
        over
    }

    /// Waits for the end of the program and of its output.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.drain();
                return status;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("it does not end; its screen:\n{}", self.contents());
    }

    /// Waits until everything that was written to the terminal was received. What a program wrote last can still
    /// be on its way when the program has ended, so a mark is written after it.
    fn drain(&self) {
        const MARK: &[u8] = b"\x1b_drained\x1b\\";
        let (mutex, changed) = &*self.screen;
        if rustix::io::write(&self.slave, MARK) != Ok(MARK.len()) {
            return;
        }
        let until = Instant::now() + PATIENCE;
        let mut seen = mutex.lock().unwrap();
        loop {
            if let Some(at) = seen.all.windows(MARK.len()).position(|piece| piece == MARK) {
                seen.all.drain(at..at + MARK.len());
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || seen.over {
                return;
            }
            seen = changed.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Detaches with its key, and checks that the terminal is as it was before.
    pub(crate) fn detach(&mut self) {
        self.keys(b"\x1d");
        assert!(self.ended().success());
    }
}

fn set_size(master: &OwnedFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(master, size).unwrap();
}

fn write(master: &OwnedFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let count = rustix::io::write(master, bytes).unwrap();
        bytes = &bytes[count..];
    }
}

/// A line that hands over each piece when it is due.
fn carry(out: impl Fn(&[u8]) + Send + 'static) -> Sender<Piece> {
    let (sender, receiver) = channel::<Piece>();
    std::thread::spawn(move || {
        for (due, piece) in receiver {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            out(&piece);
        }
    });
    sender
}

/// Reads to the end; that is told as nothing.
fn read(master: &OwnedFd, tell: &mut dyn FnMut(&[u8])) {
    let mut bytes = [0; 65536];
    loop {
        let count = rustix::io::read(master, &mut bytes).unwrap_or(0);
        tell(&bytes[..count]);
        if count == 0 {
            return;
        }
    }
}

fn see(screen: &(Mutex<Seen>, Condvar), bytes: &[u8]) {
    let mut seen = screen.0.lock().unwrap();
    seen.over = bytes.is_empty();
    seen.parser.process(bytes);
    seen.all.extend_from_slice(bytes);
    screen.1.notify_all();
}

impl Drop for Tty {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

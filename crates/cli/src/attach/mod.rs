//! Joins a session's terminal, takes over a headless session, or follows it.
//!
//! The daemon says where the terminal is and counts us; keys and screens go directly to the shim, so the
//! terminal stays open when the daemon dies.

mod counted;
mod follow;
mod keys;
mod terminal;
mod tty;

use crate::daemon::Daemon;
use crate::global::Global;
use crate::output::{Failure, Kind, talk};
use crate::{home, inside, signals};
use counted::{AttachmentNews, Counted};
use pinfold_api::object::AttachLine;
use pinfold_api::request::Attach as Request;
use pinfold_core::visible::visible;
use pinfold_daemon::Home;
use pinfold_shim::attach::Seat;
use pinfold_terminal::Allow;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStringExt;

/// What to attach to, and how.
pub(crate) struct AttachOptions<'a> {
    pub(crate) session: &'a str,
    /// Does not wait for the turn under way.
    pub(crate) now: bool,
    pub(crate) read_only: bool,
    pub(crate) seat: Seat,
}

/// Attaches until the user detaches or the session ends.
pub(crate) fn attach(attach: &AttachOptions<'_>, daemon: &Daemon) -> Result<(), Failure> {
    let global = &daemon.global;
    let home = home::home(global)?;
    refuse_own(attach.session, &home)?;
    let client = daemon.client()?;
    // Before any thread is started, so that all of them leave these signals to us.
    let signals = signals::take().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    let size = tty::size();
    let request = Request {
        rows: size.map_or(0, |size| size.rows()),
        columns: size.map_or(0, |size| size.columns()),
        now: attach.now,
        read_only: attach.read_only,
        again: false,
    };
    let mut counted = Counted::begin(client.clone(), attach.session, &request)?;
    let mut countdown = Countdown { shown: false, quiet: global.quiet };
    loop {
        let news = counted.wait(&signals)?;
        match news {
            AttachmentNews::Line(AttachLine::Waiting { message, left_ms }) => {
                countdown.show(&message, left_ms);
            }
            AttachmentNews::Line(AttachLine::Ready { socket, socket_bytes, run, note }) => {
                countdown.clear();
                let socket = socket_bytes.map_or_else(|| socket.into(), OsString::from_vec);
                let allow = allowed(&home, global);
                let (name, note) = (attach.session, note.as_deref());
                let place = terminal::AttachTarget { name, socket: socket.as_ref(), run, note, allow };
                return terminal::show(&place, attach.seat, &mut counted, &signals, global);
            }
            AttachmentNews::Line(AttachLine::Follow {}) => {
                countdown.clear();
                let write = !attach.read_only;
                return follow::follow(attach.session, &client, &mut counted, &signals, write, global);
            }
            AttachmentNews::Line(AttachLine::Failed(body)) => {
                countdown.clear();
                return Err((*body).into());
            }
            AttachmentNews::Line(AttachLine::Counted {} | AttachLine::Ended { .. })
            | AttachmentNews::Output(_) => {}
            // Asked to end before anything was shown: the request ends with the connection.
            AttachmentNews::Signal => return Err(Failure::new(Kind::Failed, "interrupted while waiting")),
        }
    }
}

/// What the program may do to our terminal. If the configuration cannot be read, the defaults apply.
fn allowed(home: &Home, global: &Global) -> Allow {
    match pinfold_daemon::config::load(&home.config) {
        Ok(config) => config.attach(),
        Err(error) => {
            if !global.quiet {
                talk(&format!("note: {}", Failure::from_error(Kind::BadConfig, &error)));
            }
            Allow::default()
        }
    }
}

/// Refuses to attach a session to its own terminal: a terminal that shows itself would never come to rest.
fn refuse_own(session: &str, home: &Home) -> Result<(), Failure> {
    let named = std::env::var("PINFOLD_SESSION").is_ok_and(|own| own == session);
    if named && inside::is_inside_of(home) {
        return Err(Failure::new(Kind::Usage, format!("you are inside session `{session}` already")));
    }
    Ok(())
}

/// What attach is waiting for, as one line on stderr that is rewritten.
struct Countdown {
    shown: bool,
    quiet: bool,
}

impl Countdown {
    fn show(&mut self, message: &str, left_ms: Option<u64>) {
        if self.quiet {
            return;
        }
        let left = left_ms.map(|ms| format!(" ({} s)", ms.div_ceil(1000))).unwrap_or_default();
        let mut out = std::io::stderr();
        _ = match out.is_terminal() {
            true => write!(out, "\r\x1b[K{}{left}", visible(message)),
            false => writeln!(out, "{}{left}", visible(message)),
        };
        self.shown = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) && std::io::stderr().is_terminal() {
            _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

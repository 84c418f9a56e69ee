//! The terminal that the UI is in: taken for it, and given back as it was however the UI ends.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{IsTerminal, Write};
use std::sync::Mutex;

/// Switched on: the other screen, pastes with their marks, focus. The title is put aside, where the terminal can.
const ENTER: &[u8] = b"\x1b[22;2t\x1b[?1049h\x1b[?2004h\x1b[?1004h\x1b[?25l";
/// The mouse, with presses and the wheel, in numbers.
const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l";
const LEAVE: &[u8] =
    b"\x1b[?1006l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[0m\x1b[?25h\x1b[?1049l\x1b[23;2t";

/// What a panic has to give back; the terminal itself is gone by then.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Whether keys and screen are both a terminal.
pub(super) fn is_whole() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Columns and rows of the terminal.
pub(super) fn size() -> (u16, u16) {
    let size = tcgetwinsize(rustix::stdio::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col, size.ws_row))
}

/// The terminal while the UI has it.
pub(super) struct Terminal {
    before: Termios,
    inside: bool,
}

impl Terminal {
    /// Takes it.
    pub(super) fn enter(mouse: bool) -> rustix::io::Result<Terminal> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        *BEFORE.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(before.clone());
        restore_on_panic();
        let mut terminal = Terminal { before, inside: false };
        terminal.resume(mouse)?;
        Ok(terminal)
    }

    /// Takes it again.
    pub(super) fn resume(&mut self, mouse: bool) -> rustix::io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
        self.inside = true;
        write(ENTER);
        if mouse {
            write(MOUSE);
        }
        Ok(())
    }

    /// Lends it to a program of ours. What was typed ahead is for that one, and is not dropped.
    pub(super) fn lend(&self) {
        write(LEAVE);
        _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }

    /// Gives it back for good.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.inside) {
            give_back(&self.before);
        }
    }

    /// Takes the mouse, or leaves it.
    pub(super) fn mouse(&self, wanted: bool) {
        write(if wanted { MOUSE } else { NO_MOUSE });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Writes all of it; a terminal that has gone is noticed by its signal.
pub(super) fn write(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    _ = out.write_all(bytes);
    _ = out.flush();
}

fn give_back(before: &Termios) {
    write(LEAVE);
    // What was typed for the UI is not for the shell.
    _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, before);
}

/// A panic is told on a screen that can be read. One of another thread costs its answer, and the UI goes on.
fn restore_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() != Some("main") {
            return;
        }
        let before = BEFORE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        before.iter().for_each(give_back);
        usual(info);
    }));
}

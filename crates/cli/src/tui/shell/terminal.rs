//! The terminal the UI runs in: set up for the UI, and restored however it ends.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{IsTerminal, Write};
use std::sync::Mutex;

/// Switches on the alternate screen, bracketed paste and focus reports, and saves the title where the terminal can.
const ENTER: &[u8] = b"\x1b[22;2t\x1b[?1049h\x1b[?2004h\x1b[?1004h\x1b[?25l";
/// Reports mouse presses and the wheel, with decimal coordinates.
const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l";
const LEAVE: &[u8] =
    b"\x1b[?1006l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[0m\x1b[?25h\x1b[?1049l\x1b[23;2t";

/// What a panic has to restore; the `Terminal` is gone by then.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Whether both stdin and stdout are a terminal.
pub(super) fn is_whole() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Columns and rows of the terminal.
pub(super) fn size() -> (u16, u16) {
    let size = tcgetwinsize(rustix::stdio::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col, size.ws_row))
}

/// The terminal while the UI uses it.
pub(super) struct UiTerminal {
    before: Termios,
    inside: bool,
}

impl UiTerminal {
    /// Sets the terminal up for the UI.
    pub(super) fn enter(mouse: bool) -> rustix::io::Result<UiTerminal> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        *BEFORE.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(before.clone());
        restore_on_panic();
        let mut terminal = UiTerminal { before, inside: false };
        terminal.resume(mouse)?;
        Ok(terminal)
    }

    /// Sets it up again after `leave`.
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

    /// Lends the terminal to another of our programs. What was typed ahead is kept for that program.
    pub(super) fn lend(&self) {
        write(LEAVE);
        _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }

    /// Restores the terminal for good.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.inside) {
            give_back(&self.before);
        }
    }

    /// Captures the mouse, or releases it.
    pub(super) fn mouse(&self, wanted: bool) {
        write(if wanted { MOUSE } else { NO_MOUSE });
    }
}

impl Drop for UiTerminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Writes all bytes; if the terminal has gone, a signal will say so.
pub(super) fn write(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    _ = out.write_all(bytes);
    _ = out.flush();
}

fn give_back(before: &Termios) {
    write(LEAVE);
    // Flush: keys typed for the UI are not for the shell.
    _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, before);
}

/// Restores the terminal before a panic is printed, so that it can be read. A panic in another thread only
/// costs its answer; the UI goes on.
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

//! The terminal we were started in; it is restored however we end.

use pinfold_shim::Size;
use rustix::io::Errno;
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{IsTerminal, Write};

/// Ctrl-], the detach key.
pub(super) const DETACH: u8 = 0x1d;

/// The size of our terminal, if there is one.
pub(super) fn size() -> Option<Size> {
    let size =
        tcgetwinsize(rustix::stdio::stdout()).or_else(|_| tcgetwinsize(rustix::stdio::stdin())).ok()?;
    Some(Size::new(size.ws_row, size.ws_col))
}

/// Whether both stdin and stdout are a terminal.
pub(super) fn is_whole() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Puts bytes on our screen, as they are and at once: standard output would split them after their last line.
pub(super) fn show(mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Our terminal while a session uses it. Dropping this restores it.
pub(super) struct Borrowed {
    before: Termios,
    screen: bool,
}

impl Borrowed {
    /// Raw mode: every key arrives as it is typed, and output is not changed on the way to the screen.
    pub(super) fn raw(rows: u16) -> rustix::io::Result<Borrowed> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
        // What is on the screen is scrolled into the scrollback, where the user can find it again.
        let mut out = std::io::stdout();
        _ = out.write_all(b"\x1b[9999;1H");
        _ = out.write_all(&vec![b'\n'; usize::from(rows)]);
        _ = out.flush();
        Ok(Borrowed { before, screen: true })
    }

    /// Line mode as usual, except that the detach key also ends a line.
    pub(super) fn lines() -> rustix::io::Result<Borrowed> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut lines = before.clone();
        lines.special_codes[SpecialCodeIndex::VEOL] = DETACH;
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &lines)?;
        Ok(Borrowed { before, screen: false })
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if self.screen {
            let mut out = std::io::stdout();
            _ = out.write_all(pinfold_terminal::LEAVE);
            _ = out.write_all(b"\r\n");
            _ = out.flush();
        }
        // Flush: keys typed for the session are not for the shell.
        _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &self.before);
    }
}

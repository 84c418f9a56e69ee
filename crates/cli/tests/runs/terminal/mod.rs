//! The terminal UI on a real pseudo-terminal: keys are typed, the screen is read, and the daemon is asked for
//! the outcome.

mod afar;
mod away;
#[path = "../../../src/tui/key.rs"]
mod key;
#[expect(dead_code, reason = "the table of keys is the program's own; only its rows are needed here")]
#[path = "../../../src/tui/keymap.rs"]
mod keymap;
mod keys;
mod places;
mod same;
#[expect(dead_code, reason = "what is known is the program's own; not all of it is needed here")]
#[path = "../../../src/tui/sessions.rs"]
mod sessions;

use crate::tty::Tty;
use crate::world::World;

impl World {
    /// Opens the UI in a terminal of 40 lines and 120 columns.
    fn tui(&self) -> Tty {
        let tty = Tty::start(self.command(&[]), 40, 120);
        tty.until("the first line", |screen| {
            screen.contents().contains("pinfold") && !screen.contents().contains("connecting")
        });
        tty
    }
}

/// Selects a session by searching for its name; it stays selected when the search is left.
fn select(tty: &Tty, name: &str) {
    tty.keys(format!("/{name}\r").as_bytes());
    tty.shows("leaves the search");
    tty.keys(b"\x1b");
    // A key sent together with this one would make another key.
    gone(tty, "leaves the search");
    on(tty, name);
}

/// Waits until a session is selected: its name is on the line above its details.
fn on(tty: &Tty, name: &str) {
    tty.shows(&format!("── {name} ─"));
}

/// Waits until a text is no longer on the screen.
fn gone(tty: &Tty, text: &str) {
    tty.until(&format!("end of `{text}`"), |screen| !screen.contents().contains(text));
}

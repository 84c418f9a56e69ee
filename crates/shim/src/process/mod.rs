//! The shim itself: one thread, one loop, waiting only for the kernel.
//!
//! It holds the locks, starts agents one after the other, reads what they print, ends their trees, records
//! how they ended, and only then reports it. Daemons come and go meanwhile.

mod bell;
mod child;
mod commands;
mod daemons;
mod ending;
mod frame_socket;
mod gate;
mod guest;
mod guests;
mod hold;
mod input;
mod notify;
mod nursery;
mod opening;
mod output;
mod process_title;
mod pty;
mod raw;
mod reaping;
mod run;
mod sender;
mod shape;
mod shim;
mod spare;
mod start;
mod survivors;
mod taped;
mod taped_input;
mod taping;
mod tree;
mod turns;
mod usher;
mod viewer;

pub(crate) use raw::ends_are_told;
pub(crate) use survivors::survivor;

use std::process::ExitCode;

/// The life of a shim, which is told what to keep on its standard input, by [`crate::client::spawn()`]; or
/// that of a nursery.
#[must_use]
pub fn main() -> ExitCode {
    // It does what its parent says.
    if pinfold_kernel::own::has_borrowed_rights() {
        eprintln!("error: pinfold-shim runs commands, so it is never set-uid or set-gid");
        return ExitCode::FAILURE;
    }
    if let Some(code) = crate::bridge::asked(&std::env::args_os().collect::<Vec<_>>()) {
        return code;
    }
    // The room for names follows it. A session may have this name too.
    if std::env::args_os().nth_back(1).is_some_and(|word| word == crate::protocol::NURSERY) {
        return nursery::serve(process_title::Title::from_word_on(crate::protocol::NURSERY));
    }
    life(None)
}

fn life(title: Option<&process_title::Title>) -> ExitCode {
    match opening::open(title) {
        Ok(shim) => shim.live(),
        Err(error) => {
            opening::say_why(&error);
            // For a person who tries it by hand.
            eprintln!("error: {error}\nhint: pinfold-shim is started by pinfold, not by hand");
            ExitCode::FAILURE
        }
    }
}

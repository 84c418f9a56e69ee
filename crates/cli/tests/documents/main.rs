//! The documents: every command line in them is run, or says why not; every link leads somewhere; every page
//! of the reference matches what the program says now.
//!
//! A block of `sh` is run as it stands, all blocks of a page one after the other in one throw-away user's
//! home. A block of `console` also shows what is printed: its lines after `$ ` are run. HTML comments in
//! front of a block, which no reader sees, say more:
//!
//! - `<!-- not run: REASON -->`: it is not run; its verbs and options are checked all the same
//! - `<!-- needs: PROGRAM PROGRAM -->`: it is run by `./test programs`, which installs these
//! - `<!-- first: COMMANDS -->`: makes what a reader already has, before the block is run
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod links;
mod page;
mod program;
mod reference;
mod run;
mod spelled;
mod words;

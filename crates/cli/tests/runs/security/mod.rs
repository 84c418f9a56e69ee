//! The program tried by who wants more than is theirs: another user, an agent that is confined or was talked into
//! something, a repository with a prepared home, a name that is a command. `./test security` runs these.

mod bounds;
mod callers;
mod folders;
mod hints;
mod holders;
mod homes;
mod notify;
mod peers;
mod sandbox;
mod screens;
mod secrets;
mod shims;

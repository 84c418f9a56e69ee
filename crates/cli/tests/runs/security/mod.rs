//! Attacks by callers who want more than they are entitled to: another user, an agent that is confined or was
//! talked into something, a repository with a prepared home, a name that is a command. `./test security` runs
//! these.

mod bounds;
mod callers;
mod folders;
mod hints;
mod holders;
mod homes;
mod log;
mod notify;
mod peers;
mod repositories;
mod sandbox;
mod screens;
mod secrets;
mod shims;
mod snapshot;
mod starter;
mod zoo;

use rustix::process::{Gid, Uid};

/// A user id that is registered nowhere.
const OTHER: u32 = 54_321;

/// Does something as another user, in a thread, since the user of a single thread can be changed.
fn as_another<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let life = move || {
        let (user, group) = (Uid::from_raw(OTHER), Gid::from_raw(OTHER));
        rustix::thread::set_thread_groups(&[group]).unwrap();
        rustix::thread::set_thread_res_gid(group, group, group).unwrap();
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        what()
    };
    std::thread::spawn(life).join().unwrap()
}

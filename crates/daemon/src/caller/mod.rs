//! Who asks: a person, a process of a run, or one that is confined. Known by the socket's peer, never by what it says.

mod pass;
mod rule;

pub(crate) use pass::{Pass, Wanted};
pub(crate) use rule::{Act, MAY};

use pinfold_core::caller::Standing;
use pinfold_lock::caller::Peer;
use pinfold_store::SessionId;
use rustix::io::Errno;
use serde_json::{Value, json};
use std::os::fd::BorrowedFd;

/// The process that made a connection.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Nothing where it is in a pid namespace that cannot be seen from here.
    pub(crate) pid: Option<u32>,
    pub(crate) user: u32,
    program: Option<String>,
    pub(crate) standing: Standing,
}

impl Caller {
    /// Looks at a peer, once for a connection; an error says nothing about it.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> Result<Caller, Errno> {
        let peer = Peer::of(socket)?;
        let standing = peer.place()?;
        let program = peer.program().map(|path| path.display().to_string());
        Ok(Caller { pid: peer.pid, user: peer.user, program, standing })
    }

    /// What the events say of it; `session` is the one whose run it belongs to.
    pub(crate) fn by(&self, session: Option<(SessionId, String)>) -> By {
        let in_run = !self.standing.shims.is_empty();
        let mut words = json!({
            "kind": if in_run { "session" } else { "person" },
            "pid": self.pid,
            "user": self.user,
            "exe": self.program,
        });
        if in_run {
            words["session"] = json!(session.as_ref().map(|(_, name)| name));
        }
        if self.standing.is_confined() {
            words["confined"] = self.standing.confined.iter().map(ToString::to_string).collect();
        }
        By { session, words }
    }
}

/// Who asked for something, as it is written down.
#[derive(Debug, Clone)]
pub(crate) struct By {
    /// The session whose run asked.
    pub(crate) session: Option<(SessionId, String)>,
    /// The object of the events.
    pub(crate) words: Value,
}

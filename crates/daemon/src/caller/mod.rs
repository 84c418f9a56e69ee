//! Who asks: a person, a process of a run, or a confined one. Identified by the socket's peer, never by what
//! it claims.

mod pass;
mod rule;

pub(crate) use pass::{CallerLimits, Pass};
pub(crate) use rule::{Act, CallerKind, MAY, SessionRelation, permits};

use pinfold_core::caller::CallerStanding;
use pinfold_kernel::caller::{Neighbours, Peer};
use pinfold_kernel::peer::Other;
use pinfold_kernel::proc::program;
use pinfold_store::SessionId;
use rustix::io::Errno;
use serde_json::{Value, json};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, LazyLock};

/// The process that made a connection.
#[derive(Debug)]
pub(crate) struct Caller {
    /// `None` if it is in a pid namespace that cannot be seen from here.
    pub(crate) pid: Option<u32>,
    pub(crate) user: u32,
    pub(crate) standing: CallerStanding,
}

impl Caller {
    /// Looks at a peer, once for each connection; an error says nothing about it.
    pub(crate) fn of(other: Other, socket: BorrowedFd<'_>) -> Result<Caller, Errno> {
        static KNOWN: LazyLock<Neighbours> = LazyLock::new(Neighbours::default);
        let peer = Peer::known_as(other, socket)?;
        let standing = pinfold_shim::caller::place(&peer, Some(&KNOWN))?;
        Ok(Caller { pid: peer.pid, user: peer.user, standing })
    }
}

/// The caller that asked for something.
#[derive(Debug, Clone)]
pub(crate) struct By {
    caller: Arc<Caller>,
    /// The session whose run asked.
    pub(crate) session: Option<(SessionId, String)>,
}

impl By {
    pub(crate) fn new(caller: Arc<Caller>, session: Option<(SessionId, String)>) -> By {
        By { caller, session }
    }

    /// The highest shim above it: a process that calls itself a shim is still below its own.
    pub(crate) fn shim(&self) -> Option<u32> {
        self.caller.standing.shims.last().copied()
    }

    /// What the events say of it. Made only for what is recorded: most requests change nothing.
    pub(crate) fn words(&self) -> Value {
        let Caller { pid, user, standing } = &*self.caller;
        let in_run = !standing.shims.is_empty();
        let mut words = json!({
            "kind": if in_run { "session" } else { "person" },
            "pid": pid,
            "user": user,
            "exe": pid.and_then(program).map(|path| path.display().to_string()),
        });
        if in_run {
            words["session"] = json!(self.session.as_ref().map(|(_, name)| name));
        }
        if standing.is_confined() {
            words["confined"] = standing.confined.iter().map(ToString::to_string).collect();
        }
        words
    }
}

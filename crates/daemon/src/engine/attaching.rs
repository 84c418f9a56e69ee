//! Those who attach and are not there yet: what each asked for, what it is told, and where the way to a terminal is.
//! Data only.

use super::session_view::{SessionView, Snapshot};
use super::why_not::WhyNot;
use crate::caller::By;
use crate::ports::shims::LinkNumber;
use pinfold_core::decision::{Answer, TakeoverEnd};
use pinfold_core::event::Joins;
use pinfold_core::life::CannotStart;
use pinfold_core::{ConsumerId, Exit, Refusal, RunNumber};
use pinfold_shim::Size;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// How somebody wants to attach.
pub(crate) struct Attach {
    pub(crate) consumer: ConsumerId,
    /// The size that the next terminal shall have, where it is to have that of the one who attaches.
    pub(crate) size: Option<Size>,
    pub(crate) urgent: bool,
    pub(crate) read_only: bool,
    pub(crate) by: Option<Arc<By>>,
    /// Why the terminal program could not be started, where it was looked for in vain.
    pub(crate) no_program: Option<CannotStart>,
}

/// What somebody joined.
pub(crate) enum Attached {
    /// Its output is to be followed.
    Output,
    /// A terminal that is there, or comes: how that stands, from the first moment at which it is known.
    Terminal(Standings),
}

/// Whoever waits to hear whether they are attached; it is durable then.
pub(crate) type AttachReply = oneshot::Sender<Result<Attached, NotAttached>>;

/// Tells how an attach stands, whenever that changes. It ends with a terminal, or with why there is none; where it ends
/// with neither, the session is gone.
pub(crate) type Standings = watch::Receiver<Option<Standing>>;

/// How an attach stands.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// Something has to happen to the session first.
    Waits(Box<SessionView>),
    /// There is a terminal, and the way to it was removed; its shim was told to make another.
    NoSocket(Box<SessionView>),
    /// There is a terminal.
    Ready { socket: PathBuf, run: RunNumber, guest: Option<u64> },
    /// There is none.
    Over(NotAttached),
}

/// Why somebody is not attached.
#[derive(Debug, Clone)]
pub(crate) enum NotAttached {
    /// It is not a matter of the session.
    Unable(WhyNot),
    /// The terminal program of the session that takes its run's place cannot be started.
    NoProgram { name: String, cause: CannotStart },
    /// The session refuses, or does not go on by itself.
    Refused(Refusal, Box<SessionView>),
    /// The terminal program beside its run has ended, or could not be started.
    NoGuest(Option<GuestEnd>, Box<SessionView>),
    /// Its shim is older than terminal programs beside a run.
    OldShim { name: String },
    /// The takeover ended without a terminal, in this way.
    NotTakenOver(Option<TakeoverEnd>, Box<SessionView>),
}

/// How a terminal program beside a run ended, and why it could not be started where it could not.
#[derive(Debug, Clone)]
pub(crate) struct GuestEnd {
    pub(crate) exit: Exit,
    pub(crate) text: Option<String>,
}

/// Something that an attach waited for.
pub(crate) enum AttachNews {
    /// The socket of this connection's shim was looked for.
    SocketSought { link: LinkNumber, found: Option<PathBuf> },
    /// A shim that could not make its socket has had time.
    SocketDue { link: LinkNumber },
    /// Somebody whose turn it was asked for a takeover.
    TurnAnswered { consumer: ConsumerId, answer: Result<Answer, WhyNot> },
}

/// Everybody who attaches to a session and is not there yet.
#[derive(Debug, Default)]
pub(crate) struct Attaching {
    pub(super) waiting: Vec<Waiting>,
    /// The way to the terminal, of this connection's shim.
    door: Option<(LinkNumber, Door)>,
}

/// Somebody who attaches.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(super) consumer: ConsumerId,
    pub(super) joins: Joins,
    pub(super) urgent: bool,
    pub(super) read_only: bool,
    pub(super) by: Option<Arc<By>>,
    pub(super) turn: Turn,
    /// How a takeover ended since this one waits.
    pub(super) ended: Option<TakeoverEnd>,
    /// How a guest ended since this one waits.
    pub(super) guest: Option<GuestEnd>,
    pub(super) told: watch::Sender<Option<Standing>>,
    /// How the session stood when this one was told to wait for it.
    pub(super) seen: Option<Snapshot>,
}

impl Waiting {
    /// Notes how the session is that is waited for. It is news where the session stands otherwise than before; where it does
    /// not, the words that are said again with the time are of how it is now.
    pub(super) fn waits(&mut self, view: Box<SessionView>, now: Snapshot) {
        let news = self.seen.replace(now) != Some(now);
        self.told.send_if_modified(|standing| {
            *standing = Some(Standing::Waits(view));
            news
        });
    }
}

/// Whose takeover somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Somebody else's.
    Others,
    /// It has asked for its own, and has no answer yet.
    Asked,
    /// Its own.
    Own,
}

/// How far the search for a shim's socket has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// It is looked for; whether the shim has been told to make it before.
    Sought { told: bool },
    /// It was not there: the shim was told to make it, and to give a sign of life after that.
    Told,
    /// It was not there after that either: the shim is told again later.
    Later,
}

impl Attaching {
    /// Forgets those who have gone.
    pub(super) fn forget_gone(&mut self) {
        self.waiting.retain(|waiting| !waiting.told.is_closed());
    }

    pub(super) fn of(&mut self, consumer: ConsumerId) -> Option<&mut Waiting> {
        self.waiting.iter_mut().find(|waiting| waiting.consumer == consumer)
    }

    /// A takeover has ended: all who wait have waited for it.
    pub(super) fn takeover_ended(&mut self, how: TakeoverEnd) {
        self.waiting.iter_mut().for_each(|waiting| waiting.ended = Some(how));
    }

    /// A terminal program beside the run has ended.
    pub(super) fn guest_ended(&mut self, how: &GuestEnd) {
        self.waiting.iter_mut().for_each(|waiting| waiting.guest = Some(how.clone()));
    }

    /// Tells somebody how it ends.
    pub(super) fn end(&mut self, consumer: ConsumerId, why: NotAttached) {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.consumer == consumer) {
            self.waiting.swap_remove(at).told.send_replace(Some(Standing::Over(why)));
        }
    }

    /// How far the search for the socket of this connection's shim has come.
    pub(super) fn door(&self, link: LinkNumber) -> Option<Door> {
        self.door.filter(|(of, _)| *of == link).map(|(_, door)| door)
    }

    pub(super) fn set_door(&mut self, link: LinkNumber, door: Option<Door>) {
        self.door = door.map(|door| (link, door));
    }
}

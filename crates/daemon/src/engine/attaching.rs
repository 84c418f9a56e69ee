//! Clients that are attaching: what each asked for, what it was told, and how far the search for the
//! terminal's socket is. Data only.

use super::session_view::{SessionSnapshot, SessionView};
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

/// A client's request to attach.
pub(crate) struct AttachRequest {
    pub(crate) consumer: ConsumerId,
    /// The size for the next terminal, if it is to match the client's.
    pub(crate) size: Option<Size>,
    pub(crate) urgent: bool,
    pub(crate) read_only: bool,
    pub(crate) by: Option<Arc<By>>,
    /// Why the terminal program cannot be started, if it was looked for and not found.
    pub(crate) no_program: Option<CannotStart>,
}

/// What a client was attached to.
pub(crate) enum AttachedTo {
    /// The session's output, to be followed.
    Output,
    /// A terminal that exists or is coming; reports where that stands, from the first moment it is known.
    Terminal(Standings),
}

/// The reply to an attach; sent once the attach is durable.
pub(crate) type AttachReply = oneshot::Sender<Result<AttachedTo, NotAttached>>;

/// Reports where an attach stands, whenever that changes. It ends with a terminal or with the reason there is
/// none; if it ends with neither, the session is gone.
pub(crate) type Standings = watch::Receiver<Option<AttachStanding>>;

/// Where an attach stands.
#[derive(Debug, Clone)]
pub(crate) enum AttachStanding {
    /// Something has to happen to the session first.
    Waits(Box<SessionView>),
    /// There is a terminal, but its socket was removed; the shim was told to make another.
    NoSocket(Box<SessionView>),
    /// The terminal can be reached.
    Ready { socket: PathBuf, run: RunNumber, guest: Option<u64> },
    /// There will be no terminal.
    Over(NotAttached),
}

/// Why a client is not attached.
#[derive(Debug, Clone)]
pub(crate) enum NotAttached {
    /// The reason lies outside the session.
    Unable(WhyNot),
    /// The terminal program that would take the run's place cannot be started.
    NoProgram { name: String, cause: CannotStart },
    /// The session refuses, or does not go on by itself.
    Refused(Refusal, Box<SessionView>),
    /// The terminal program beside its run has ended, or could not be started.
    NoGuest(Option<GuestEnd>, Box<SessionView>),
    /// Its shim predates guests.
    OldShim { name: String },
    /// The takeover ended without a terminal, in this way.
    NotTakenOver(Option<TakeoverEnd>, Box<SessionView>),
}

/// How a guest ended; if it could not be started, why.
#[derive(Debug, Clone)]
pub(crate) struct GuestEnd {
    pub(crate) exit: Exit,
    pub(crate) text: Option<String>,
}

/// An event that an attach was waiting for.
pub(crate) enum AttachNews {
    /// The search for the socket of this link's shim has ended.
    SocketSought { link: LinkNumber, found: Option<PathBuf> },
    /// A shim that could not make its socket has had time to try again.
    SocketDue { link: LinkNumber },
    /// The takeover that a client asked for at its turn was answered.
    TurnAnswered { consumer: ConsumerId, answer: Result<Answer, WhyNot> },
}

/// All clients that are attaching to a session.
#[derive(Debug, Default)]
pub(crate) struct AttachQueue {
    pub(super) waiting: Vec<AttachingClient>,
    /// The link to the shim, and how far the search for its socket is.
    door: Option<(LinkNumber, Door)>,
}

/// A client that is attaching.
#[derive(Debug)]
pub(crate) struct AttachingClient {
    pub(super) consumer: ConsumerId,
    pub(super) joins: Joins,
    pub(super) urgent: bool,
    pub(super) read_only: bool,
    pub(super) by: Option<Arc<By>>,
    pub(super) turn: TakeoverTurn,
    /// How a takeover ended since this client began to wait.
    pub(super) ended: Option<TakeoverEnd>,
    /// How a guest ended since this client began to wait.
    pub(super) guest: Option<GuestEnd>,
    pub(super) told: watch::Sender<Option<AttachStanding>>,
    /// The session as it was when this client was last told to wait.
    pub(super) seen: Option<SessionSnapshot>,
}

impl AttachingClient {
    /// Notes the state of the session that the client waits for. It is news only if that state differs from
    /// before; otherwise only the view is replaced, so that words repeated later are up to date.
    pub(super) fn waits(&mut self, view: Box<SessionView>, now: SessionSnapshot) {
        let news = self.seen.replace(now) != Some(now);
        self.told.send_if_modified(|standing| {
            *standing = Some(AttachStanding::Waits(view));
            news
        });
    }
}

/// Whose takeover a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakeoverTurn {
    /// Another client's takeover.
    Others,
    /// It has asked for its own and has no answer yet.
    Asked,
    /// Its own takeover.
    Own,
}

/// How far the search for a shim's socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// Being looked for; `told` says whether the shim was already told to make it.
    Sought { told: bool },
    /// Missing: the shim was told to make it and then give a sign of life.
    Told,
    /// Still missing after that: the shim is told again later.
    Later,
}

impl AttachQueue {
    /// Drops clients that have gone.
    pub(super) fn forget_gone(&mut self) {
        self.waiting.retain(|waiting| !waiting.told.is_closed());
    }

    pub(super) fn of(&mut self, consumer: ConsumerId) -> Option<&mut AttachingClient> {
        self.waiting.iter_mut().find(|waiting| waiting.consumer == consumer)
    }

    /// A takeover has ended; every waiting client waited for it.
    pub(super) fn takeover_ended(&mut self, how: TakeoverEnd) {
        self.waiting.iter_mut().for_each(|waiting| waiting.ended = Some(how));
    }

    /// A terminal program beside the run has ended.
    pub(super) fn guest_ended(&mut self, how: &GuestEnd) {
        self.waiting.iter_mut().for_each(|waiting| waiting.guest = Some(how.clone()));
    }

    /// Tells a client that its attach has ended, and why.
    pub(super) fn end(&mut self, consumer: ConsumerId, why: NotAttached) {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.consumer == consumer) {
            self.waiting.swap_remove(at).told.send_replace(Some(AttachStanding::Over(why)));
        }
    }

    /// How far the search for the socket of this link's shim is.
    pub(super) fn door(&self, link: LinkNumber) -> Option<Door> {
        self.door.filter(|(of, _)| *of == link).map(|(_, door)| door)
    }

    pub(super) fn set_door(&mut self, link: LinkNumber, door: Option<Door>) {
        self.door = door.map(|door| (link, door));
    }
}

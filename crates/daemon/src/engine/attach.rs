//! Attach: one command, decided by the core in one step. A client without a terminal yet is told where its
//! attach stands whenever the session changes, until there is a terminal or there will be none. The wording
//! is elsewhere.

use super::Engine;
use super::attaching::{
    AttachNews, AttachReply, AttachRequest, AttachStanding, AttachedTo, AttachingClient, Door, NotAttached,
    TakeoverTurn,
};
use super::session::Tracked;
use super::why_not::WhyNot;
use crate::engine::input::LoopInput;
use crate::engine::reply::ReplyHandle;
use crate::ports::shims::LinkNumber;
use pinfold_core::attach::Reached;
use pinfold_core::decision::{Answer, TakeoverEnd};
use pinfold_core::event::{Ask, ConsumerKind, Joins};
use pinfold_core::guest::Attaching;
use pinfold_core::{ConsumerId, Event, Life, Mode};
use pinfold_shim::Command;
use pinfold_store::{Facts, SessionId};
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;

/// Delay before a shim that could not make its socket is told again: nothing reports when it could.
const TELL_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// Asks the core, and keeps the client waiting if there is no terminal yet.
    pub(super) fn begin_attach(&mut self, id: SessionId, attach: AttachRequest, reply: AttachReply) {
        let Some(tracked) = self.sessions.get_mut(&id) else {
            _ = reply.send(Err(NotAttached::Unable(WhyNot::Gone)));
            return;
        };
        tracked.terminal = attach.size.unwrap_or(tracked.terminal);
        let (consumer, urgent) = (attach.consumer, attach.urgent);
        let joins = joins(tracked, attach.read_only);
        let held = matches!(tracked.session.life(), Life::Held { .. });
        let there = held || tracked.session.has_guest();
        // Never end a run for a terminal program that does not exist.
        if let (Joins::Takeover | Joins::Guest, false, Some(cause)) = (joins, there, attach.no_program) {
            let name = tracked.name.clone();
            _ = reply.send(Err(NotAttached::NoProgram { name, cause }));
            return;
        }
        let old = tracked.shim.as_ref().is_some_and(|shim| !shim.can.guest);
        if joins == Joins::Guest && old && matches!(tracked.session.life(), Life::Running { .. }) {
            _ = reply.send(Err(NotAttached::OldShim { name: tracked.name.clone() }));
            return;
        }
        let facts = Facts { by: attach.by.as_ref().map(|by| by.words()), ..Facts::default() };
        let (told, standings) = watch::channel(None);
        let view = Box::new(tracked.view());
        let answered = ReplyHandle::then(move |answer| {
            _ = reply.send(match answer {
                Ok(Answer::Refused(refusal)) => Err(NotAttached::Refused(refusal, view)),
                Ok(_) if joins == Joins::Output => Ok(AttachedTo::Output),
                Ok(_) => Ok(AttachedTo::Terminal(standings)),
                Err(why) => Err(NotAttached::Unable(why)),
            });
        });
        let (read_only, by) = (attach.read_only, attach.by);
        self.happened(id, &Event::Asked(Ask::Attach { consumer, joins, urgent }), &facts, Some(answered));
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let own = tracked.session.takeover().is_some_and(|takeover| takeover.consumer == consumer);
        let turn = if own { TakeoverTurn::Own } else { TakeoverTurn::Others };
        let counted = tracked.session.connected().any(|(counted, _)| counted == consumer);
        if counted && joins != Joins::Output {
            let (ended, guest, seen) = (None, None, None);
            let waiting =
                AttachingClient { consumer, joins, urgent, read_only, by, turn, ended, guest, told, seen };
            tracked.attaching.waiting.push(waiting);
        }
    }

    /// Counts a client that already has the terminal; it leaves with that terminal.
    pub(super) fn attach_again(&mut self, id: SessionId, attach: &AttachRequest, reply: ReplyHandle) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return reply.refuse(WhyNot::Gone) };
        tracked.terminal = attach.size.unwrap_or(tracked.terminal);
        let shown = joins(tracked, attach.read_only) != Joins::Output;
        if let Some(run) = tracked.run.as_mut().filter(|_| shown) {
            run.viewers.push(attach.consumer);
        }
        let event = Event::ConsumerJoined { consumer: attach.consumer, kind: ConsumerKind::Attach };
        let facts = Facts { by: attach.by.as_ref().map(|by| by.words()), ..Facts::default() };
        self.happened(id, &event, &facts, Some(reply));
    }

    /// Finds the existing terminal for a client that only watches: nothing is started, and the client is not
    /// counted.
    pub(super) fn begin_look(&mut self, id: SessionId, consumer: ConsumerId, reply: AttachReply) {
        let Some(tracked) = self.sessions.get_mut(&id) else {
            _ = reply.send(Err(NotAttached::Unable(WhyNot::Gone)));
            return;
        };
        let joins = joins(tracked, true);
        let there = tracked.shim.is_some() && matches!(tracked.session.reached(joins), Reached::Terminal(_));
        if joins == Joins::Output || !there {
            _ = reply.send(Ok(AttachedTo::Output));
            return;
        }
        let (told, standings) = watch::channel(None);
        let (urgent, read_only, by, turn) = (false, true, None, TakeoverTurn::Others);
        let (ended, guest, seen) = (None, None, None);
        let waiting =
            AttachingClient { consumer, joins, urgent, read_only, by, turn, ended, guest, told, seen };
        tracked.attaching.waiting.push(waiting);
        _ = reply.send(Ok(AttachedTo::Terminal(standings)));
        self.tell_attaching(id);
    }

    /// Tells the clients that are attaching where that stands now.
    pub(super) fn tell_attaching(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        tracked.attaching.forget_gone();
        let all: Vec<ConsumerId> = tracked.attaching.waiting.iter().map(|waiting| waiting.consumer).collect();
        for consumer in all {
            self.tell_standing(id, consumer);
        }
    }

    fn tell_standing(&mut self, id: SessionId, consumer: ConsumerId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let Some(joins) = tracked.attaching.of(consumer).map(|waiting| waiting.joins) else { return };
        match tracked.session.reached(joins) {
            Reached::Terminal(_) if tracked.shim.is_some() => self.seek_socket(id),
            Reached::Terminal(_) | Reached::NotYet => {
                let (view, now) = (Box::new(tracked.view()), tracked.snapshot());
                if let Some(waiting) = tracked.attaching.of(consumer) {
                    waiting.waits(view, now);
                }
            }
            Reached::Never(refusal) => {
                let view = Box::new(tracked.view());
                tracked.attaching.end(consumer, NotAttached::Refused(refusal, view));
            }
            Reached::NoTakeover => self.take_turn(id, consumer),
            Reached::NoGuest => {
                let view = Box::new(tracked.view());
                let how = tracked.attaching.of(consumer).and_then(|waiting| waiting.guest.clone());
                tracked.attaching.end(consumer, NotAttached::NoGuest(how, view));
            }
        }
    }

    /// Another client's terminal program ended before this client got it: now this client asks for its own.
    fn take_turn(&mut self, id: SessionId, consumer: ConsumerId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let Some(waiting) = tracked.attaching.of(consumer) else { return };
        let ended = waiting.ended;
        let free = matches!(ended, None | Some(TakeoverEnd::Held)) && !waiting.read_only;
        match waiting.turn {
            TakeoverTurn::Asked => return,
            TakeoverTurn::Others if free => {}
            TakeoverTurn::Others | TakeoverTurn::Own => {
                let view = Box::new(tracked.view());
                return tracked.attaching.end(consumer, NotAttached::NotTakenOver(ended, view));
            }
        }
        waiting.turn = TakeoverTurn::Asked;
        let ask = Ask::Takeover { consumer, urgent: waiting.urgent };
        let facts = Facts { by: waiting.by.as_ref().map(|by| by.words()), ..Facts::default() };
        let handle = self.handle.clone();
        let answered = ReplyHandle::then(move |answer| {
            handle.tell(LoopInput::Attaching { id, news: AttachNews::TurnAnswered { consumer, answer } });
        });
        self.happened(id, &Event::Asked(ask), &facts, Some(answered));
    }

    pub(super) fn attach_news(&mut self, id: SessionId, news: AttachNews) {
        match news {
            AttachNews::SocketSought { link, found: Some(socket) } => self.socket_found(id, link, &socket),
            AttachNews::SocketSought { link, found: None } => self.no_socket(id, link),
            AttachNews::SocketDue { link } => {
                if self.is_at(id, link, Door::Later) {
                    self.tell_to_listen(id);
                }
            }
            AttachNews::TurnAnswered { consumer, answer } => self.turn_answered(id, consumer, answer),
        }
    }

    fn turn_answered(&mut self, id: SessionId, consumer: ConsumerId, answer: Result<Answer, WhyNot>) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let view = Box::new(tracked.view());
        let Some(waiting) = tracked.attaching.of(consumer) else { return };
        match answer {
            Ok(Answer::Refused(refusal)) => {
                return tracked.attaching.end(consumer, NotAttached::Refused(refusal, view));
            }
            Err(why) => return tracked.attaching.end(consumer, NotAttached::Unable(why)),
            Ok(Answer::UnderWay) => waiting.turn = TakeoverTurn::Own,
            Ok(Answer::Joined | Answer::Done | Answer::Already | Answer::Queued { .. }) => {
                waiting.turn = TakeoverTurn::Others;
            }
        }
        self.tell_standing(id, consumer);
    }
}

/// Reaching a terminal that exists.
impl Engine {
    /// Looks for the socket of a terminal, unless that is already under way.
    fn seek_socket(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let Some(shim) = &tracked.shim else { return };
        match tracked.attaching.door(shim.number) {
            None => self.look_for_socket(id, false),
            Some(Door::Sought { told: false }) => {}
            Some(Door::Sought { told: true } | Door::Told | Door::Later) => self.tell_no_socket(id),
        }
    }

    fn look_for_socket(&mut self, id: SessionId, told: bool) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let Some(shim) = &tracked.shim else { return };
        let (link, handle) = (shim.number, self.handle.clone());
        tracked.attaching.set_door(link, Some(Door::Sought { told }));
        let found = move |found| {
            handle.tell(LoopInput::Attaching { id, news: AttachNews::SocketSought { link, found } });
        };
        self.ports.shims.find_socket(id, shim.sockets(&self.home, id), Box::new(found));
    }

    fn socket_found(&mut self, id: SessionId, link: LinkNumber, socket: &Path) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        if tracked.attaching.door(link).is_none() {
            return;
        }
        tracked.attaching.set_door(link, None);
        tracked.attaching.forget_gone();
        if tracked.shim.as_ref().is_some_and(|shim| shim.number == link) {
            for waiting in std::mem::take(&mut tracked.attaching.waiting) {
                match tracked.session.reached(waiting.joins) {
                    Reached::Terminal(run) => {
                        // A counted client that was told of a terminal leaves with it.
                        let is = |(counted, _)| counted == waiting.consumer;
                        let counted = tracked.session.connected().any(is);
                        if let Some(live) = tracked.live(run).filter(|_| counted) {
                            live.viewers.push(waiting.consumer);
                        }
                        let guest = tracked.session.guest_here().map(|guest| guest.number);
                        let guest = guest.filter(|_| waiting.joins == Joins::Guest);
                        let socket = socket.to_owned();
                        waiting.told.send_replace(Some(AttachStanding::Ready { socket, run, guest }));
                    }
                    Reached::NotYet | Reached::Never(_) | Reached::NoTakeover | Reached::NoGuest => {
                        tracked.attaching.waiting.push(waiting);
                    }
                }
            }
        }
        self.tell_attaching(id);
    }

    /// The socket was removed: tells the shim to make another and to report afterwards.
    fn no_socket(&mut self, id: SessionId, link: LinkNumber) {
        if self.is_at(id, link, Door::Sought { told: false }) {
            self.tell_no_socket(id);
            return self.tell_to_listen(id);
        }
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        if tracked.attaching.door(link) == Some(Door::Sought { told: true }) {
            tracked.attaching.set_door(link, Some(Door::Later));
            let (handle, at) = (self.handle.clone(), self.ports.clock.awake() + TELL_AGAIN);
            let due =
                move |()| handle.tell(LoopInput::Attaching { id, news: AttachNews::SocketDue { link } });
            self.ports.clock.remind(at, Box::new(due));
        }
    }

    fn tell_no_socket(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let view = Box::new(tracked.view());
        for waiting in &mut tracked.attaching.waiting {
            if let Reached::Terminal(_) = tracked.session.reached(waiting.joins) {
                waiting.seen = None;
                waiting.told.send_replace(Some(AttachStanding::NoSocket(view.clone())));
            }
        }
    }

    /// A shim obeys in order: when its sign of life arrives, it has made its socket or cannot.
    fn tell_to_listen(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        tracked.attaching.forget_gone();
        let Some(shim) = &tracked.shim else { return };
        let wanted = !tracked.attaching.waiting.is_empty();
        tracked.attaching.set_door(shim.number, wanted.then_some(Door::Told));
        if wanted {
            shim.send(&Command::Listen);
            shim.send(&Command::Interrupt { run: super::unended::NO_RUN });
        }
    }

    /// A shim gave a sign of life.
    pub(super) fn shim_lives(&mut self, id: SessionId) {
        let link = self.sessions.get(&id).and_then(|tracked| tracked.shim.as_ref()).map(|shim| shim.number);
        if link.is_some_and(|link| self.is_at(id, link, Door::Told)) {
            self.look_for_socket(id, true);
        }
    }

    fn is_at(&self, id: SessionId, link: LinkNumber, door: Door) -> bool {
        self.sessions.get(&id).is_some_and(|tracked| tracked.attaching.door(link) == Some(door))
    }
}

/// What attaching to a session does.
fn joins(tracked: &Tracked, read_only: bool) -> Joins {
    let spec = tracked.session.spec();
    let held = matches!(tracked.session.life(), Life::Held { .. });
    let takes_over = tracked.session.has_terminal() && spec.mode != Mode::Once && !read_only;
    match spec.attach {
        _ if tracked.definition.pty => Joins::Terminal,
        _ if held => Joins::Takeover,
        // A client that only watches starts nothing.
        Attaching::Join(_) if !read_only || tracked.session.has_guest() => Joins::Guest,
        Attaching::Join(_) => Joins::Output,
        Attaching::Takeover if takes_over => Joins::Takeover,
        Attaching::Takeover => Joins::Output,
    }
}

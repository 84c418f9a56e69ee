//! What may be read of the engine from outside: answers to questions, and copies of sessions to show from. Whoever has
//! a [`View`] changes nothing.

use super::accounts::AccountView;
use super::feed::Became;
use super::purge::{CallerSocket, Candidate, Modes};
use super::session::Tracked;
use super::session_view::{Hindrances, SessionView, Snapshot};
use super::{Engine, WhyNot};
use crate::caller::Act;
use crate::define::config::Retention;
use crate::define::definition::Definition;
use crate::define::others::Others;
use crate::define::preset::Preset;
use crate::memory::Without;
use crate::output::written::Written;
use pinfold_api::object::{Metric, Unknown};
use pinfold_api::request::Purge;
use pinfold_core::{MessageId, RunNumber, Session, State, Wall};
use pinfold_store::{DamagedSession, Message, ReadError, RunId, SessionId, Store};
use std::ops::Bound::{Excluded, Unbounded};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// One session, read where it is.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a>(&'a Tracked);

impl<'a> Known<'a> {
    pub(crate) fn id(self) -> SessionId {
        self.0.id
    }

    pub(crate) fn name(self) -> &'a str {
        &self.0.name
    }

    pub(crate) fn created_at(self) -> Wall {
        self.0.created_at
    }

    pub(crate) fn definition(self) -> &'a Arc<Definition> {
        &self.0.definition
    }

    pub(crate) fn state(self) -> State {
        self.0.session.state()
    }

    /// The account that its runs use.
    pub(crate) fn account(self) -> Option<&'a str> {
        self.0.account.as_deref()
    }

    /// What the core knows of it, with the messages that wait.
    pub(crate) fn core(self) -> &'a Session {
        &self.0.session
    }

    pub(crate) fn shim_pid(self) -> Option<u32> {
        self.0.shim.as_ref().map(|shim| shim.pid)
    }

    /// Its latest run.
    pub(crate) fn run(self) -> Option<(RunNumber, RunId)> {
        self.0.latest
    }

    /// Tells how it stands, whenever that changes and is durable.
    pub(crate) fn watch(self) -> watch::Receiver<Snapshot> {
        self.0.seen.subscribe()
    }

    /// How it stands now, whether that is durable or not.
    pub(crate) fn snapshot(self) -> Snapshot {
        self.0.snapshot()
    }

    /// The pid of its agent.
    pub(crate) fn pid(self) -> Option<u32> {
        self.0.pid()
    }

    /// What stands in its way.
    pub(crate) fn hindrances(self) -> Hindrances<'a> {
        let Tracked { name, damaged, held_up, stops_first, failed, .. } = self.0;
        let (held_up, stops_first, flow) = (held_up.as_deref(), *stops_first, self.0.flow());
        let (failed, printed_at) = (failed.as_deref(), self.0.printed_at());
        Hindrances { name, damaged: *damaged, held_up, stops_first, flow, failed, printed_at }
    }

    /// A copy to show from.
    pub(crate) fn copy(self) -> SessionView {
        self.0.view()
    }
}

/// The engine, to be read.
#[derive(Clone, Copy)]
pub(crate) struct View<'a>(pub(super) &'a Engine);

impl<'a> View<'a> {
    /// Finds a session by its name or a unique prefix of its id; names of archived ones count last.
    pub(crate) fn find(self, wanted: &str) -> Result<SessionId, WhyNot> {
        self.0.find(wanted)
    }

    /// The archived session that a name or the beginning of an id stands for; the latest of a name.
    pub(crate) fn find_archived(self, wanted: &str) -> Result<SessionId, WhyNot> {
        self.0.find_archived(wanted)
    }

    /// Finds the parent of a session, which must not be below it.
    pub(crate) fn find_parent(
        self,
        wanted: &str,
        own: Option<SessionId>,
    ) -> Result<(SessionId, String), WhyNot> {
        self.0.find_parent(wanted, own)
    }

    /// Whether a new session may have this name.
    pub(crate) fn is_free(self, name: &str) -> Result<(), WhyNot> {
        self.0.is_free(name)
    }

    pub(crate) fn session(self, id: SessionId) -> Option<Known<'a>> {
        self.0.sessions.get(&id).map(|tracked| Known(tracked))
    }

    /// A message as it is on disk, with the beginning of its answer.
    pub(crate) fn message(self, message: MessageId) -> Result<Option<Message>, ReadError> {
        self.0.ports.journal.message(message)
    }

    /// All sessions, in the order in which they were made.
    pub(crate) fn sessions(self) -> impl DoubleEndedIterator<Item = Known<'a>> {
        self.0.sessions.values().map(|tracked| Known(tracked))
    }

    /// Those that were made after one, which need not be there any more; all of them after none.
    pub(crate) fn sessions_after(self, after: Option<SessionId>) -> impl Iterator<Item = Known<'a>> {
        let after = after.map_or(Unbounded, Excluded);
        self.0.sessions.range((after, Unbounded)).map(|(_, tracked)| Known(tracked))
    }

    /// The sessions that belong to this one.
    pub(crate) fn children(self, id: SessionId) -> impl Iterator<Item = Known<'a>> {
        self.0.children(id).map(Known)
    }

    /// The session and those above it, as far as they are there.
    pub(crate) fn line_of(self, id: SessionId) -> impl Iterator<Item = SessionId> {
        self.0.line_of(id)
    }

    /// Sessions whose records cannot be read.
    pub(crate) fn damaged(self) -> impl Iterator<Item = &'a DamagedSession> {
        self.0.damaged.values()
    }

    /// What of this home the store does not know.
    pub(crate) fn unknown(self) -> &'a [Unknown] {
        &self.0.unknown
    }

    /// The sessions that purge is about, in their order; archived ones are not.
    pub(crate) fn to_purge(
        self,
        modes: Modes,
        purge: &Purge,
        socket: Option<&CallerSocket>,
    ) -> Vec<Candidate> {
        self.0.to_purge(modes, purge, socket)
    }

    /// What an agent's name stands for.
    pub(crate) fn preset(self, agent: &str) -> Option<Preset> {
        self.0.config.preset(agent)
    }

    /// How long what happened is kept.
    pub(crate) fn retention(self) -> Retention {
        self.0.config.retention()
    }

    /// What the runs of an agent may do as a person does.
    pub(crate) fn may(self, agent: &str) -> &'a [Act] {
        self.0.config.may(agent)
    }

    /// Whether one that is confined counts as if it were not; of a session, or of none.
    pub(crate) fn lets_confined(self, agent: &str, session: &str) -> bool {
        self.0.lets_confined(agent, session)
    }

    /// How many children a session may be given by its runs, and how far below a person's session.
    pub(crate) fn child_limits(self, agent: &str, session: &str) -> (u32, u32) {
        let settings = self.0.config.settings(agent, session);
        (settings.child_limit, settings.child_depth)
    }

    /// How long an HTTP hold may last; zero is for ever.
    pub(crate) fn hold_limit(self) -> Duration {
        self.0.config.settings("", "").hold_limit
    }

    /// What is not used to measure and contain runs.
    pub(crate) fn without(self) -> Without {
        self.0.memory.without
    }

    /// Everything that is counted and measured.
    pub(crate) fn measured(self) -> Vec<Metric> {
        self.0.measured()
    }

    /// The accounts, to show.
    pub(crate) fn accounts(self) -> Vec<AccountView> {
        self.0.account_views()
    }

    /// The store, for a connection of one's own; none while its file has lost its name.
    pub(crate) fn readable(self) -> Option<Store> {
        self.0.readable()
    }

    /// Where it is found who else is in the vendor session of a session, and what that is called.
    pub(crate) fn others(self, id: SessionId) -> Option<(Others, String)> {
        let tracked = self.0.sessions.get(&id)?;
        let preset = self.0.config.preset(&tracked.definition.agent)?;
        let known = self.0.as_known(tracked);
        Some((Others::of(&known, &preset)?, known.vendor_lock()?.to_string()))
    }

    /// Where the output of a session is.
    pub(crate) fn written_of(self, id: SessionId) -> Written {
        let has_tape = self.0.sessions.get(&id).is_some_and(|tracked| tracked.definition.has_tape());
        if has_tape { Written::Tape(self.0.home.tape(id)) } else { Written::Log(self.0.home.log(id)) }
    }

    /// The sessions of which nothing is written now and that are not archived, with their log and their tape.
    pub(crate) fn resting_output(self) -> Vec<(SessionId, PathBuf, PathBuf)> {
        let rests = |known: &Known<'_>| known.core().live_run().is_none() && known.state() != State::Archived;
        let places =
            |known: Known<'_>| (known.id(), self.0.home.log(known.id()), self.0.home.tape(known.id()));
        self.sessions().filter(rests).map(places).collect()
    }

    /// Where each session has its folder.
    pub(crate) fn sessions_folder(self) -> PathBuf {
        self.0.home.sessions()
    }

    /// Tells the number of the latest change of a session, whenever there is one; and the same of what is live.
    pub(crate) fn watch_feed(self) -> (watch::Receiver<u64>, watch::Receiver<u64>) {
        (self.0.feed.changes.watch(), self.0.feed.live.watch())
    }

    /// The generation of this daemon, and the number of the latest change.
    pub(crate) fn revision(self) -> (u64, u64) {
        (self.0.generation, self.0.feed.changes.latest())
    }

    /// The first changes after a number, each session as it is now; nothing where they are not known any more.
    pub(crate) fn changes_after(self, number: u64, most: usize) -> Option<Vec<SessionChange>> {
        Some(self.copied(self.0.feed.changes.after(number)?, most))
    }

    /// The same of what is live, which is forgotten only with the daemon.
    pub(crate) fn live_after(self, number: u64, most: usize) -> Vec<SessionChange> {
        self.0.feed.live.after(number).map(|live| self.copied(live, most)).unwrap_or_default()
    }

    fn copied<'b>(
        self,
        changes: impl Iterator<Item = (u64, SessionId, &'b Became)>,
        most: usize,
    ) -> Vec<SessionChange> {
        let changes = changes.filter_map(|(number, id, became)| {
            let what = match became {
                Became::Changed => Changed::Session(Box::new(self.session(id)?.copy())),
                Became::Removed(name) => Changed::Removed(name.clone()),
            };
            Some(SessionChange { number, id, what })
        });
        changes.take(most).collect()
    }

    /// What the daemon says of itself.
    pub(crate) fn daemon(self) -> DaemonView<'a> {
        let engine = self.0;
        DaemonView {
            up_for: engine.started.elapsed(),
            state: &engine.home.state,
            socket: &engine.socket,
            generation: engine.generation,
            troubles: engine.health.words(),
            config_refused: engine.config_refused.as_deref(),
            socket_refused: engine.home.refused.as_deref(),
        }
    }
}

/// One change, as it is read.
pub(crate) struct SessionChange {
    pub(crate) number: u64,
    pub(crate) id: SessionId,
    pub(crate) what: Changed,
}

/// What became of a session.
pub(crate) enum Changed {
    /// How it is now.
    Session(Box<SessionView>),
    /// It was removed; what it was called.
    Removed(String),
}

/// The daemon itself.
pub(crate) struct DaemonView<'a> {
    pub(crate) up_for: Duration,
    pub(crate) state: &'a Path,
    pub(crate) socket: &'a Path,
    pub(crate) generation: u64,
    /// What is wrong with the store, in sentences.
    pub(crate) troubles: Vec<String>,
    /// Why the configuration was not taken over when it was read last.
    pub(crate) config_refused: Option<&'a str>,
    pub(crate) socket_refused: Option<&'a str>,
}

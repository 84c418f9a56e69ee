//! What can be read of the engine from outside: answers to questions, and copies of sessions to show from. A
//! [`EngineView`] changes nothing.

use super::accounts::AccountView;
use super::declaration::{NotDeclared, Outline};
use super::feed::ChangeKind;
use super::purge::{CallerSocket, PurgeCandidate, PurgeModes};
use super::session::Tracked;
use super::session_view::{Hindrances, SessionSnapshot, SessionView};
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

/// One session, read in place.
#[derive(Clone, Copy)]
pub(crate) struct SessionRef<'a>(&'a Tracked);

impl<'a> SessionRef<'a> {
    pub(crate) fn id(self) -> SessionId {
        self.0.id
    }

    pub(crate) fn name(self) -> &'a str {
        &self.0.name
    }

    pub(crate) fn created_at(self) -> Wall {
        self.0.created_at
    }

    /// The definition in force.
    pub(crate) fn definition(self) -> &'a Arc<Definition> {
        &self.0.definition
    }

    /// The definition that the next run is started with.
    pub(crate) fn latest_definition(self) -> &'a Arc<Definition> {
        self.0.latest_definition()
    }

    pub(crate) fn state(self) -> State {
        self.0.session.state()
    }

    /// The account that its runs use.
    pub(crate) fn account(self) -> Option<&'a str> {
        self.0.account.as_deref()
    }

    /// What the core knows of it, with its queued messages.
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

    /// Reports how it stands, whenever that changes and is durable.
    pub(crate) fn watch(self) -> watch::Receiver<SessionSnapshot> {
        self.0.seen.subscribe()
    }

    /// How it stands now, whether that is durable or not.
    pub(crate) fn snapshot(self) -> SessionSnapshot {
        self.0.snapshot()
    }

    /// The pid of its agent.
    pub(crate) fn pid(self) -> Option<u32> {
        self.0.pid()
    }

    /// What keeps it from going on.
    pub(crate) fn hindrances(self) -> Hindrances<'a> {
        let Tracked { name, damaged, held_up, stops_first, failed, .. } = self.0;
        let (held_up, stops_first, flow) = (held_up.as_deref(), *stops_first, self.0.flow());
        let (failed, printed_at) = (failed.as_deref(), self.0.printed_at());
        let (stray_mark, begun_again, damaged) = (self.0.stray_mark, self.0.begun_again(), *damaged);
        Hindrances { name, damaged, held_up, stops_first, flow, failed, printed_at, stray_mark, begun_again }
    }

    /// A copy to show from.
    pub(crate) fn copy(self) -> SessionView {
        self.0.view()
    }
}

/// A read-only view of the engine.
#[derive(Clone, Copy)]
pub(crate) struct EngineView<'a>(pub(super) &'a Engine);

impl<'a> EngineView<'a> {
    /// Finds a session by its name or a unique prefix of its id; names of archived ones count last.
    pub(crate) fn find(self, wanted: &str) -> Result<SessionId, WhyNot> {
        self.0.find(wanted)
    }

    /// The archived session with this name or id prefix; if several have the name, the latest.
    pub(crate) fn find_archived(self, wanted: &str) -> Result<SessionId, WhyNot> {
        self.0.find_archived(wanted)
    }

    /// Finds the parent of a session, which must not be one of its descendants.
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

    pub(crate) fn session(self, id: SessionId) -> Option<SessionRef<'a>> {
        self.0.sessions.get(&id).map(|tracked| SessionRef(tracked))
    }

    /// A message as it is on disk, with the beginning of its answer.
    pub(crate) fn message(self, message: MessageId) -> Result<Option<Message>, ReadError> {
        self.0.ports.journal.message(message)
    }

    /// All sessions, in the order in which they were created.
    pub(crate) fn sessions(self) -> impl DoubleEndedIterator<Item = SessionRef<'a>> {
        self.0.sessions.values().map(|tracked| SessionRef(tracked))
    }

    /// The sessions created after this one, which need not exist any more; all sessions if `None`.
    pub(crate) fn sessions_after(self, after: Option<SessionId>) -> impl Iterator<Item = SessionRef<'a>> {
        let after = after.map_or(Unbounded, Excluded);
        self.0.sessions.range((after, Unbounded)).map(|(_, tracked)| SessionRef(tracked))
    }

    /// The child sessions of this one.
    pub(crate) fn children(self, id: SessionId) -> impl Iterator<Item = SessionRef<'a>> {
        self.0.children(id).map(SessionRef)
    }

    /// The session and its ancestors, as far as they exist.
    pub(crate) fn line_of(self, id: SessionId) -> impl Iterator<Item = SessionId> {
        self.0.line_of(id)
    }

    /// Sessions whose records cannot be read.
    pub(crate) fn damaged(self) -> impl Iterator<Item = &'a DamagedSession> {
        self.0.damaged.values()
    }

    /// Agents found in this home that the store does not know.
    pub(crate) fn unknown(self) -> &'a [Unknown] {
        &self.0.unknown
    }

    /// The sessions that purge considers, in order, without archived ones.
    pub(crate) fn to_purge(
        self,
        modes: PurgeModes,
        purge: &Purge,
        socket: Option<&CallerSocket>,
    ) -> Vec<PurgeCandidate> {
        self.0.to_purge(modes, purge, socket)
    }

    /// Whether sessions can be created, changed and archived like this.
    pub(crate) fn allows(self, outline: &Outline) -> Result<(), NotDeclared> {
        self.0.check_outline(outline).map(|_| ())
    }

    /// The preset of this name.
    pub(crate) fn preset(self, agent: &str) -> Option<Preset> {
        self.0.config.preset(agent)
    }

    /// How long history is kept.
    pub(crate) fn retention(self) -> Retention {
        self.0.config.retention()
    }

    /// What runs of an agent may do as if they were a person.
    pub(crate) fn may(self, agent: &str) -> &'a [Act] {
        self.0.config.may(agent)
    }

    /// Whether confined callers count as unconfined for this agent and session; both are empty when no
    /// session is concerned.
    pub(crate) fn lets_confined(self, agent: &str, session: &str) -> bool {
        self.0.lets_confined(agent, session)
    }

    /// How many children a session's runs may create, and how many levels below a person's session.
    pub(crate) fn child_limits(self, agent: &str, session: &str) -> (u32, u32) {
        let settings = self.0.config.settings(agent, session);
        (settings.child_limit, settings.child_depth)
    }

    /// How long an HTTP hold may last; zero means forever.
    pub(crate) fn hold_limit(self) -> Duration {
        self.0.config.settings("", "").hold_limit
    }

    /// What is not used to measure and contain runs.
    pub(crate) fn without(self) -> Without {
        self.0.memory.without
    }

    /// All counters and gauges.
    pub(crate) fn measured(self) -> Vec<Metric> {
        self.0.measured()
    }

    /// The accounts, to show.
    pub(crate) fn accounts(self) -> Vec<AccountView> {
        self.0.account_views()
    }

    /// The store, for a separate connection; `None` while its file has lost its name.
    pub(crate) fn readable(self) -> Option<Store> {
        self.0.readable()
    }

    /// Where to find the other users of a session's vendor session, and the name of that vendor session.
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

    /// The sessions without a live run that are not archived, with their log and their tape.
    pub(crate) fn resting_output(self) -> Vec<(SessionId, PathBuf, PathBuf)> {
        let rests =
            |known: &SessionRef<'_>| known.core().live_run().is_none() && known.state() != State::Archived;
        let places =
            |known: SessionRef<'_>| (known.id(), self.0.home.log(known.id()), self.0.home.tape(known.id()));
        self.sessions().filter(rests).map(places).collect()
    }

    /// The copies of the transcripts of sessions without a live run that are not archived.
    pub(crate) fn resting_copies(self) -> Vec<PathBuf> {
        let resting = self.resting_output().into_iter();
        resting.map(|(id, ..)| self.0.home.kept(id)).collect()
    }

    /// The folder with one folder for each session.
    pub(crate) fn sessions_folder(self) -> PathBuf {
        self.0.home.sessions()
    }

    /// Watches on the number of the latest change, and of the latest live change.
    pub(crate) fn watch_feed(self) -> (watch::Receiver<u64>, watch::Receiver<u64>) {
        (self.0.feed.changes.watch(), self.0.feed.live.watch())
    }

    /// The generation of this daemon, and the number of the latest change.
    pub(crate) fn revision(self) -> (u64, u64) {
        (self.0.generation, self.0.feed.changes.latest())
    }

    /// The first changes after a number, each session as it is now; `None` if they are no longer known.
    pub(crate) fn changes_after(self, number: u64, most: usize) -> Option<Vec<SessionChange>> {
        Some(self.copied(self.0.feed.changes.after(number)?, most))
    }

    /// The same for live changes, which are forgotten only with the daemon.
    pub(crate) fn live_after(self, number: u64, most: usize) -> Vec<SessionChange> {
        self.0.feed.live.after(number).map(|live| self.copied(live, most)).unwrap_or_default()
    }

    fn copied<'b>(
        self,
        changes: impl Iterator<Item = (u64, SessionId, &'b ChangeKind)>,
        most: usize,
    ) -> Vec<SessionChange> {
        let changes = changes.filter_map(|(number, id, became)| {
            let what = match became {
                ChangeKind::Changed => FeedChange::Session(Box::new(self.session(id)?.copy())),
                ChangeKind::Removed(name) => FeedChange::Removed(name.clone()),
            };
            Some(SessionChange { number, id, what })
        });
        changes.take(most).collect()
    }

    /// The daemon's view of itself.
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

/// One change, as clients read it.
pub(crate) struct SessionChange {
    pub(crate) number: u64,
    pub(crate) id: SessionId,
    pub(crate) what: FeedChange,
}

/// What happened to a session.
pub(crate) enum FeedChange {
    /// Its present state.
    Session(Box<SessionView>),
    /// It was removed; its former name.
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
    /// Why the configuration was rejected when it was last read.
    pub(crate) config_refused: Option<&'a str>,
    pub(crate) socket_refused: Option<&'a str>,
}

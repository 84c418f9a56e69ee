//! Everything the UI knows and shows. Only `update` changes it; `view` reads it.

use super::editor::Editor;
use super::form::NewSessionForm;
use super::keymap::{KeyAction, KeyContext, Keymap};
use super::layout::{Layout, layout};
use super::order::{ListRow, ListSettings, rows};
use super::sessions::{KnownSession, KnownSessions};
use pinfold_api::object::{Event, Lock, LogLine, Message, Purged, Session};
use pinfold_terminal::Looks;
use std::collections::{BTreeMap, VecDeque};

/// The state of the UI.
#[derive(Debug)]
pub(crate) struct Model {
    /// Columns and rows of the terminal.
    pub(crate) size: (u16, u16),
    /// The wall clock at the last input.
    pub(crate) now: u64,
    pub(crate) link: ConnectionState,
    pub(crate) sessions: KnownSessions,
    pub(crate) list: SessionList,
    pub(crate) pane: Pane,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) note: Option<StatusNote>,
    pub(crate) keymap: Keymap,
    pub(crate) mouse: bool,
    pub(crate) focused: bool,
    /// Messages begun but not sent, by session.
    pub(crate) drafts: BTreeMap<String, String>,
    /// Ids and names of the sessions archived here, newest last.
    pub(crate) archived: Vec<(String, String)>,
    pub(crate) here: Here,
}

/// Where the UI runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Here {
    /// The name of the session that the UI runs in.
    pub(crate) own: Option<String>,
    /// The user's home directory, shown as `~`.
    pub(crate) home: Option<String>,
    /// The directory the UI was started in.
    pub(crate) dir: String,
    /// Agents that a new session can have.
    pub(crate) agents: Vec<String>,
    /// Whether times are shown in UTC, for tests, instead of in this machine's zone.
    pub(crate) utc: bool,
}

/// The state of the connection with the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    Connecting,
    Up,
    Away { since: u64, why: String },
}

/// The list, and the position in it.
#[derive(Debug, Default)]
pub(crate) struct SessionList {
    pub(crate) wanted: ListSettings,
    pub(crate) rows: Vec<ListRow>,
    /// The selected row; it follows its session.
    pub(crate) at: usize,
    pub(crate) selected: Option<String>,
    /// The first visible row.
    pub(crate) top: usize,
    pub(crate) search: Option<SearchState>,
}

/// A search.
#[derive(Debug, Default)]
pub(crate) struct SearchState {
    pub(crate) field: Editor,
    /// Whether the user is typing in it.
    pub(crate) typing: bool,
    /// What the daemon was last asked, and whether its answer is outstanding.
    pub(crate) asked: Option<String>,
    pub(crate) waiting: bool,
    /// Excerpts found, by session name; only text that the list does not show anyway.
    pub(crate) found: BTreeMap<String, String>,
}

/// What is shown of the selected session.
#[derive(Debug)]
pub(crate) enum Pane {
    Hidden,
    Detail(Box<Detail>),
    Screen(WatchedScreen),
}

/// The details of a session.
#[derive(Debug, Default)]
pub(crate) struct Detail {
    /// The id of their session.
    pub(crate) of: Option<String>,
    pub(crate) gathered: Option<SessionDetails>,
    /// Requested, but not arrived yet.
    pub(crate) waiting: bool,
    /// The session has changed since the request.
    pub(crate) stale: bool,
    /// The first visible line.
    pub(crate) top: usize,
}

/// The answers that make up a session's details.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionDetails {
    pub(crate) session: Session,
    pub(crate) messages: Vec<Message>,
    pub(crate) events: Vec<Event>,
    pub(crate) log: Vec<LogLine>,
}

/// The terminal of a session, watched without attaching.
#[derive(Debug, Default)]
pub(crate) struct WatchedScreen {
    pub(crate) of: Option<String>,
    pub(crate) lines: Vec<Vec<(String, Looks)>>,
    /// Why it cannot be seen.
    pub(crate) why: Option<String>,
}

/// What covers the list.
#[derive(Debug)]
pub(crate) enum Overlay {
    Help { top: usize },
    Locks { locks: Option<Vec<Lock>>, top: usize },
    Palette { field: Editor, at: usize },
    Send { of: String, field: Editor },
    Answer { of: String, request: String, words: Option<Editor> },
    Confirm { act: KeyAction, of: String },
    New(Box<NewSessionForm>),
    Tags { of: String, field: Editor },
    Purge { preview: Option<Purged>, top: usize },
    Logs(FollowedLogs),
}

/// The output of a session, followed live.
#[derive(Debug)]
pub(crate) struct FollowedLogs {
    pub(crate) of: String,
    pub(crate) lines: VecDeque<String>,
    /// How many lines it is scrolled up from the end.
    pub(crate) up: usize,
    /// Why no more output will arrive.
    pub(crate) over: Option<String>,
}

/// The message in the last line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusNote {
    pub(crate) text: String,
    pub(crate) bad: bool,
}

impl StatusNote {
    pub(crate) fn good(text: impl Into<String>) -> Option<StatusNote> {
        Some(StatusNote { text: text.into(), bad: false })
    }

    pub(crate) fn bad(text: impl Into<String>) -> Option<StatusNote> {
        Some(StatusNote { text: text.into(), bad: true })
    }
}

impl Model {
    /// A model that knows nothing yet.
    pub(crate) fn new(size: (u16, u16), keymap: Keymap, here: Here) -> Model {
        Model {
            size,
            now: 0,
            link: ConnectionState::Connecting,
            sessions: KnownSessions::default(),
            list: SessionList::default(),
            pane: Pane::Detail(Box::default()),
            overlay: None,
            note: None,
            keymap,
            mouse: true,
            focused: true,
            drafts: BTreeMap::new(),
            archived: Vec::new(),
            here,
        }
    }

    /// The context in which keys are pressed now.
    pub(crate) fn place(&self) -> KeyContext {
        match &self.overlay {
            None if self.list.search.as_ref().is_some_and(|search| search.typing) => KeyContext::Field,
            None => KeyContext::List,
            Some(Overlay::Help { .. } | Overlay::Locks { .. } | Overlay::Purge { .. } | Overlay::Logs(_)) => {
                KeyContext::Page
            }
            Some(Overlay::Confirm { .. }) => KeyContext::Page,
            Some(Overlay::Answer { words: None, .. }) => KeyContext::Request,
            Some(Overlay::Answer { words: Some(_), .. }) => KeyContext::Field,
            Some(Overlay::Palette { .. } | Overlay::Send { .. } | Overlay::New(_) | Overlay::Tags { .. }) => {
                KeyContext::Field
            }
        }
    }

    /// The selected session.
    pub(crate) fn selected(&self) -> Option<&KnownSession> {
        self.sessions.get(self.list.selected.as_deref()?)
    }

    /// The name of a session, or its id if it is gone.
    pub(crate) fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.sessions.get(id).map_or(id, |known| &known.told.session.name)
    }

    /// Whether a session is the one this UI runs in.
    pub(crate) fn is_own(&self, session: &Session) -> bool {
        self.here.own.as_deref() == Some(&session.name)
    }

    /// Rebuilds the rows; the selection stays with its session, or near where it was.
    pub(crate) fn arrange(&mut self) {
        let list = &mut self.list;
        let names = list.search.as_ref().map(|search| {
            let found = |known: &&KnownSession| search.found.contains_key(&known.told.session.name);
            let ids = self.sessions.all.values().filter(found).map(|known| known.told.session.id.clone());
            (search.field.text().to_owned(), ids.collect())
        });
        list.wanted.sought = names.filter(|(text, _)| !text.is_empty());
        list.rows = rows(&self.sessions, &list.wanted);
        let same =
            list.selected.as_deref().and_then(|id| list.rows.iter().position(|row| row.id() == Some(id)));
        // A session in several groups stays selected in the same one.
        let here = list.rows.get(list.at).is_some_and(|row| row.id() == list.selected.as_deref());
        let at = if here { list.at } else { same.unwrap_or(list.at) };
        self.select(at);
    }

    /// Like `arrange`, for a session created here: it is selected as soon as the list has it.
    pub(crate) fn arrange_for_new(&mut self) {
        let wanted = self.list.selected.clone();
        self.list.at = usize::MAX;
        self.arrange();
        self.list.selected = wanted;
    }

    /// Selects a row and scrolls it into view.
    pub(crate) fn select(&mut self, at: usize) {
        let seen = self.list_rows();
        let list = &mut self.list;
        // While the list is empty, the remembered selection is kept until the feed tells of its session.
        if list.rows.is_empty() {
            (list.at, list.top) = (0, 0);
            return;
        }
        list.at = at.min(list.rows.len() - 1);
        list.selected = list.rows.get(list.at).and_then(ListRow::id).map(str::to_owned);
        list.top = list.top.min(list.at).max((list.at + 1).saturating_sub(seen));
        list.top = list.top.min(list.rows.len().saturating_sub(seen.min(list.rows.len())));
    }

    /// The areas of the screen.
    pub(crate) fn layout(&self) -> Layout {
        layout(self.size, !matches!(self.pane, Pane::Hidden))
    }

    /// How many rows of the list are visible.
    pub(crate) fn list_rows(&self) -> usize {
        usize::from(self.layout().list.height)
    }
}

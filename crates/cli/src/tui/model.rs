//! Everything that the UI knows and shows. It changes only in `update`, and `view` reads it.

use super::editor::Editor;
use super::form::Form;
use super::keymap::{Act, Keymap, Place};
use super::known::{Known, Sessions};
use super::layout::{Layout, layout};
use super::order::{Row, Wanted, rows};
use pinfold_api::object::{Event, Lock, LogLine, Message, Purged, Session};
use pinfold_terminal::Looks;
use std::collections::{BTreeMap, VecDeque};

/// The whole of it.
#[derive(Debug)]
pub(crate) struct Model {
    /// Columns and rows of the terminal.
    pub(crate) size: (u16, u16),
    /// The wall clock when something happened last.
    pub(crate) now: u64,
    pub(crate) link: Link,
    pub(crate) sessions: Sessions,
    pub(crate) list: List,
    pub(crate) pane: Pane,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) note: Option<Note>,
    pub(crate) keymap: Keymap,
    pub(crate) mouse: bool,
    pub(crate) focused: bool,
    /// Messages that were begun and not sent, by session.
    pub(crate) drafts: BTreeMap<String, String>,
    /// Ids and names of what was archived here, the last one last.
    pub(crate) archived: Vec<(String, String)>,
    pub(crate) here: Here,
}

/// Where the UI runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Here {
    /// The name of the session that it is part of.
    pub(crate) own: Option<String>,
    /// The home directory of its user, which is written as `~`.
    pub(crate) home: Option<String>,
    /// The directory that it was started in.
    pub(crate) dir: String,
    /// Agents that a session can be made of.
    pub(crate) agents: Vec<String>,
    /// Moments are told in the time of this machine, unless a test wants otherwise.
    pub(crate) utc: bool,
}

/// How it stands with the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    Connecting,
    Up,
    Away { since: u64, why: String },
}

/// The list, and where one is in it.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) wanted: Wanted,
    pub(crate) rows: Vec<Row>,
    /// The selected row; it follows its session.
    pub(crate) at: usize,
    pub(crate) selected: Option<String>,
    /// The first row that is shown.
    pub(crate) top: usize,
    pub(crate) search: Option<Search>,
}

/// A search.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) field: Editor,
    /// Whether it is being typed.
    pub(crate) typing: bool,
    /// What the daemon was asked last, and whether it has answered.
    pub(crate) asked: Option<String>,
    pub(crate) waiting: bool,
    /// What was found, by the name of the session; nothing of what the list shows anyway.
    pub(crate) found: BTreeMap<String, String>,
}

/// What is shown of the selected session.
#[derive(Debug)]
pub(crate) enum Pane {
    Hidden,
    Detail(Box<Detail>),
    Screen(Screen),
}

/// The details of a session.
#[derive(Debug, Default)]
pub(crate) struct Detail {
    /// Whose they are.
    pub(crate) of: Option<String>,
    pub(crate) gathered: Option<Gathered>,
    /// They were asked for and have not come yet.
    pub(crate) waiting: bool,
    /// It has changed since they were asked for.
    pub(crate) stale: bool,
    /// The first line that is shown.
    pub(crate) top: usize,
}

/// What was read of a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gathered {
    pub(crate) session: Session,
    pub(crate) messages: Vec<Message>,
    pub(crate) events: Vec<Event>,
    pub(crate) log: Vec<LogLine>,
}

/// The terminal of a session, seen without attaching.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    pub(crate) of: Option<String>,
    pub(crate) lines: Vec<Vec<(String, Looks)>>,
    /// Why nothing is seen.
    pub(crate) why: Option<String>,
}

/// What is in front of the list.
#[derive(Debug)]
pub(crate) enum Overlay {
    Help { top: usize },
    Locks { locks: Option<Vec<Lock>>, top: usize },
    Palette { field: Editor, at: usize },
    Send { of: String, field: Editor },
    Answer { of: String, request: String, words: Option<Editor> },
    Confirm { act: Act, of: String },
    New(Box<Form>),
    Tags { of: String, field: Editor },
    Purge { preview: Option<Purged>, top: usize },
    Logs(Logs),
}

/// The output of a session as it comes.
#[derive(Debug)]
pub(crate) struct Logs {
    pub(crate) of: String,
    pub(crate) lines: VecDeque<String>,
    /// So many lines up from the end.
    pub(crate) up: usize,
    /// Why no more comes.
    pub(crate) over: Option<String>,
}

/// What is said in the last line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) bad: bool,
}

impl Note {
    pub(crate) fn good(text: impl Into<String>) -> Option<Note> {
        Some(Note { text: text.into(), bad: false })
    }

    pub(crate) fn bad(text: impl Into<String>) -> Option<Note> {
        Some(Note { text: text.into(), bad: true })
    }
}

impl Model {
    /// One that knows nothing yet.
    pub(crate) fn new(size: (u16, u16), keymap: Keymap, here: Here) -> Model {
        Model {
            size,
            now: 0,
            link: Link::Connecting,
            sessions: Sessions::default(),
            list: List::default(),
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

    /// Where keys are pressed now.
    pub(crate) fn place(&self) -> Place {
        match &self.overlay {
            None if self.list.search.as_ref().is_some_and(|search| search.typing) => Place::Field,
            None => Place::List,
            Some(Overlay::Help { .. } | Overlay::Locks { .. } | Overlay::Purge { .. } | Overlay::Logs(_)) => {
                Place::Page
            }
            Some(Overlay::Confirm { .. }) => Place::Page,
            Some(Overlay::Answer { words: None, .. }) => Place::Request,
            Some(Overlay::Answer { words: Some(_), .. }) => Place::Field,
            Some(Overlay::Palette { .. } | Overlay::Send { .. } | Overlay::New(_) | Overlay::Tags { .. }) => {
                Place::Field
            }
        }
    }

    /// The session that is selected.
    pub(crate) fn selected(&self) -> Option<&Known> {
        self.sessions.get(self.list.selected.as_deref()?)
    }

    /// The name of a session, or its id where it is gone.
    pub(crate) fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.sessions.get(id).map_or(id, |known| &known.told.session.name)
    }

    /// Whether a session is the one that this UI runs in.
    pub(crate) fn is_own(&self, session: &Session) -> bool {
        self.here.own.as_deref() == Some(&session.name)
    }

    /// Makes the rows anew; the selection stays with its session, or near where it was.
    pub(crate) fn arrange(&mut self) {
        let list = &mut self.list;
        let names = list.search.as_ref().map(|search| {
            let found = |known: &&Known| search.found.contains_key(&known.told.session.name);
            let ids = self.sessions.all.values().filter(found).map(|known| known.told.session.id.clone());
            (search.field.text().to_owned(), ids.collect())
        });
        list.wanted.sought = names.filter(|(text, _)| !text.is_empty());
        list.rows = rows(&self.sessions, &list.wanted);
        let same =
            list.selected.as_deref().and_then(|id| list.rows.iter().position(|row| row.id() == Some(id)));
        // One in several groups stays where it is selected.
        let here = list.rows.get(list.at).is_some_and(|row| row.id() == list.selected.as_deref());
        let at = if here { list.at } else { same.unwrap_or(list.at) };
        self.select(at);
    }

    /// The same for a session that was made here: it is selected as soon as the list has it.
    pub(crate) fn arrange_for_new(&mut self) {
        let wanted = self.list.selected.clone();
        self.list.at = usize::MAX;
        self.arrange();
        self.list.selected = wanted;
    }

    /// Selects a row, and keeps it in sight.
    pub(crate) fn select(&mut self, at: usize) {
        let seen = self.list_rows();
        let list = &mut self.list;
        // What was selected when the UI was left is found again when the feed has told of it.
        if list.rows.is_empty() {
            (list.at, list.top) = (0, 0);
            return;
        }
        list.at = at.min(list.rows.len() - 1);
        list.selected = list.rows.get(list.at).and_then(Row::id).map(str::to_owned);
        list.top = list.top.min(list.at).max((list.at + 1).saturating_sub(seen));
        list.top = list.top.min(list.rows.len().saturating_sub(seen.min(list.rows.len())));
    }

    /// Where what is on the screen.
    pub(crate) fn layout(&self) -> Layout {
        layout(self.size, !matches!(self.pane, Pane::Hidden))
    }

    /// How many rows of the list are in sight.
    pub(crate) fn list_rows(&self) -> usize {
        usize::from(self.layout().list.height)
    }
}

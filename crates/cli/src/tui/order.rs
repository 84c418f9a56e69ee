//! The rows of the list: which sessions, in which order, under which headings.

use super::need::PersonNeed;
use super::sessions::{KnownSession, KnownSessions};
use pinfold_api::word::State;
use std::collections::{BTreeMap, BTreeSet};

/// What sessions are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Grouping {
    /// Children below their parents.
    #[default]
    Tree,
    Tag,
    Directory,
    Account,
    State,
}

impl Grouping {
    pub(crate) const ALL: [Grouping; 5] =
        [Grouping::Tree, Grouping::Tag, Grouping::Directory, Grouping::Account, Grouping::State];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Grouping::Tree => "tree",
            Grouping::Tag => "tag",
            Grouping::Directory => "directory",
            Grouping::Account => "account",
            Grouping::State => "state",
        }
    }

    /// The next grouping in the cycle.
    pub(crate) fn next(self) -> Grouping {
        let at = Grouping::ALL.iter().position(|grouping| *grouping == self).unwrap_or(0);
        Grouping::ALL[(at + 1) % Grouping::ALL.len()]
    }
}

/// One row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListRow {
    /// The heading of a group.
    Head { label: String, count: usize, folded: bool },
    /// A session, and its depth below the root of its tree.
    Session { id: String, depth: usize },
}

impl ListRow {
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            ListRow::Session { id, .. } => Some(id),
            ListRow::Head { .. } => None,
        }
    }
}

/// Which sessions to list, and how.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListSettings {
    pub(crate) grouping: Grouping,
    pub(crate) folded: BTreeSet<String>,
    pub(crate) pins: BTreeSet<String>,
    /// How many turns of each session a person has looked at.
    pub(crate) looked: BTreeMap<String, u64>,
    /// Only sessions that need a person.
    pub(crate) needy: bool,
    pub(crate) archived: bool,
    /// Only sessions that show this text, or whose id is in the set.
    pub(crate) sought: Option<(String, BTreeSet<String>)>,
}

impl ListSettings {
    /// What a session needs.
    pub(crate) fn need(&self, known: &KnownSession) -> PersonNeed {
        PersonNeed::of(known, self.looked.get(&known.told.session.id).copied())
    }

    fn shows(&self, known: &KnownSession) -> bool {
        let session = &known.told.session;
        if let Some((text, found)) = &self.sought {
            let kept = self.archived || session.state != State::Archived;
            return kept && (found.contains(&session.id) || is_in(text, known));
        }
        if session.state == State::Archived && !self.archived {
            return false;
        }
        !self.needy || self.need(known).is_for_person()
    }
}

/// Whether a text occurs in what the list shows of a session.
fn is_in(text: &str, known: &KnownSession) -> bool {
    let session = &known.told.session;
    let text = text.to_lowercase();
    let fields = [&session.name, &session.agent, &session.dir, &session.why];
    fields.into_iter().chain(&session.tags).any(|field| field.to_lowercase().contains(&text))
}

/// The rows of the list.
pub(crate) fn rows(sessions: &KnownSessions, wanted: &ListSettings) -> Vec<ListRow> {
    let mut shown: Vec<&KnownSession> = sessions.all.values().filter(|known| wanted.shows(known)).collect();
    // Names are unique among live sessions, so rows do not change places by themselves.
    shown.sort_by_cached_key(|known| {
        let session = &known.told.session;
        (!wanted.pins.contains(&session.id), wanted.need(known), session.name.clone(), session.id.clone())
    });
    match wanted.grouping {
        Grouping::Tree => tree(&shown),
        Grouping::Tag | Grouping::Directory | Grouping::Account | Grouping::State => grouped(&shown, wanted),
    }
}

/// Each session below its parent, if that is shown too.
fn tree(shown: &[&KnownSession]) -> Vec<ListRow> {
    let ids: BTreeSet<&str> = shown.iter().map(|known| known.told.session.id.as_str()).collect();
    let mut below: BTreeMap<&str, Vec<&KnownSession>> = BTreeMap::new();
    let mut first = Vec::new();
    for known in shown {
        match known.told.session.parent_id.as_deref().filter(|parent| ids.contains(parent)) {
            Some(parent) => below.entry(parent).or_default().push(known),
            None => first.push(*known),
        }
    }
    let mut rows = Vec::with_capacity(shown.len());
    let mut waiting: Vec<(&KnownSession, usize)> = first.into_iter().rev().map(|known| (known, 0)).collect();
    while let Some((known, depth)) = waiting.pop() {
        let id = known.told.session.id.clone();
        let children = below.remove(id.as_str()).unwrap_or_default();
        waiting.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
        rows.push(ListRow::Session { id, depth });
    }
    rows
}

fn grouped(shown: &[&KnownSession], wanted: &ListSettings) -> Vec<ListRow> {
    let mut groups: Vec<(String, Vec<&KnownSession>)> = Vec::new();
    for known in shown {
        for label in labels(known, wanted.grouping) {
            match groups.iter_mut().find(|(of, _)| *of == label) {
                Some((_, all)) => all.push(known),
                None => groups.push((label, vec![known])),
            }
        }
    }
    let mut rows = Vec::new();
    for (label, all) in groups {
        let folded = wanted.folded.contains(&label);
        rows.push(ListRow::Head { label, count: all.len(), folded });
        if !folded {
            let session =
                |known: &&KnownSession| ListRow::Session { id: known.told.session.id.clone(), depth: 0 };
            rows.extend(all.iter().map(session));
        }
    }
    rows
}

/// The groups a session is in; with several tags it is in several.
fn labels(known: &KnownSession, grouping: Grouping) -> Vec<String> {
    let session = &known.told.session;
    match grouping {
        Grouping::Tag if session.tags.is_empty() => vec!["no tag".to_owned()],
        Grouping::Tag => session.tags.clone(),
        Grouping::Directory => vec![session.dir.clone()],
        Grouping::Account => vec![known.told.account.clone().unwrap_or_else(|| session.agent.clone())],
        Grouping::State => vec![session.state.word().to_owned()],
        Grouping::Tree => Vec::new(),
    }
}

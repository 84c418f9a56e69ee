//! What each kind of caller may do. One table: a new kind of request stops the build here, and every route names the
//! one that it is.

/// What a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// A sign of life of the daemon, and what its API is.
    Ping,
    /// What the daemon tells of itself.
    Status,
    /// A list, of which it is shown what it may read.
    List,
    /// Numbers about everything.
    Metrics,
    /// What one session is, did and was told.
    Read,
    /// A message for a session.
    Send,
    /// A `key:` lock, held by a connection.
    Hold,
    /// A new session.
    New,
    /// Another definition of a session.
    Set,
    /// A session's start, end, turn, archive and messages.
    Steer,
    /// A session's way back from the archive.
    Restore,
    /// The archive for all that nobody uses, or back from it.
    Purge,
    /// A session's terminal.
    Attach,
    /// The answer to what an agent asks a person for.
    Answer,
    /// A session's end for good.
    Remove,
    /// A copy of the database, with everything in it.
    Backup,
    /// The configuration, read again.
    Reload,
    /// The daemon's end, and what verbs wrote down for it.
    Down,
}

/// The words that `may` in config.toml takes: each lets a run do as a person does.
pub(crate) const MAY: [(&str, Act); 16] = [
    ("status", Act::Status),
    ("list", Act::List),
    ("metrics", Act::Metrics),
    ("read", Act::Read),
    ("send", Act::Send),
    ("new", Act::New),
    ("set", Act::Set),
    ("act", Act::Steer),
    ("restore", Act::Restore),
    ("purge", Act::Purge),
    ("attach", Act::Attach),
    ("answer", Act::Answer),
    ("rm", Act::Remove),
    ("backup", Act::Backup),
    ("reload", Act::Reload),
    ("down", Act::Down),
];

impl Act {
    /// The word for it in config.toml; nothing where every run may.
    pub(crate) fn word(self) -> Option<&'static str> {
        MAY.iter().find(|(_, act)| *act == self).map(|(word, _)| *word)
    }
}

/// Which kind of caller asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A process of a run.
    Run,
    /// One that is confined, of a run or not.
    Confined,
}

/// What a session is to the caller's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Itself,
    Parent,
    Child,
    /// A stranger; or the caller belongs to no session of this home.
    Other,
}

/// Whether a caller that is not a person may. Requests that name no session are about the caller's own.
pub(crate) fn permits(act: Act, kind: Kind, relation: Relation) -> bool {
    use Relation::{Child, Itself, Other, Parent};
    let family = match relation {
        Itself | Parent | Child => true,
        Other => false,
    };
    match (act, kind) {
        (Act::Ping, Kind::Run | Kind::Confined) | (Act::Status | Act::Hold, Kind::Run) => true,
        (Act::Read | Act::Send, Kind::Run) => family,
        (Act::Steer | Act::Restore | Act::Set, Kind::Run) => matches!(relation, Itself | Child),
        (Act::List | Act::New | Act::Purge, Kind::Run) | (Act::List | Act::Read, Kind::Confined) => {
            relation == Itself
        }
        (Act::Send, Kind::Confined) => matches!(relation, Itself | Parent),
        (
            Act::Metrics | Act::Attach | Act::Answer | Act::Remove | Act::Backup | Act::Reload | Act::Down,
            Kind::Run,
        )
        | (
            Act::Status
            | Act::Metrics
            | Act::Hold
            | Act::New
            | Act::Set
            | Act::Steer
            | Act::Restore
            | Act::Purge
            | Act::Attach
            | Act::Answer
            | Act::Remove
            | Act::Backup
            | Act::Reload
            | Act::Down,
            Kind::Confined,
        ) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Relation::{Child, Itself, Other, Parent};

    /// `+` may: itself, parent, child, other; first for a run, then for one that is confined.
    const TABLE: [(Act, &str, &str); 18] = [
        (Act::Ping, "++++", "++++"),
        (Act::Status, "++++", "----"),
        (Act::List, "+---", "+---"),
        (Act::Metrics, "----", "----"),
        (Act::Read, "+++-", "+---"),
        (Act::Send, "+++-", "++--"),
        (Act::Hold, "++++", "----"),
        (Act::New, "+---", "----"),
        (Act::Set, "+-+-", "----"),
        (Act::Steer, "+-+-", "----"),
        (Act::Restore, "+-+-", "----"),
        (Act::Purge, "+---", "----"),
        (Act::Attach, "----", "----"),
        (Act::Answer, "----", "----"),
        (Act::Remove, "----", "----"),
        (Act::Backup, "----", "----"),
        (Act::Reload, "----", "----"),
        (Act::Down, "----", "----"),
    ];

    #[test]
    fn each_kind_of_caller_may_what_the_table_says() {
        for (act, run, confined) in TABLE {
            for (kind, row) in [(Kind::Run, run), (Kind::Confined, confined)] {
                for (relation, sign) in [Itself, Parent, Child, Other].into_iter().zip(row.chars()) {
                    assert_eq!(permits(act, kind, relation), sign == '+', "{act:?} {kind:?} {relation:?}");
                }
            }
        }
    }

    #[test]
    fn nobody_confined_may_more_than_a_run() {
        for (act, ..) in TABLE {
            for relation in [Itself, Parent, Child, Other] {
                let confined = permits(act, Kind::Confined, relation);
                assert!(!confined || permits(act, Kind::Run, relation), "{act:?} {relation:?}");
            }
        }
    }
}

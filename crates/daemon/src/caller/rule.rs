//! What each kind of caller may do. One table: a new kind of request stops the build here, and every route
//! names its own.

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Ask for a sign of life from the daemon, and for the description of its API.
    Ping,
    /// Read the daemon's status.
    Status,
    /// List sessions; the caller is shown those it may read.
    List,
    /// Read metrics about everything.
    Metrics,
    /// Read what one session is, did and was told.
    Read,
    /// Send a message to a session.
    Send,
    /// Hold a `key:` lock by a connection.
    Hold,
    /// Create a session.
    New,
    /// Change the definition of a session.
    Set,
    /// Create, change and archive sessions as a file declares them; of a run only its own family.
    Apply,
    /// Start, stop, interrupt or archive a session, or change its messages.
    Steer,
    /// Restore a session from the archive.
    Restore,
    /// Archive all sessions that are not in use, or restore all.
    Purge,
    /// Use a session's terminal.
    Attach,
    /// Answer what an agent asks a person.
    Answer,
    /// Delete a session for good.
    Remove,
    /// Copy the database, with everything in it.
    Backup,
    /// Read the configuration again.
    Reload,
    /// Stop the daemon, or hand it the records of verbs.
    Down,
}

/// The words of `may` in config.toml: each lets a run act as a person.
pub(crate) const MAY: [(&str, Act); 17] = [
    ("status", Act::Status),
    ("list", Act::List),
    ("metrics", Act::Metrics),
    ("read", Act::Read),
    ("send", Act::Send),
    ("new", Act::New),
    ("set", Act::Set),
    ("apply", Act::Apply),
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
    /// Its word in config.toml; `None` if every run may do it.
    pub(crate) fn word(self) -> Option<&'static str> {
        MAY.iter().find(|(_, act)| *act == self).map(|(word, _)| *word)
    }
}

/// The kind of a caller that is not a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallerKind {
    /// A process of a run.
    Run,
    /// A confined process, of a run or not.
    Confined,
}

/// The relation of a session to the caller's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionRelation {
    Itself,
    Parent,
    Child,
    /// Unrelated; or the caller belongs to no session of this home.
    Other,
}

/// Whether a caller that is not a person may do it. Requests that name no session are about the caller's own.
pub(crate) fn permits(act: Act, kind: CallerKind, relation: SessionRelation) -> bool {
    use SessionRelation::{Child, Itself, Other, Parent};
    let family = match relation {
        Itself | Parent | Child => true,
        Other => false,
    };
    match (act, kind) {
        (Act::Ping, CallerKind::Run | CallerKind::Confined) | (Act::Status | Act::Hold, CallerKind::Run) => {
            true
        }
        (Act::Read | Act::Send, CallerKind::Run) => family,
        (Act::Steer | Act::Restore | Act::Set, CallerKind::Run) => matches!(relation, Itself | Child),
        (Act::List | Act::New | Act::Apply | Act::Purge, CallerKind::Run)
        | (Act::List | Act::Read, CallerKind::Confined) => relation == Itself,
        (Act::Send, CallerKind::Confined) => matches!(relation, Itself | Parent),
        (
            Act::Metrics | Act::Attach | Act::Answer | Act::Remove | Act::Backup | Act::Reload | Act::Down,
            CallerKind::Run,
        )
        | (
            Act::Status
            | Act::Metrics
            | Act::Hold
            | Act::New
            | Act::Set
            | Act::Apply
            | Act::Steer
            | Act::Restore
            | Act::Purge
            | Act::Attach
            | Act::Answer
            | Act::Remove
            | Act::Backup
            | Act::Reload
            | Act::Down,
            CallerKind::Confined,
        ) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SessionRelation::{Child, Itself, Other, Parent};

    /// `+` means allowed: itself, parent, child, other; first for a run, then for a confined caller.
    const TABLE: [(Act, &str, &str); 19] = [
        (Act::Ping, "++++", "++++"),
        (Act::Status, "++++", "----"),
        (Act::List, "+---", "+---"),
        (Act::Metrics, "----", "----"),
        (Act::Read, "+++-", "+---"),
        (Act::Send, "+++-", "++--"),
        (Act::Hold, "++++", "----"),
        (Act::New, "+---", "----"),
        (Act::Set, "+-+-", "----"),
        (Act::Apply, "+---", "----"),
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
            for (kind, row) in [(CallerKind::Run, run), (CallerKind::Confined, confined)] {
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
                let confined = permits(act, CallerKind::Confined, relation);
                assert!(!confined || permits(act, CallerKind::Run, relation), "{act:?} {relation:?}");
            }
        }
    }
}

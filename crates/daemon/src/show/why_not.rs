//! Refusals of the engine, in the words of the API, with what to do about them.

use crate::engine::{GoesOn, WhyNot};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::quoted::quoted;
use pinfold_store::Trouble;
use std::path::Path;

impl From<WhyNot> for ErrorBody {
    fn from(why: WhyNot) -> Self {
        let body = |kind, text: String| ErrorBody::new(kind, text);
        match why {
            WhyNot::Gone => body(ErrorKind::NotFound, "the session has been removed".into()),
            WhyNot::Unknown { wanted } => {
                body(ErrorKind::NotFound, format!("there is no session `{wanted}`")).hint(LISTS)
            }
            WhyNot::PerhapsDamaged { wanted, damaged, state } => {
                let damaged = damaged.join(", ");
                let text = format!("no session `{wanted}` can be read, and damaged are: {damaged}");
                body(ErrorKind::Damaged, text).hint(damage_hint(&state))
            }
            WhyNot::Ambiguous { wanted } => {
                body(ErrorKind::Usage, format!("`{wanted}` is the beginning of several ids")).hint(LISTS)
            }
            WhyNot::Damaged { name, id, problem, state } => {
                let text = format!("the record of session `{name}` ({id}) is damaged: {problem}");
                body(ErrorKind::Damaged, text).hint(damage_hint(&state))
            }
            WhyNot::NoParent(why) => {
                let why = ErrorBody::from(*why);
                ErrorBody { message: format!("its parent was not found: {}", why.message), ..why }
            }
            WhyNot::ParentBelow { wanted } => {
                body(ErrorKind::BadConfig, format!("`{wanted}` is the session itself, or below it"))
            }
            WhyNot::ParentPruned { wanted } => parent_pruned(&wanted),
            WhyNot::Exists { name } => exists(&name),
            WhyNot::NameTaken { name } => name_taken(&name),
            WhyNot::TooMany { there } => too_many(there),
            WhyNot::NoFolder { what, full, problem } => no_folder(what, full, &problem),
            WhyNot::NotArchived { name, state } => not_archived(&name, state),
            WhyNot::NotAtRest { name, state } => not_at_rest(&name, state),
            WhyNot::ChildrenRun { name, running } => children_run(&name, &running),
            WhyNot::NotDeleted { problem } => {
                body(ErrorKind::Failed, format!("its output could not be deleted: {problem}"))
            }
            WhyNot::Unrecordable(trouble) => unrecordable(&trouble),
            WhyNot::PerhapsRecorded { trouble, what } => {
                let why = unrecordable(&trouble);
                let message = format!("{}; {what} was on its way, and may still be recorded", why.message);
                ErrorBody { message, ..why }
            }
            WhyNot::NotRecorded { name, problem } => not_recorded(&format!("session `{name}`"), &problem),
            WhyNot::NothingRecorded { problem } => body(
                ErrorKind::Failed,
                format!("nothing was changed, because it cannot be recorded: {problem}"),
            ),
            WhyNot::Contradicted { name, problem, goes_on } => contradicted(&name, &problem, goes_on),
            WhyNot::GoingDown => body(ErrorKind::Unavailable, "the daemon is going down".into()),
        }
    }
}

const LISTS: &str = "`pinfold ls --all` lists them";

fn damage_hint(state: &Path) -> String {
    format!(
        "nothing was changed; `pinfold restore-backup FILE` puts a backup back; its files are in {}",
        state.display()
    )
}

fn children_run(name: &str, running: &[String]) -> ErrorBody {
    let text = format!("session `{name}` has children that run: {}", running.join(", "));
    ErrorBody::new(ErrorKind::Failed, text).hint("archive them first")
}

fn parent_pruned(wanted: &str) -> ErrorBody {
    let text = format!("its parent `{wanted}` is not declared, so `--prune` archives it");
    ErrorBody::new(ErrorKind::BadConfig, text).hint(format!("declare `{wanted}` too, or leave out --prune"))
}

fn not_recorded(what: &str, problem: &str) -> ErrorBody {
    ErrorBody::new(ErrorKind::Failed, format!("{what} cannot be recorded: {problem}"))
}

fn exists(name: &str) -> ErrorBody {
    ErrorBody::new(ErrorKind::Exists, format!("session `{name}` exists already")).hint(format!(
        "`pinfold show {0}` tells about it; `pinfold archive {0}` frees the name",
        quoted(name)
    ))
}

fn name_taken(name: &str) -> ErrorBody {
    ErrorBody::new(ErrorKind::Exists, format!("another session has the name `{name}` now"))
        .hint(format!("`pinfold archive {}` frees it, `pinfold ls --all` shows the ids", quoted(name)))
}

fn too_many(there: usize) -> ErrorBody {
    let text = format!("there are {there} sessions already, archived ones included, which is the limit");
    ErrorBody::new(ErrorKind::Busy, text)
        .hint("`pinfold rm` removes archived ones; `session_limit` in config.toml is how many there may be")
}

fn no_folder(what: &str, full: bool, problem: &str) -> ErrorBody {
    match full {
        true => ErrorBody::new(ErrorKind::Failed, format!("the disk is full: {what}: {problem}"))
            .hint("make room (`df`), or remove files where it has no inode left (`df -i`)"),
        false => ErrorBody::new(ErrorKind::Failed, format!("{what}: {problem}")),
    }
}

fn not_archived(name: &str, state: &str) -> ErrorBody {
    ErrorBody::new(ErrorKind::Failed, format!("session `{name}` is {state}, not archived")).hint(format!(
        "`pinfold archive {0}` stops it and keeps everything, then `pinfold rm {0} --yes` deletes it",
        quoted(name)
    ))
}

fn not_at_rest(name: &str, state: &str) -> ErrorBody {
    let text = format!("session `{name}` is {state}: its lock has its name, so it keeps that now");
    ErrorBody::new(ErrorKind::Busy, text).hint(format!("`pinfold stop {}`, then rename it", quoted(name)))
}

fn contradicted(name: &str, problem: &str, goes_on: GoesOn) -> ErrorBody {
    let (kind, hint) = match goes_on {
        GoesOn::Again => (ErrorKind::Failed, "it begins again from what is stored; try once more"),
        GoesOn::LeftAlone => (ErrorKind::Damaged, "it is left alone; `pinfold down` ends its agent"),
    };
    ErrorBody::new(kind, format!("session `{name}` could not be recorded: {problem}")).hint(hint)
}

/// The error for a request that must be recorded.
fn unrecordable(trouble: &Trouble) -> ErrorBody {
    let (kind, hint) = match trouble {
        Trouble::None => return ErrorBody::new(ErrorKind::Failed, trouble.to_string()),
        Trouble::Busy => (ErrorKind::Busy, "it is waited for; `fuser` on the database names that program"),
        Trouble::Reserve => (
            ErrorKind::Failed,
            "nothing new is taken until there is room; `ls`, `why`, `logs`, `stop` and `down` work",
        ),
        Trouble::Full => (
            ErrorKind::Failed,
            "what was decided is recorded as soon as there is room; `ls`, `why`, `logs`, `stop` and `down` work",
        ),
        Trouble::Gone { .. } => (
            ErrorKind::Damaged,
            "put it back, or save what the daemon still has: `pinfold backup FILE`, `pinfold down`, \
             `pinfold restore-backup FILE`, with an older backup where none can be made",
        ),
        Trouble::Failed { .. } => (
            ErrorKind::Failed,
            "what was decided is recorded as soon as the disk takes it; `ls`, `why`, `logs`, `stop` and `down` work",
        ),
        Trouble::Damaged { .. } => (
            ErrorKind::Damaged,
            "`ls`, `why`, `logs` and `stop` work; save what can be read: `pinfold backup FILE`, then `pinfold down`, \
             and `pinfold restore-backup FILE` with that or an older one",
        ),
        Trouble::Ended => {
            (ErrorKind::Failed, "`pinfold up --replace` begins again from what is stored; the agents go on")
        }
    };
    ErrorBody::new(kind, trouble.to_string()).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(why: WhyNot) -> (ErrorKind, String, String) {
        let body = ErrorBody::from(why);
        (body.kind, body.message, body.hint.unwrap_or_default())
    }

    #[test]
    fn each_says_what_is_wrong_and_what_to_do() {
        let name = || "my chat".to_owned();
        let cases = [
            (WhyNot::Gone, ErrorKind::NotFound, "the session has been removed", ""),
            (
                WhyNot::Unknown { wanted: name() },
                ErrorKind::NotFound,
                "there is no session `my chat`",
                "`pinfold ls --all` lists them",
            ),
            (
                WhyNot::Exists { name: name() },
                ErrorKind::Exists,
                "session `my chat` exists already",
                "`pinfold show 'my chat'` tells about it; `pinfold archive 'my chat'` frees the name",
            ),
            (
                WhyNot::NotArchived { name: name(), state: "running" },
                ErrorKind::Failed,
                "session `my chat` is running, not archived",
                "`pinfold archive 'my chat'` stops it and keeps everything, then `pinfold rm 'my chat' --yes` deletes it",
            ),
            (
                WhyNot::NoFolder { what: "the home cannot be written", full: true, problem: "no".into() },
                ErrorKind::Failed,
                "the disk is full: the home cannot be written: no",
                "make room (`df`), or remove files where it has no inode left (`df -i`)",
            ),
            (WhyNot::GoingDown, ErrorKind::Unavailable, "the daemon is going down", ""),
        ];
        for (why, kind, message, hint) in cases {
            assert_eq!(words(why), (kind, message.to_owned(), hint.to_owned()));
        }
    }

    #[test]
    fn a_parent_that_is_not_found_is_said_to_be_the_parent() {
        let why = WhyNot::NoParent(Box::new(WhyNot::Ambiguous { wanted: "0".into() }));
        let message = "its parent was not found: `0` is the beginning of several ids".to_owned();
        assert_eq!(words(why), (ErrorKind::Usage, message, LISTS.to_owned()));
    }

    #[test]
    fn what_was_on_its_way_may_still_be_recorded() {
        let (full, what) = (Trouble::Full, "what was asked of `a`".to_owned());
        let (kind, message, hint) = words(WhyNot::Unrecordable(full.clone()));
        let told = words(WhyNot::PerhapsRecorded { trouble: full, what });
        let longer = format!("{message}; what was asked of `a` was on its way, and may still be recorded");
        assert_eq!(told, (kind, longer, hint));
    }
}

//! What a person can do about a home that is damaged or lost.

use pinfold_daemon::StartError;
use pinfold_store::{Damage, OpenError};

/// The next step for each way in which a database can be lost or damaged. The daemon has changed nothing in
/// any of these cases.
pub(crate) fn hint(error: &StartError) -> String {
    let backup = "`pinfold restore-backup FILE` puts a backup back";
    if let StartError::Store(OpenError::TooNew { .. }) = error {
        return "nothing was changed; use the pinfold that wrote it, or a newer one".to_owned();
    }
    if let StartError::Missing { folder, .. } = error {
        return format!("{backup}; to start over, move {} aside", folder.display());
    }
    let StartError::Store(OpenError::Damaged { path, problem }) = error else {
        return format!("nothing was changed; {backup}; to start over, move the home aside");
    };
    let anew = format!("to start over, move `{}` aside", path.parent().unwrap_or(path).display());
    let witness = path.with_file_name("witness");
    let witness = witness.display();
    match problem {
        Damage::Missing(_) => format!("put it back, with its -wal file if there was one; else {backup}"),
        Damage::Behind { .. } => format!(
            "nothing was changed; its -wal file may be missing or damaged: put it back; else {backup}; to go on with \
             what is left move `{witness}` aside"
        ),
        Damage::Another(_) => format!(
            "nothing was changed; put the other one back, or {backup}; to go on with this one move `{witness}` aside"
        ),
        Damage::Witness(path) => format!(
            "nothing was changed; if the database is right, move `{}` aside: `up` makes a new one",
            path.display()
        ),
        Damage::LogOnly => format!("nothing was changed; put it back; else {backup}; {anew}"),
        Damage::Truncated { .. }
        | Damage::NotOurs
        | Damage::Tables
        | Damage::Unreadable(_)
        | Damage::Faults(_) => format!("nothing was changed; {backup}; {anew}"),
    }
}

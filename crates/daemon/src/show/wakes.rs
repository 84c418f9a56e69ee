//! Tells the sender of a message why it does not wake the session.

use pinfold_core::decision::Wakes;
use pinfold_core::quoted::quoted;

/// A note for the sender of a message that will not wake the session.
pub(crate) fn note(wakes: Wakes, session: &str) -> Option<String> {
    match wakes {
        Wakes::Yes => None,
        Wakes::NotWhileStopped => {
            Some(format!("`{session}` is stopped: it waits until `pinfold start {}`", quoted(session)))
        }
        Wakes::NotWhileBlocked => Some(format!(
            "`{session}` is blocked by another process: `pinfold why {}` says which",
            quoted(session)
        )),
        Wakes::NotInBackoff => Some(format!(
            "`{session}` waits after a crash: the message is queued for its next run; `pinfold start {}` starts it now",
            quoted(session)
        )),
        Wakes::NotWhileFailed => Some(format!(
            "`{session}` has failed: the message is queued until you run `pinfold start {}`",
            quoted(session)
        )),
        Wakes::NotWhileHeld => Some(
            "what its account or its budget allows is used up: it waits; `pinfold why` tells till when"
                .into(),
        ),
        Wakes::NotWhileClosing => Some("the daemon is going down: it waits until the next one".into()),
    }
}

//! What an agent does, in words, and for how long.

use pinfold_core::talk::{Activity, ActivitySource, Dialog};
use pinfold_core::{Now, Session, Wall, words};
use std::time::Duration;

/// An answer that begins again so often is worth mentioning; a model may speak twice.
const OFTEN: u32 = 3;
/// A silence worth mentioning.
const SILENT: Duration = Duration::from_secs(60);

/// When an agent last printed, and how often it began its answer again.
type Printed = (Option<Wall>, u32);

/// What is added to `why`; `None` if its state says it all.
pub(crate) fn words(core: &Session, printed: Printed, now: Now) -> Option<String> {
    let standing = core.standing()?;
    let long = |since: Wall| words::duration(since.until(now.wall));
    let said = match (core.activity(), standing.from) {
        (Activity::Working, from) => works(core, from, printed, now)?,
        (Activity::Waiting, ActivitySource::IdFile) => {
            let what = standing.detail.as_ref().map(|what| format!(": {what}")).unwrap_or_default();
            let since = standing.since.map(|since| format!(", for {}", long(since))).unwrap_or_default();
            format!("its terminal waits for a person{what}{since}")
        }
        (Activity::Waiting, ActivitySource::Terminal) => {
            let what = standing.detail.as_ref().map(|what| format!(": {what}")).unwrap_or_default();
            let since = standing.since.map(|since| format!(" {} ago", long(since))).unwrap_or_default();
            format!("its terminal rang{since}{what}")
        }
        // Requests are shown with how to answer them.
        (Activity::Waiting, ActivitySource::Protocol)
        | (Activity::Idle | Activity::Limited | Activity::Unknown, _) => return None,
    };
    let held = core.dialog() == Dialog::Open && core.inbox().queued() > 0;
    let held = if held { "; what is queued is typed when that is answered" } else { "" };
    Some(format!("{said}{held}"))
}

fn works(
    core: &Session,
    from: ActivitySource,
    (printed_at, begun_again): Printed,
    now: Now,
) -> Option<String> {
    if begun_again >= OFTEN {
        return Some(format!(
            "its agent began the answer {begun_again} times again: its model may break off"
        ));
    }
    let silent = printed_at.map(|at| at.until(now.wall)).filter(|silent| *silent >= SILENT);
    let Some(silent) = silent else { return (from == ActivitySource::IdFile).then(|| "working".to_owned()) };
    let limit = core.spec().policy.silence_warn;
    let warning = match limit > Duration::ZERO && silent >= limit {
        true => ", which is long: it may wait for a limit or be stuck (`silence_warn`)",
        false => "",
    };
    Some(format!("working, silent for {}{warning}", words::duration(silent)))
}

/// What a queued message of a session waits for, besides its turn.
pub(crate) fn waits_for(core: &Session) -> Option<String> {
    if let Some(hold) = core.hold() {
        return Some(match hold.until {
            Some(until) => format!("{hold}; till {}", crate::clock::time(until.wall)),
            None => hold.to_string(),
        });
    }
    if let Some(request) = core.talk().open().next() {
        return Some(format!("an answer to {}: {}", request.number, request.title));
    }
    let open = core.standing().filter(|standing| standing.dialog == Dialog::Open)?;
    Some(open.detail.as_ref().map_or_else(|| "a dialog".to_owned(), |what| format!("a dialog: {what}")))
}

/// Where the knowledge of its activity comes from; `protocol` is the word for its protocol.
pub(crate) fn source(core: &Session, protocol: &str) -> Option<String> {
    let known = core.standing().filter(|_| core.activity() != Activity::Unknown)?;
    Some(match known.from {
        ActivitySource::Protocol => protocol.to_owned(),
        ActivitySource::IdFile => "id_file".to_owned(),
        ActivitySource::Terminal => "terminal".to_owned(),
    })
}

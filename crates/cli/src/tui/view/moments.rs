//! Ages and times. Ages are in whole minutes, so that nothing has to be painted more often.

use super::super::model::Model;
use super::settled::settled;
use jiff::Timestamp;

/// A time from an object, in milliseconds since 1970.
fn ms(at: &str) -> Option<u64> {
    u64::try_from(at.parse::<Timestamp>().ok()?.as_millisecond()).ok()
}

/// How long ago a time was: `<1m`, `3m`, `2h5m`, `4d`.
pub(crate) fn age(model: &Model, at: &str) -> Option<String> {
    let minutes = model.now.saturating_sub(ms(at)?) / 60_000;
    Some(match minutes {
        0 => "<1m".to_owned(),
        1..=59 => format!("{minutes}m"),
        60..=599 if !minutes.is_multiple_of(60) => format!("{}h{}m", minutes / 60, minutes % 60),
        60..=1439 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1440),
    })
}

/// A session's sentence, told at `told_at`, reworded so that it stays true.
pub(super) fn lasting(model: &Model, sentence: &str, told_at: u64) -> String {
    let moment = |ms: u64| {
        let at = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        at.map(|at| clock(model, &at.to_string())).unwrap_or_default()
    };
    settled(sentence, told_at, moment)
}

/// The time of day, with the date if it was not today.
pub(crate) fn clock(model: &Model, at: &str) -> String {
    let local =
        if model.here.utc { at.get(..19).unwrap_or(at).replace('T', " ") } else { crate::output::moment(at) };
    let today = ms(at).is_some_and(|at| model.now.abs_diff(at) < 12 * 3_600_000);
    let part = if today { local.get(11..19) } else { local.get(5..16) };
    part.unwrap_or(&local).to_owned()
}

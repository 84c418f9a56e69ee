//! Moments as they appear in objects: RFC 3339, written in UTC to the millisecond. The calendar is jiff's.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Writes a moment given in milliseconds since 1970.
///
/// ```
/// assert_eq!(pinfold_api::time::rfc3339(951_827_696_001), "2000-02-29T12:34:56.001Z");
/// ```
#[must_use]
pub fn rfc3339(ms: u64) -> String {
    let at = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", at.unwrap_or(Timestamp::MAX))
}

/// Parses a moment, as milliseconds since 1970: `2026-11-15T18:00:00Z`, `2026-11-15T19:00:00.5+01:00`.
#[must_use]
pub fn moment(text: &str) -> Option<i64> {
    let text = text.trim();
    let at: Timestamp = text.parse().ok().filter(|_| is_whole(text))?;
    Some(at.as_millisecond())
}

/// Whether it has all parts: jiff also accepts shorter forms, which are not RFC 3339.
fn is_whole(text: &str) -> bool {
    let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    marks.into_iter().all(|(at, mark)| text.as_bytes().get(at) == Some(&mark))
}

/// Returns the first millisecond of the local day that a moment is in.
#[must_use]
pub fn midnight(millis: i64) -> i64 {
    let day = local(millis).and_then(|zoned| zoned.start_of_day().ok());
    day.map_or(millis - millis.rem_euclid(DAY), |day| day.timestamp().as_millisecond())
}

/// Returns the first millisecond of the next local day.
#[must_use]
pub fn next_midnight(millis: i64) -> i64 {
    let next = local(millis).and_then(|zoned| zoned.tomorrow().ok()?.start_of_day().ok());
    next.map_or(millis - millis.rem_euclid(DAY) + DAY, |day| day.timestamp().as_millisecond())
}

/// Returns the local day that a moment is in: `2026-11-17`.
#[must_use]
pub fn local_day(millis: i64) -> String {
    local(millis).map(|zoned| zoned.date().to_string()).unwrap_or_default()
}

/// The length of a day without a change of the clocks.
const DAY: i64 = 24 * 60 * 60 * 1000;

fn local(millis: i64) -> Option<Zoned> {
    Some(Timestamp::from_millisecond(millis).ok()?.to_zoned(TimeZone::system()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let rows = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_001, "2000-02-29T12:34:56.001Z"),
            (1_767_225_599_999, "2025-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (ms, text) in rows {
            assert_eq!(rfc3339(ms), text);
            assert_eq!(moment(text), i64::try_from(ms).ok());
        }
        assert!(rfc3339(u64::MAX).starts_with("9999-12-30T"));
    }

    #[test]
    fn the_rows_of_the_moment_syntax() {
        let rows = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:30:15Z", Some(951_827_415_000)),
            ("2026-11-15T18:00:00Z", Some(1_794_765_600_000)),
            ("2026-11-15T19:00:00.5+01:00", Some(1_794_765_600_500)),
            ("2026-11-15 17:30:00.123456-00:30", Some(1_794_765_600_123)),
            ("1969-12-31T23:59:59Z", Some(-1_000)),
            ("2026-11-15", None),
            ("2026-11-15T18:00:00", None),
            ("2026-11-15T18:00Z", None),
            ("20261115T180000Z", None),
            ("2026-13-15T18:00:00Z", None),
            ("2026-02-31T00:00:00Z", None),
            ("2025-02-29T00:00:00Z", None),
            ("2026-1-015T00:00:00Z", None),
            ("2026-11-15T25:00:00Z", None),
            ("yesterday", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(moment(text), expected, "{text}");
        }
    }
}

//! Times for people and JSON: RFC 3339 in UTC, and ages in words.

use std::time::Duration;

/// Writes milliseconds since 1970 as RFC 3339, in UTC, to the millisecond.
#[must_use]
pub fn rfc3339(ms: u64) -> String {
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = civil(days);
    let (seconds, millis) = (rest / 1000, rest % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The calendar date of a day since 1970, by eras of 400 years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    (year + era * 400, month, day)
}

/// Says an age in one unit: `12 s`, `3 min`, `28 h`, `4 d`.
#[must_use]
pub fn age(age: Duration) -> String {
    match age.as_secs() {
        0..=119 => format!("{} s", age.as_secs()),
        120..=7199 => format!("{} min", age.as_secs() / 60),
        7200..=172_799 => format!("{} h", age.as_secs() / 3600),
        _ => format!("{} d", age.as_secs() / 86_400),
    }
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
        }
    }

    #[test]
    fn ages_have_one_unit() {
        for (seconds, text) in
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (100_800, "28 h"), (400_000, "4 d")]
        {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}

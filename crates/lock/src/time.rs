//! Times for people: the time of day in UTC, and ages in words.

use std::time::Duration;

/// Returns the time of day in UTC of a moment in milliseconds since 1970: `18:04:05`.
#[must_use]
pub fn of_day(ms: u64) -> String {
    let seconds = ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Writes an age in one unit: `12 s`, `3 min`, `28 h`, `4 d`.
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
    fn the_time_of_day_is_told_without_a_calendar() {
        let rows = [(0, "00:00:00"), (951_827_696_001, "12:34:56"), (1_767_225_599_999, "23:59:59")];
        for (ms, text) in rows {
            assert_eq!(of_day(ms), text);
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

//! Durations and sizes as people write them. A bare number is an error that names the units.

use std::time::Duration;

/// What a duration looks like, for schemas.
pub(crate) const DURATION: &str = "^[0-9]+(ms|s|m|h|d)$";
/// What a size looks like, for schemas.
pub(crate) const SIZE: &str = "^[0-9]+[KMGT]$";

const DURATIONS: &str = "ms, s, m, h or d, as in 250ms, 10s, 5m, 2h, 7d";
const SIZES: &str = "K, M, G or T, as in 512M, 2G";

/// A text that is not a duration or a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAQuantity {
    /// A number without a unit.
    #[error("`{text}` needs a unit: {units}")]
    NoUnit {
        /// What was written.
        text: String,
        /// What may stand behind it.
        units: &'static str,
    },
    /// Something else.
    #[error("`{text}` is not a {what}: write a number with {units}")]
    Malformed {
        /// What was written.
        text: String,
        /// What was wanted.
        what: &'static str,
        /// What may stand behind the number.
        units: &'static str,
    },
    /// A number that is too large.
    #[error("`{text}` is too large")]
    TooLarge {
        /// What was written.
        text: String,
    },
}

/// Reads a duration: `250ms`, `10s`, `5m`, `2h`, `7d`.
///
/// # Errors
/// Anything else; a bare number names the units.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(pinfold_api::units::duration("5m"), Ok(Duration::from_secs(300)));
/// assert!(pinfold_api::units::duration("5").unwrap_err().to_string().contains("10s"));
/// ```
pub fn duration(text: &str) -> Result<Duration, NotAQuantity> {
    let factor = |unit: &str| match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    quantity(text, "duration", DURATIONS, factor).map(Duration::from_millis)
}

/// Reads a size: `512M`, `2G`.
///
/// # Errors
/// Anything else; a bare number names the units.
pub fn size(text: &str) -> Result<u64, NotAQuantity> {
    let factor = |unit: &str| match unit {
        "K" => Some(1 << 10),
        "M" => Some(1 << 20),
        "G" => Some(1 << 30),
        "T" => Some(1 << 40),
        _ => None,
    };
    quantity(text, "size", SIZES, factor)
}

/// Reads a moment in RFC 3339, as milliseconds since 1970: `2026-11-15T18:00:00Z`, `2026-11-15T19:00:00.5+01:00`.
#[must_use]
pub fn moment(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let [year, month, day] = numbers::<3>(date, '-')?;
    let [hour, minute, second] = numbers::<3>(clock, ':')?;
    let (fraction, zone) = split_fraction(rest)?;
    let valid =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let days = days_since_1970(year, month, day);
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - zone;
    valid.then_some(seconds * 1000 + fraction)
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[i64; N]> {
    let mut found = [0; N];
    let mut words = text.split(separator);
    for number in &mut found {
        let word = words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()))?;
        *number = word.parse().ok()?;
    }
    words.next().is_none().then_some(found)
}

/// Milliseconds behind the point, and the seconds by which the zone is ahead.
fn split_fraction(text: &str) -> Option<(i64, i64)> {
    let digits = text.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let (fraction, zone) = if digits > 0 { text[1..].split_at(digits) } else { ("", text) };
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let zone = match zone {
        "Z" | "z" => 0,
        _ => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let [hours, minutes] = numbers::<2>(zone.strip_prefix(['+', '-'])?, ':')?;
            sign * (hours * 3600 + minutes * 60)
        }
    };
    Some((millis, zone))
}

/// Days by the Gregorian calendar; March counts as the first month, so the leap day is the last of a year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn quantity(
    text: &str,
    what: &'static str,
    units: &'static str,
    factor: impl Fn(&str) -> Option<u64>,
) -> Result<u64, NotAQuantity> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if digits > 0 && unit.is_empty() {
        return Err(NotAQuantity::NoUnit { text: text.to_owned(), units });
    }
    let Some(factor) = factor(unit).filter(|_| digits > 0) else {
        return Err(NotAQuantity::Malformed { text: text.to_owned(), what, units });
    };
    let number: Option<u64> = number.parse().ok();
    number
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| NotAQuantity::TooLarge { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_the_duration_syntax() {
        let rows = [
            ("250ms", Some(250)),
            ("10s", Some(10_000)),
            ("5m", Some(300_000)),
            ("2h", Some(7_200_000)),
            ("7d", Some(604_800_000)),
            ("0s", Some(0)),
            ("10", None),
            ("s", None),
            ("", None),
            ("-1s", None),
            ("1.5s", None),
            ("10 s", None),
            ("10S", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
        ];
        for (text, expected) in rows {
            assert_eq!(duration(text).ok(), expected.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn the_rows_of_the_size_syntax() {
        let rows = [
            ("512M", Some(512 << 20)),
            ("2G", Some(2 << 30)),
            ("1K", Some(1024)),
            ("1T", Some(1 << 40)),
            ("512", None),
            ("512m", None),
            ("1.5G", None),
            ("-1G", None),
            ("99999999999T", None),
        ];
        for (text, expected) in rows {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
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
            ("2026-13-15T18:00:00Z", None),
            ("2026-11-15T25:00:00Z", None),
            ("yesterday", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(moment(text), expected, "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_told_the_units() {
        assert!(duration("10").unwrap_err().to_string().contains("250ms, 10s, 5m, 2h, 7d"));
        assert!(size("10").unwrap_err().to_string().contains("512M, 2G"));
    }
}

//! Durations as people write them: `250ms`, `10s`, `5m`, `2h`, `7d`.

use std::time::Duration;

const UNITS: &str = "ms, s, m, h or d, as in 250ms, 10s, 5m, 2h, 7d";

/// Reads a duration; a bare number is an error that names the units.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "" if digits > 0 => return Err(format!("a duration needs a unit: {UNITS}")),
        _ => return Err(format!("a duration is a number with a unit: {UNITS}")),
    };
    let number: u64 = number.parse().map_err(|_| format!("a duration is a number with a unit: {UNITS}"))?;
    number
        .checked_mul(milliseconds)
        .map(Duration::from_millis)
        .ok_or_else(|| "the duration is too long".to_owned())
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
            assert_eq!(parse(text).ok(), expected.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_told_the_units() {
        assert!(parse("10").is_err_and(|error| error.contains("250ms, 10s, 5m, 2h, 7d")));
    }
}

//! Durations and sizes as people write them. A bare number is an error that names the units.

use std::time::Duration;

/// What a duration looks like, for schemas.
pub(crate) const DURATION: &str = "^[0-9]+(ms|s|m|min|h|d)$";
/// What a size looks like, for schemas.
pub(crate) const SIZE: &str = "^[0-9]+([.][0-9]{1,3})?[KMGTkmgt](i?B)?$";

/// What an amount of money looks like, for schemas.
pub(crate) const MONEY: &str = "^[0-9]+(\\.[0-9]{1,9})?USD$";

const DURATIONS: &str = "ms, s, m, h or d, as in 250ms, 10s, 5m, 2h, 7d";
const AMOUNTS: &str = "USD, as in 5USD, 0.50USD";
const SIZES: &str = "K, M, G or T, as in 512M, 2G";

/// A text that is not a duration or a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAQuantity {
    /// A number without a unit.
    #[error("`{text}` needs a unit: {units}")]
    NoUnit {
        /// What was written.
        text: String,
        /// The units that may follow it.
        units: &'static str,
    },
    /// It is something else.
    #[error("`{text}` is not a {what}: write a number with {units}")]
    Malformed {
        /// What was written.
        text: String,
        /// What was expected.
        what: &'static str,
        /// The units that may follow the number.
        units: &'static str,
    },
    /// The number is too large.
    #[error("`{text}` is too large")]
    TooLarge {
        /// What was written.
        text: String,
    },
}

/// Parses a duration: `250ms`, `10s`, `5m` (or `5min`), `2h`, `7d`.
///
/// # Errors
/// Anything else; for a bare number the error names the units.
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
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let whole = |number: &str, factor: u64| number.parse::<u64>().ok()?.checked_mul(factor);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    quantity(text, digits, ("duration", DURATIONS), factor, whole).map(Duration::from_millis)
}

/// Parses a size: `512M`, `2G`, `1.5G`, and `512MB` or `2GiB` for the same; each unit is 1024 of the one below.
///
/// # Errors
/// Anything else; for a bare number the error names the units.
///
/// ```
/// assert_eq!(pinfold_api::units::size("1.5G"), pinfold_api::units::size("1536MiB"));
/// ```
pub fn size(text: &str) -> Result<u64, NotAQuantity> {
    let factor = |unit: &str| {
        let letter = unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B')).unwrap_or(unit);
        match letter {
            "K" | "k" => Some(1 << 10),
            "M" | "m" => Some(1 << 20),
            "G" | "g" => Some(1 << 30),
            "T" | "t" => Some(1 << 40),
            _ => None,
        }
    };
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    quantity(text, digits, ("size", SIZES), factor, decimal)
}

/// Parses a number with up to three decimals and multiplies it by the unit.
fn decimal(number: &str, factor: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let thousandths: u64 = format!("{part:0<3}").parse().ok()?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    whole.checked_add(thousandths * (factor >> 10) * 1024 / 1000)
}

/// Parses an amount of money, in billionths of a dollar: `5USD`, `0.50USD`.
///
/// # Errors
/// Anything else; for a bare number the error names the unit.
pub fn money(text: &str) -> Result<u64, NotAQuantity> {
    let (units, malformed) = (AMOUNTS, || text.to_owned());
    let numeric = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if numeric {
        return Err(NotAQuantity::NoUnit { text: malformed(), units });
    }
    let not_one = || NotAQuantity::Malformed { text: malformed(), what: "sum of money", units };
    let number = text.strip_suffix("USD").ok_or_else(not_one)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 {
        return Err(not_one());
    }
    let billionths = format!("{part:0<9}").parse::<u64>().ok();
    let dollars = whole.parse::<u64>().ok().and_then(|dollars| dollars.checked_mul(1_000_000_000));
    let sum = dollars.zip(billionths).and_then(|(dollars, part)| dollars.checked_add(part));
    sum.ok_or_else(|| NotAQuantity::TooLarge { text: malformed() })
}

/// Writes an amount so that it can be parsed again.
#[must_use]
pub fn money_text(billionths: u64) -> String {
    let part = format!("{:09}", billionths % 1_000_000_000);
    let part = part.trim_end_matches('0');
    let dollars = billionths / 1_000_000_000;
    if part.is_empty() { format!("{dollars}USD") } else { format!("{dollars}.{part:0<2}USD") }
}

/// Writes a duration so that it can be parsed again, in the largest unit that gives a whole number.
#[must_use]
pub fn duration_text(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    whole(millis, &units).unwrap_or_else(|| "0s".to_owned())
}

/// Writes a size so that it can be parsed again; anything but a whole number of KiB is rounded up to one.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    let units = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    whole(bytes.next_multiple_of(1 << 10), &units).unwrap_or_else(|| "0K".to_owned())
}

/// Writes a number above 0 in the first unit that gives a whole number.
fn whole(number: u64, units: &[(&str, u64)]) -> Option<String> {
    let (unit, factor) = units.iter().find(|(_, factor)| number > 0 && number.is_multiple_of(*factor))?;
    Some(format!("{}{unit}", number / factor))
}

/// Whether a number may have been meant: digits, and at most three of them after a point.
fn is_number(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(part) && part.len() <= 3
}

fn quantity(
    text: &str,
    digits: usize,
    (what, units): (&'static str, &'static str),
    factor: impl Fn(&str) -> Option<u64>,
    product: impl Fn(&str, u64) -> Option<u64>,
) -> Result<u64, NotAQuantity> {
    let (number, unit) = text.split_at(digits);
    if is_number(number) && unit.is_empty() {
        return Err(NotAQuantity::NoUnit { text: text.to_owned(), units });
    }
    let Some(factor) = factor(unit).filter(|_| is_number(number)) else {
        return Err(NotAQuantity::Malformed { text: text.to_owned(), what, units });
    };
    product(number, factor).ok_or_else(|| NotAQuantity::TooLarge { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_again() {
        for (text, millis) in
            [("1d", 86_400_000), ("90m", 5_400_000), ("250ms", 250), ("0s", 0), ("61s", 61_000)]
        {
            assert_eq!(duration_text(Duration::from_millis(millis)), text);
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)));
        }
        for (text, bytes) in [("2G", 2 << 30), ("1536M", 1536 << 20), ("1K", 1000), ("0K", 0)] {
            assert_eq!(size_text(bytes), text);
        }
    }

    #[test]
    fn the_rows_of_the_duration_syntax() {
        let rows = [
            ("250ms", Some(250)),
            ("10s", Some(10_000)),
            ("5m", Some(300_000)),
            ("2h", Some(7_200_000)),
            ("7d", Some(604_800_000)),
            ("0s", Some(0)),
            ("5min", Some(300_000)),
            ("5mins", None),
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
            ("512m", Some(512 << 20)),
            ("100MB", Some(100 << 20)),
            ("2GiB", Some(2 << 30)),
            ("2g", Some(2 << 30)),
            ("1.5G", Some(3 << 29)),
            ("0.001K", Some(1)),
            ("512", None),
            ("1.5", None),
            ("1.G", None),
            (".5G", None),
            ("1.2345G", None),
            ("1.5.5G", None),
            ("2GB ", None),
            ("2Gi", None),
            ("2B", None),
            ("-1G", None),
            ("99999999999T", None),
        ];
        for (text, expected) in rows {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn the_rows_of_the_syntax_of_money() {
        let rows = [
            ("5USD", Some(5_000_000_000)),
            ("0.50USD", Some(500_000_000)),
            ("0.000000001USD", Some(1)),
            ("0USD", Some(0)),
            ("5", None),
            ("5.5", None),
            ("5EUR", None),
            ("5 USD", None),
            ("-5USD", None),
            (".5USD", None),
            ("5.USD", None),
            ("1.0000000001USD", None),
            ("99999999999999USD", None),
        ];
        for (text, expected) in rows {
            assert_eq!(money(text).ok(), expected, "{text}");
        }
        for text in ["5USD", "0.50USD", "12.345USD", "0.000000001USD"] {
            assert_eq!(money(text).map(money_text).as_deref(), Ok(text));
        }
        assert!(money("5").unwrap_err().to_string().contains("5USD"));
    }

    #[test]
    fn a_bare_number_is_told_the_units() {
        assert!(duration("10").unwrap_err().to_string().contains("250ms, 10s, 5m, 2h, 7d"));
        assert!(size("10").unwrap_err().to_string().contains("512M, 2G"));
    }
}

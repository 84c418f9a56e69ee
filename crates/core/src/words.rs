//! Durations and sizes as a person would say them.

use std::time::Duration;

/// Writes a duration in one or two units: `250 ms`, `1.5 s`, `3 min`, `2 h 5 min`, `3 d`.
#[must_use]
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..=9 if duration.subsec_millis() >= 100 => {
            format!("{}.{} s", seconds, duration.subsec_millis() / 100)
        }
        1..=59 => format!("{seconds} s"),
        60..=3599 => two(seconds, 60, "min", 1, "s", 600),
        3600..=86_399 => two(seconds, 3600, "h", 60, "min", u64::MAX),
        _ => two(seconds, 86_400, "d", 3600, "h", u64::MAX),
    }
}

/// Leaves out the smaller unit if it is zero or too small to matter.
fn two(seconds: u64, large: u64, name: &str, small: u64, small_name: &str, care_below: u64) -> String {
    let rest = (seconds % large) / small;
    if rest == 0 || seconds >= care_below {
        format!("{} {name}", seconds / large)
    } else {
        format!("{} {name} {rest} {small_name}", seconds / large)
    }
}

/// Writes a size: `512 B`, `1.5 MiB`, `2 GiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let Some((name, unit)) = UNITS.into_iter().find(|(_, unit)| bytes >= *unit) else {
        return format!("{bytes} B");
    };
    let tenths = (bytes % unit) * 10 / unit;
    if tenths == 0 { format!("{} {name}", bytes / unit) } else { format!("{}.{tenths} {name}", bytes / unit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_a_person_would_say_them() {
        let rows = [
            (0, "0 ms"),
            (250, "250 ms"),
            (999, "999 ms"),
            (1000, "1 s"),
            (1540, "1.5 s"),
            (9_050, "9 s"),
            (10_900, "10 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (61_000, "1 min 1 s"),
            (600_000, "10 min"),
            (601_000, "10 min"),
            (3_600_000, "1 h"),
            (7_500_000, "2 h 5 min"),
            (86_400_000, "1 d"),
            (97_200_000, "1 d 3 h"),
        ];
        for (millis, expected) in rows {
            assert_eq!(duration(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn sizes_read_as_a_person_would_say_them() {
        let rows = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (1 << 20, "1 MiB"),
            (5 << 30, "5 GiB"),
        ];
        for (bytes, expected) in rows {
            assert_eq!(size(bytes), expected);
        }
    }
}

//! Times for people: in this machine's zone, or that of `TZ`. Objects have them in UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

/// The zone of people's times while this process lives.
static ZONE: LazyLock<TimeZone> = LazyLock::new(|| match std::env::var_os("TZ") {
    None => of_machine(Path::new("/etc/localtime")).unwrap_or_else(TimeZone::system),
    Some(_) => TimeZone::system(),
});

/// The zone in a file. [`TimeZone::system`] lists every zone of the machine to find its name, which takes longer
/// than most commands.
fn of_machine(file: &Path) -> Option<TimeZone> {
    TimeZone::tzif("local", &std::fs::read(file).ok()?).ok()
}

/// A time from an object, to the second, in local time.
pub(crate) fn moment(text: &str) -> String {
    in_zone(text, &ZONE).unwrap_or_else(|| text.to_owned())
}

/// The same with its zone, for a sentence that may be read elsewhere.
pub(crate) fn zoned(text: &str) -> String {
    let name = text.parse::<Timestamp>().ok().map(|at| at.to_zoned(ZONE.clone()).strftime("%Z").to_string());
    match in_zone(text, &ZONE).zip(name) {
        Some((at, name)) => format!("{at} {name}"),
        None => text.to_owned(),
    }
}

fn in_zone(text: &str, zone: &TimeZone) -> Option<String> {
    let at: Timestamp = text.parse().ok()?;
    Some(at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// How long ago a time from an object was, in short: `12s`, `3m`, `2h5m`, `4d`.
pub(crate) fn ago(text: &str) -> Option<String> {
    let at: Timestamp = text.parse().ok()?;
    let now = i64::try_from(pinfold_kernel::clock::wall_ms()).ok()?;
    let ms = u64::try_from(now.saturating_sub(at.as_millisecond())).unwrap_or(0);
    Some(short(Duration::from_millis(ms)))
}

/// A duration short enough for a table.
pub(crate) fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let two = |large: u64, name: &str, small: u64, small_name: &str| {
        let (whole, rest) = (seconds / large, seconds % large / small);
        if rest == 0 || whole >= 10 {
            format!("{whole}{name}")
        } else {
            format!("{whole}{name}{rest}{small_name}")
        }
    };
    match seconds {
        0..=59 => format!("{seconds}s"),
        60..=3599 => two(60, "m", 1, "s"),
        3600..=86_399 => two(3600, "h", 60, "m"),
        _ => two(86_400, "d", 3600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_in_the_time_of_the_zone() {
        let zone = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
        let rows = [
            ("2026-11-15T18:00:00.123Z", Some("2026-11-15 13:00:00")),
            ("2026-07-15T03:00:00Z", Some("2026-07-14 23:00:00")),
            ("yesterday", None),
        ];
        for (text, expected) in rows {
            assert_eq!(in_zone(text, &zone).as_deref(), expected, "{text}");
        }
        assert_eq!(moment("not a time"), "not a time");
    }

    #[test]
    fn the_zone_of_a_file_is_read_and_what_is_no_zone_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("localtime");
        assert!(of_machine(&file).is_none());
        std::fs::write(&file, "no zone").unwrap();
        assert!(of_machine(&file).is_none());
        std::fs::write(&file, half_an_hour_ahead()).unwrap();
        let zone = of_machine(&file).unwrap();
        assert_eq!(in_zone("2026-11-15T18:00:00Z", &zone).as_deref(), Some("2026-11-15 18:30:00"));
    }

    /// A file of zoneinfo, version 2, without changes of the clocks.
    fn half_an_hour_ahead() -> Vec<u8> {
        let header = [b"TZif2".as_slice(), &[0; 15 + 16], &[0, 0, 0, 1, 0, 0, 0, 4]].concat();
        let kind = [1800_i32.to_be_bytes().as_slice(), &[0, 0], b"HAH\0"].concat();
        [header.clone(), kind.clone(), header, kind, b"\n<HAH>-0:30\n".to_vec()].concat()
    }

    #[test]
    fn a_duration_in_a_table_is_short() {
        let rows = [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (192, "3m12s"),
            (601, "10m"),
            (3600, "1h"),
            (7500, "2h5m"),
            (86_399, "23h"),
            (97_200, "1d3h"),
            (2_000_000, "23d"),
        ];
        for (seconds, expected) in rows {
            assert_eq!(short(Duration::from_secs(seconds)), expected);
        }
    }
}

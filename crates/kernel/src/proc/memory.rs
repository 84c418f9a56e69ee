//! Memory figures, from `status` and `smaps_rollup` of a process and `memory.stat` of a control group.
//!
//! In bytes, or `None` for what a text does not say: that is never 0.

/// Reads the memory of one process from its `/proc/PID/status`, in bytes.
///
/// That is `RssAnon` + `RssShmem`; their presence decides, not their value. Only if both are missing, or one
/// is malformed, does `VmRSS` (which includes mapped files) stand in. A malformed field is never 0: with
/// nothing to fall back on the answer is `None`. A process without any of these lines is a zombie or a kernel
/// thread and has no memory.
///
/// ```
/// use pinfold_kernel::proc::memory::of_status;
/// let text = "Name:\tclaude\nVmRSS:\t  7000000 kB\nRssAnon:\t    1024 kB\nRssFile:\t 6000000 kB\nRssShmem:\t       0 kB\n";
/// assert_eq!(of_status(text), Some(1_048_576));
/// ```
#[must_use]
pub fn of_status(text: &str) -> Option<u64> {
    let resident = Field::find(text, "VmRSS");
    match (Field::find(text, "RssAnon"), Field::find(text, "RssShmem")) {
        (Field::Missing, Field::Missing) => resident.or_nothing(),
        (Field::Malformed, _) | (_, Field::Malformed) => resident.or_unknown(),
        (anon, shmem) => anon
            .kibibytes()
            .checked_add(shmem.kibibytes())
            .and_then(|sum| sum.checked_mul(1024))
            .or_else(|| resident.or_unknown()),
    }
}

/// Reads the memory of a control group from its `memory.stat`, in bytes: anonymous and shared memory, never
/// the total, which is mostly page cache.
///
/// That is `anon` + `shmem` in version 2. Version 1 counts a group without the groups below it, and with them
/// as `total_rss` and `total_shmem`.
///
/// ```
/// use pinfold_kernel::proc::memory::of_group;
/// assert_eq!(of_group("anon 4096\nfile 7000000000\nshmem 8192\n"), Some(12_288));
/// ```
#[must_use]
pub fn of_group(text: &str) -> Option<u64> {
    let total = counter(text, "total_rss");
    let (anon, shmem) = match total {
        None => (counter(text, "anon"), counter(text, "shmem")),
        Some(_) => (total, counter(text, "total_shmem")),
    };
    anon.flatten().and_then(|anon| anon.checked_add(shmem.unwrap_or(Some(0))?))
}

/// Returns a counter, if it is present; the inner `None` means that it is not a number.
fn counter(text: &str, name: &str) -> Option<Option<u64>> {
    let mut found = text.split('\n').filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = found.next()?;
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    Some(value.parse().ok().filter(|_| digits && found.next().is_none()))
}

/// Reads the memory of a process from its `smaps_rollup`, in bytes: its share of anonymous and shared memory,
/// in which a page shared by n processes counts as an n-th for each.
///
/// A process that has ended has an empty text and no memory. Kernels before 5.4 do not list the shares by
/// kind, so there the answer is `None`.
#[must_use]
pub fn of_rollup(text: &str) -> Option<u64> {
    if text.is_empty() {
        return Some(0);
    }
    let Field::Kibibytes(anon) = Field::find(text, "Pss_Anon") else { return None };
    let shmem = match Field::find(text, "Pss_Shmem") {
        Field::Kibibytes(shmem) => shmem,
        Field::Missing => 0,
        Field::Malformed => return None,
    };
    anon.checked_add(shmem).and_then(|sum| sum.checked_mul(1024))
}

/// Returns how much of a process is swapped out, in bytes, from its `/proc/PID/status`; 0 if it does not say.
#[must_use]
pub fn swapped(text: &str) -> u64 {
    Field::find(text, "VmSwap").kibibytes().saturating_mul(1024)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Missing,
    Malformed,
    Kibibytes(u64),
}

impl Field {
    fn find(text: &str, name: &str) -> Field {
        let mut found = Field::Missing;
        for line in text.split('\n') {
            let Some(value) = line.trim_start().strip_prefix(name).and_then(|rest| rest.strip_prefix(':'))
            else {
                continue;
            };
            // The kernel never writes blanks before the name, nor the same field twice.
            if found != Field::Missing || !line.starts_with(name) {
                return Field::Malformed;
            }
            found = Field::value(value.strip_suffix('\r').unwrap_or(value));
        }
        found
    }

    fn value(text: &str) -> Field {
        let digits = text.trim_start_matches([' ', '\t']);
        let blank = digits.len() < text.len();
        let number = digits.strip_suffix(" kB").filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
        match number.and_then(|n| n.parse().ok()) {
            Some(kibibytes) if blank => Field::Kibibytes(kibibytes),
            Some(_) | None => Field::Malformed,
        }
    }

    fn kibibytes(self) -> u64 {
        match self {
            Field::Kibibytes(kibibytes) => kibibytes,
            Field::Missing | Field::Malformed => 0,
        }
    }

    fn or_nothing(self) -> Option<u64> {
        match self {
            Field::Missing => Some(0),
            Field::Malformed | Field::Kibibytes(_) => self.or_unknown(),
        }
    }

    fn or_unknown(self) -> Option<u64> {
        match self {
            Field::Kibibytes(kibibytes) => kibibytes.checked_mul(1024),
            Field::Missing | Field::Malformed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(anon: &str, shmem: &str, resident: &str) -> Option<u64> {
        let mut text = String::from("Name:\tagent (RssAnon: 9 kB)\nState:\tS (sleeping)\n");
        for (name, value) in [("VmRSS", resident), ("RssAnon", anon), ("RssShmem", shmem)] {
            if value != "-" {
                text.push_str(&format!("{name}:\t{value}\n"));
            }
        }
        text.push_str("RssFile:\t  123456 kB\nThreads:\t1\n");
        of_status(&text)
    }

    #[test]
    fn the_rows_of_the_status_table() {
        let any = "7000000 kB";
        let old = "4096 kB";
        let fallback = Some(4_194_304);
        let rows = [
            ("1024 kB", "0 kB", any, Some(1_048_576)),
            ("0 kB", "512 kB", any, Some(524_288)),
            ("0 kB", "0 kB", any, Some(0)),
            ("-", "256 kB", any, Some(262_144)),
            ("2048 kB", "-", any, Some(2_097_152)),
            ("-", "-", old, fallback),
            ("notanumber kB", "0 kB", old, fallback),
            ("12abc kB", "0 kB", old, fallback),
            ("3 MB", "0 kB", old, fallback),
            ("3", "0 kB", old, fallback),
            ("3 kB ", "0 kB", old, fallback),
            ("3  kB", "0 kB", old, fallback),
            (" kB", "0 kB", old, fallback),
            ("\n1024 kB", "0 kB", old, fallback),
            ("-5 kB", "0 kB", old, fallback),
            ("+5 kB", "0 kB", old, fallback),
            ("123456789012345678901 kB", "0 kB", old, fallback),
            ("18446744073709551615 kB", "0 kB", old, fallback),
            ("18446744073709551615 kB", "1 kB", old, fallback),
            ("5 kB\nRssAnon:\t5 kB", "0 kB", old, fallback),
            ("1 kB", "junk", old, fallback),
            ("junk", "junk", "-", None),
            ("junk", "junk", "junk", None),
            ("-", "-", "junk", None),
            ("-", "-", "18446744073709551615 kB", None),
        ];
        for (anon, shmem, resident, expected) in rows {
            assert_eq!(status(anon, shmem, resident), expected, "{anon:?} {shmem:?} {resident:?}");
        }
    }

    #[test]
    fn lines_that_are_not_as_the_kernel_writes_them_fall_back() {
        let fallback = Some(4_194_304);
        assert_eq!(of_status("VmRSS:\t4096 kB\n  RssAnon:\t1 kB\n"), fallback);
        assert_eq!(of_status("VmRSS:\t4096 kB\nRssAnon:1 kB\n"), fallback);
        assert_eq!(of_status("RssAnon:\t1024 kB\r\nRssShmem:\t0 kB\r\n"), Some(1_048_576));
        assert_eq!(of_status("RssAnon:  1024 kB"), Some(1_048_576));
    }

    #[test]
    fn a_zombie_or_kernel_thread_has_no_memory() {
        assert_eq!(of_status("Name:\tkworker\nState:\tZ (zombie)\nThreads:\t1\n"), Some(0));
        assert_eq!(of_status(""), Some(0));
    }

    #[test]
    fn the_rows_of_a_groups_counters() {
        let rows = [
            ("anon 1\nfile 9\nshmem 2\n", Some(3)),
            ("anon 0\nshmem 0\n", Some(0)),
            ("anon 5\nfile 9\n", Some(5)),
            ("cache 9\nrss 1\nshmem 1\ntotal_cache 9\ntotal_rss 20\ntotal_shmem 3\n", Some(23)),
            ("rss 1\ntotal_rss 20\n", Some(20)),
            ("anon_thp 7\nanonymous 8\n", None),
            ("anon x\nshmem 1\n", None),
            ("anon 1\nshmem x\n", None),
            ("anon 1\nanon 1\n", None),
            ("anon +1\n", None),
            ("anon \n", None),
            ("anon 18446744073709551615\nshmem 1\n", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(of_group(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_rows_of_a_rollup() {
        let head = "55d0-7fff ---p 00000000 00:00 0    [rollup]\nRss:   1712 kB\nPss:    258 kB\n";
        let rows = [
            ("Pss_Anon:     112 kB\nPss_File:   146 kB\nPss_Shmem:    8 kB\n", Some(120 * 1024)),
            ("Pss_Anon:       0 kB\nPss_Shmem:    0 kB\n", Some(0)),
            ("Pss_Anon:       1 kB\n", Some(1024)),
            ("Anonymous:      1 kB\n", None),
            ("Pss_Anon:      1 MB\nPss_Shmem:    0 kB\n", None),
            ("Pss_Anon:      1 kB\nPss_Shmem:    x kB\n", None),
            ("Pss_Anon: 18446744073709551615 kB\nPss_Shmem:    1 kB\n", None),
        ];
        for (text, expected) in rows {
            assert_eq!(of_rollup(&format!("{head}{text}")), expected, "{text:?}");
        }
        assert_eq!(of_rollup(""), Some(0));
    }

    #[test]
    fn swap_is_what_the_process_says() {
        assert_eq!(swapped("VmRSS:\t1 kB\nVmSwap:\t    20 kB\n"), 20_480);
        assert_eq!(swapped("VmRSS:\t1 kB\n"), 0);
    }
}

//! The other texts that tell memory: a control group's `memory.stat`, and `smaps_rollup` of a process.

use super::{Field, Reading};

/// Reads the text of a control group's `memory.stat`, in bytes: anonymous and shared memory, never the total,
/// which is page cache for the most part.
///
/// That is `anon` + `shmem` in the second hierarchy. The first one counts a group without those below it, and with
/// them under `total_rss` and `total_shmem`.
///
/// ```
/// use pinfold_core::rules::memory::{parse_stat, Reading};
/// assert_eq!(parse_stat("anon 4096\nfile 7000000000\nshmem 8192\n"), Reading::Bytes(12_288));
/// ```
#[must_use]
pub fn parse_stat(text: &str) -> Reading {
    let total = counter(text, "total_rss");
    let (anon, shmem) = match total {
        None => (counter(text, "anon"), counter(text, "shmem")),
        Some(_) => (total, counter(text, "total_shmem")),
    };
    let sum = anon.flatten().and_then(|anon| anon.checked_add(shmem.unwrap_or(Some(0))?));
    sum.map_or(Reading::Unknown, Reading::Bytes)
}

/// A counter, if it is there; nothing inside when it is no number.
fn counter(text: &str, name: &str) -> Option<Option<u64>> {
    let mut found = text.split('\n').filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let value = found.next()?;
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    Some(value.parse().ok().filter(|_| digits && found.next().is_none()))
}

/// Reads the text of a process's `smaps_rollup`, in bytes: its share of anonymous and shared memory, in which a page
/// that n processes have counts as an n-th of it in each.
///
/// A process that has ended has an empty text and no memory. Kernels before 5.4 do not tell the shares by kind, so
/// there the answer is [`Reading::Unknown`].
#[must_use]
pub fn parse_rollup(text: &str) -> Reading {
    if text.is_empty() {
        return Reading::Bytes(0);
    }
    let Field::Kibibytes(anon) = Field::find(text, "Pss_Anon") else { return Reading::Unknown };
    let shmem = match Field::find(text, "Pss_Shmem") {
        Field::Kibibytes(shmem) => shmem,
        Field::Missing => 0,
        Field::Malformed => return Reading::Unknown,
    };
    anon.checked_add(shmem).and_then(|sum| sum.checked_mul(1024)).map_or(Reading::Unknown, Reading::Bytes)
}

/// What a process has on the swap, in bytes, from the text of its `/proc/PID/status`; 0 where it does not say.
#[must_use]
pub fn parse_swap(text: &str) -> u64 {
    Field::find(text, "VmSwap").kibibytes().saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_groups_counters() {
        let rows = [
            ("anon 1\nfile 9\nshmem 2\n", Reading::Bytes(3)),
            ("anon 0\nshmem 0\n", Reading::Bytes(0)),
            ("anon 5\nfile 9\n", Reading::Bytes(5)),
            ("cache 9\nrss 1\nshmem 1\ntotal_cache 9\ntotal_rss 20\ntotal_shmem 3\n", Reading::Bytes(23)),
            ("rss 1\ntotal_rss 20\n", Reading::Bytes(20)),
            ("anon_thp 7\nanonymous 8\n", Reading::Unknown),
            ("anon x\nshmem 1\n", Reading::Unknown),
            ("anon 1\nshmem x\n", Reading::Unknown),
            ("anon 1\nanon 1\n", Reading::Unknown),
            ("anon +1\n", Reading::Unknown),
            ("anon \n", Reading::Unknown),
            ("anon 18446744073709551615\nshmem 1\n", Reading::Unknown),
            ("", Reading::Unknown),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_stat(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_rows_of_a_rollup() {
        let head = "55d0-7fff ---p 00000000 00:00 0    [rollup]\nRss:   1712 kB\nPss:    258 kB\n";
        let rows = [
            ("Pss_Anon:     112 kB\nPss_File:   146 kB\nPss_Shmem:    8 kB\n", Reading::Bytes(120 * 1024)),
            ("Pss_Anon:       0 kB\nPss_Shmem:    0 kB\n", Reading::Bytes(0)),
            ("Pss_Anon:       1 kB\n", Reading::Bytes(1024)),
            ("Anonymous:      1 kB\n", Reading::Unknown),
            ("Pss_Anon:      1 MB\nPss_Shmem:    0 kB\n", Reading::Unknown),
            ("Pss_Anon:      1 kB\nPss_Shmem:    x kB\n", Reading::Unknown),
            ("Pss_Anon: 18446744073709551615 kB\nPss_Shmem:    1 kB\n", Reading::Unknown),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_rollup(&format!("{head}{text}")), expected, "{text:?}");
        }
        assert_eq!(parse_rollup(""), Reading::Bytes(0));
    }

    #[test]
    fn swap_is_what_the_process_says() {
        assert_eq!(parse_swap("VmRSS:\t1 kB\nVmSwap:\t    20 kB\n"), 20_480);
        assert_eq!(parse_swap("VmRSS:\t1 kB\n"), 0);
    }
}

//! `--since T`: a duration, a time, or a sequence number.

use crate::output::{Failure, Kind};
use pinfold_api::{time, units};

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// After this sequence number.
    After(u64),
    /// At this time, in milliseconds since 1970.
    At(i64),
}

impl Since {
    pub(crate) fn read(text: &str) -> Result<Since, Failure> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(after) = text.parse().ok().filter(|_| is_number) {
            return Ok(Since::After(after));
        }
        if let Ok(ago) = units::duration(text) {
            let since = pinfold_kernel::clock::wall().saturating_sub(ago);
            return Ok(Since::At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)));
        }
        time::moment(text).map(Since::At).ok_or_else(|| {
            Failure::new(Kind::Usage, format!("`{text}` is not a duration, time or sequence number"))
                .hint("--since 5m, --since 2026-11-15T18:00:00Z or --since 120")
        })
    }
}

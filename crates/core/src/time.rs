//! Time as the core knows it: always an argument, never asked for.
//!
//! The wall clock is stored and shown; only the boot clock measures. How long a run lived is measured by its
//! shim while the machine is awake, and arrives with the exit.

use serde::{Deserialize, Serialize};
use std::ops::Add;
use std::time::Duration;

/// Milliseconds since the Unix epoch, to store and to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Wall(pub i64);

/// Milliseconds since boot, including time suspended; to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Boot(pub u64);

impl Boot {
    /// Returns the time since `earlier`, or zero if that is in the future.
    #[must_use]
    pub fn since(self, earlier: Boot) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Boot {
    type Output = Boot;

    fn add(self, wait: Duration) -> Boot {
        Boot(self.0.saturating_add(whole_millis(wait)))
    }
}

impl Wall {
    /// Returns the time until `later`, or zero if that is in the past.
    #[must_use]
    pub fn until(self, later: Wall) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Wall {
    type Output = Wall;

    fn add(self, wait: Duration) -> Wall {
        Wall(self.0.saturating_add(i64::try_from(whole_millis(wait)).unwrap_or(i64::MAX)))
    }
}

/// Rounds up, so that no wait ends early.
pub(crate) fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// A fresh random fraction, drawn by the shell for each call: 0 does not shorten a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Jitter(pub u16);

impl Jitter {
    /// Returns the fraction, in `0.0..=1.0`.
    #[must_use]
    pub fn part(self) -> f64 {
        f64::from(self.0) / f64::from(u16::MAX)
    }
}

/// The present, as the shell reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Now {
    /// The wall clock.
    pub wall: Wall,
    /// The boot clock.
    pub boot: Boot,
    /// Randomness for this one call.
    pub jitter: Jitter,
}

impl Now {
    /// Returns this moment, for keeping.
    #[must_use]
    pub fn moment(self) -> Moment {
        Moment { wall: self.wall, boot: self.boot }
    }

    /// Returns the moment that is `wait` ahead.
    #[must_use]
    pub fn after(self, wait: Duration) -> Moment {
        Moment { wall: self.wall + wait, boot: self.boot + wait }
    }
}

/// A point in time: measured by `boot`, shown by `wall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moment {
    /// The time that people read.
    pub wall: Wall,
    /// The time that waits are measured by.
    pub boot: Boot,
}

/// A duration in whole milliseconds on the wire and in files.
pub mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    /// Writes whole milliseconds.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(super::whole_millis(*duration))
    }

    /// Reads whole milliseconds.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_lies_ahead_is_no_time_ago() {
        assert_eq!(Boot(5).since(Boot(9)), Duration::ZERO);
        assert_eq!(Boot(9).since(Boot(5)), Duration::from_millis(4));
        assert_eq!(Wall(9).until(Wall(5)), Duration::ZERO);
        assert_eq!(Wall(5).until(Wall(9)), Duration::from_millis(4));
    }

    #[test]
    fn no_wait_ends_early_and_none_overflows() {
        assert_eq!(Boot(10) + Duration::from_micros(1500), Boot(12));
        assert_eq!(Boot(10) + Duration::MAX, Boot(u64::MAX));
        assert_eq!(Wall(10) + Duration::MAX, Wall(i64::MAX));
        assert_eq!(Wall(10) + Duration::from_millis(3), Wall(13));
    }

    #[test]
    fn jitter_is_a_part_of_one() {
        assert!((Jitter(0).part() - 0.0).abs() < f64::EPSILON);
        assert!((Jitter(u16::MAX).part() - 1.0).abs() < f64::EPSILON);
    }
}

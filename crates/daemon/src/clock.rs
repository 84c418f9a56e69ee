//! The present, for the core: two clocks and a little randomness.

use pinfold_api::time::rfc3339;
use pinfold_core::{Boot, Jitter, Now, Wall};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, clock_gettime};
use std::hash::{BuildHasher, Hasher, RandomState};

/// Tells the time and draws the jitter.
#[derive(Debug)]
pub(crate) struct NowSource {
    dice: u64,
}

impl NowSource {
    pub(crate) fn new() -> NowSource {
        // Jitter spreads restarts; the time and the pid are a good enough seed.
        let moment = clock_gettime(ClockId::Monotonic);
        let seed = (moment.tv_nsec as u64) ^ (u64::from(std::process::id()) << 32);
        NowSource { dice: seed | 1 }
    }

    pub(crate) fn now(&mut self) -> Now {
        Now { wall: wall(), boot: boot(), jitter: Jitter((self.draw() >> 48) as u16) }
    }

    /// 64 random bits; xorshift is good enough for delays.
    pub(crate) fn draw(&mut self) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice
    }
}

/// The random part of an id, from the kernel: two daemons that start in the same moment draw different ones.
pub(crate) fn dice() -> u128 {
    let mut bytes = [0; 16];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        // So few bytes arrive whole or not at all.
        Ok(_) => u128::from_ne_bytes(bytes),
        // A sandbox may forbid the call; the hash maps of the standard library have keys from the kernel all
        // the same.
        Err(_) => [0, 64].into_iter().map(|place| u128::from(hash_key()) << place).sum(),
    }
}

fn hash_key() -> u64 {
    RandomState::new().build_hasher().finish()
}

pub(crate) fn boot() -> Boot {
    Boot(pinfold_kernel::clock::boot_ms())
}

pub(crate) fn wall() -> Wall {
    Wall(i64::try_from(pinfold_kernel::clock::wall_ms()).unwrap_or(i64::MAX) + step())
}

/// A time, as people read it.
pub(crate) fn time(at: Wall) -> String {
    rfc3339(u64::try_from(at.0).unwrap_or(0))
}

/// The first moment of the local day.
pub(crate) fn midnight(at: Wall) -> Wall {
    Wall(pinfold_api::time::midnight(at.0))
}

/// The first moment of the next local day.
pub(crate) fn next_midnight(at: Wall) -> Wall {
    Wall(pinfold_api::time::next_midnight(at.0))
}

/// By how many milliseconds a test has stepped the wall clock: read from a file that the environment names.
#[cfg(debug_assertions)]
fn step() -> i64 {
    let file = std::env::var_os("PINFOLD_CLOCK_STEP");
    file.and_then(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).unwrap_or(0)
}

/// In a release build, the clock is never stepped.
#[cfg(not(debug_assertions))]
#[inline(always)]
fn step() -> i64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_go_forward_and_the_dice_change() {
        let mut clock = NowSource::new();
        let (first, second) = (clock.now(), clock.now());
        assert!(second.boot >= first.boot && first.boot.0 > 0 && first.wall.0 > 1_600_000_000_000);
        assert_ne!(clock.draw(), clock.draw());
    }

    #[test]
    fn every_bit_of_the_dice_is_drawn() {
        let rolls: Vec<u128> = (0..200).map(|_| dice()).collect();
        let (ever, always) = rolls.iter().fold((0, u128::MAX), |(any, all), roll| (any | roll, all & roll));
        assert_eq!((ever, always), (u128::MAX, 0), "a bit that never changes is not random");
        assert_ne!(hash_key(), hash_key());
    }
}

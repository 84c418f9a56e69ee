//! Random numbers from the kernel, good enough for names that must not be guessed.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Returns random bytes. It waits only if the machine has just booted and has no entropy yet.
///
/// # Errors
/// A sandbox does not allow the call.
pub fn bytes<const COUNT: usize>() -> Result<[u8; COUNT], Errno> {
    let mut bytes = [0; COUNT];
    let mut done = 0;
    while done < COUNT {
        match getrandom(&mut bytes[done..], GetRandomFlags::empty()) {
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(bytes)
}

/// Returns 64 random bits.
///
/// # Errors
/// A sandbox does not allow the call.
pub fn number() -> Result<u64, Errno> {
    bytes().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ_and_all_bytes_are_drawn() {
        let (one, other) = (bytes::<1024>().unwrap(), bytes::<1024>().unwrap());
        assert_ne!(one, other);
        assert!(one[1000..].iter().any(|byte| *byte != 0));
        assert_ne!(number(), number());
    }
}

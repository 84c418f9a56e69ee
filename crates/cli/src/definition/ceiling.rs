//! Compares a memory limit with what the kernel allows.

use crate::global::Global;
use crate::output::{Failure, talk};
use pinfold_api::{Client, endpoint, units};
use pinfold_core::words;

/// Warns of a limit that the kernel will not let the session reach. It is not refused.
pub(crate) fn warn_of_ceiling(client: &Client, memory: Option<&str>, global: &Global) -> Result<(), Failure> {
    let Some(limit) = memory.and_then(|memory| units::size(memory).ok()).filter(|_| !global.quiet) else {
        return Ok(());
    };
    let status = client.ask(&endpoint::Status::call())?;
    let ceiling = status.capabilities.get("memory_ceiling").and_then(|told| told["bytes"].as_u64());
    if let Some(warning) = ceiling.and_then(|ceiling| too_high(limit, ceiling)) {
        warning.lines().for_each(|line| talk(&line));
    }
    Ok(())
}

/// The warning for a limit above four fifths of what the kernel allows for everything around the daemon.
fn too_high(limit: u64, ceiling: u64) -> Option<String> {
    let most = ceiling / 5 * 4;
    (limit > most).then(|| {
        format!(
            "warning: the kernel allows {} to the daemon and all agents together, so it may kill before --memory drains\n\
             hint: a limit below {} is met first",
            words::size(ceiling),
            words::size(most)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_above_four_fifths_of_the_ceiling_is_warned_of() {
        assert_eq!(too_high(800, 1000), None);
        let warning = too_high(820 << 20, 1000 << 20).unwrap();
        assert!(warning.contains("1000 MiB") && warning.contains("800 MiB"), "{warning}");
    }
}

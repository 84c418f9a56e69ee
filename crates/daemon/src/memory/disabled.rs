//! What is not used although the machine may have it: for tests, and to find the cause of a fault.

use pinfold_shim::Contain;

/// The variable for that: some of `cgroup`, `memory-cgroup` and `smaps-rollup`, separated by commas.
const VARIABLE: &str = "PINFOLD_WITHOUT";

/// What is not to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Without {
    /// Do not use control groups.
    pub cgroup: bool,
    /// Do not use control groups that count memory.
    pub memory_cgroup: bool,
    /// Do not use `/proc/PID/smaps_rollup`.
    pub smaps_rollup: bool,
}

impl Without {
    /// What the environment says; an unknown word has no effect.
    #[must_use]
    pub fn from_environment() -> Without {
        Without::parse(&std::env::var(VARIABLE).unwrap_or_default())
    }

    fn parse(text: &str) -> Without {
        let has = |word| text.split(',').any(|part| part.trim() == word);
        let cgroup = has("cgroup");
        Without { cgroup, memory_cgroup: cgroup || has("memory-cgroup"), smaps_rollup: has("smaps-rollup") }
    }

    /// How a run is contained, given its memory limit.
    #[must_use]
    pub fn contain(self, limit: Option<u64>) -> Contain {
        match limit {
            _ if self.cgroup => Contain::Reaper,
            Some(_) if !self.memory_cgroup => Contain::GroupAndMemory,
            Some(_) | None => Contain::Group,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gets_the_most_that_may_be_used() {
        let rows = [
            ("", Contain::GroupAndMemory, Contain::Group),
            ("memory-cgroup", Contain::Group, Contain::Group),
            ("smaps-rollup, cgroup", Contain::Reaper, Contain::Reaper),
            ("nonsense", Contain::GroupAndMemory, Contain::Group),
        ];
        for (text, limited, free) in rows {
            let without = Without::parse(text);
            assert_eq!((without.contain(Some(1)), without.contain(None)), (limited, free), "{text}");
        }
    }
}

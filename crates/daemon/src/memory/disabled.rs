//! What is to be done without although the machine may have it: for tests, and to find out what a fault is due to.

use pinfold_shim::Contain;

/// The variable that says so: some of `cgroup`, `memory-cgroup` and `smaps-rollup`, separated by commas.
const VARIABLE: &str = "PINFOLD_WITHOUT";

/// What is to be done without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Without {
    /// Control groups.
    pub cgroup: bool,
    /// Control groups that count memory.
    pub memory_cgroup: bool,
    /// `/proc/PID/smaps_rollup`.
    pub smaps_rollup: bool,
}

impl Without {
    /// What the environment says; an unknown word changes nothing.
    #[must_use]
    pub fn from_environment() -> Without {
        Without::parse(&std::env::var(VARIABLE).unwrap_or_default())
    }

    fn parse(text: &str) -> Without {
        let has = |word| text.split(',').any(|part| part.trim() == word);
        let cgroup = has("cgroup");
        Without { cgroup, memory_cgroup: cgroup || has("memory-cgroup"), smaps_rollup: has("smaps-rollup") }
    }

    /// How a run is kept together, given its memory limit.
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

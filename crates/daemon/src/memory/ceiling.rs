//! The memory that the kernel allows us: the lowest limit of our control group and those above it.

use pinfold_kernel::cgroup::{self, Hierarchy};
use std::path::Path;

/// The first hierarchy has no word for "no limit": this is the largest number of whole pages.
const NONE: u64 = 9_223_372_036_854_771_712;

/// The lowest limit on this process and its children, in bytes; `None` if there is none, or none can be read.
#[must_use]
pub fn ceiling() -> Option<u64> {
    let of = |hierarchy, file| {
        let (own, mount) = (cgroup::folder_of(None, hierarchy)?, cgroup::mount(hierarchy)?);
        lowest(&own, &mount, file)
    };
    let limits = [of(Hierarchy::Second, "memory.max"), of(Hierarchy::Memory, "memory.limit_in_bytes")];
    limits.into_iter().flatten().min()
}

fn lowest(own: &Path, mount: &Path, file: &str) -> Option<u64> {
    let groups = own.ancestors().take_while(|group| group.starts_with(mount));
    groups.filter_map(|group| parse(&std::fs::read_to_string(group.join(file)).ok()?)).min()
}

/// A limit as the kernel writes it; `None` for `max`, for the largest number and for what cannot be read.
fn parse(text: &str) -> Option<u64> {
    text.trim_end().parse().ok().filter(|limit| *limit < NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_limit() {
        let rows = [
            ("max\n", None),
            ("9223372036854771712\n", None),
            ("18446744073709551615\n", None),
            ("536870912\n", Some(536_870_912)),
            ("0\n", Some(0)),
            ("", None),
            ("garbage", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_lowest_limit_of_a_group_and_those_above_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("slice/service/own");
        std::fs::create_dir_all(&own).unwrap();
        assert_eq!(lowest(&own, root.path(), "memory.max"), None);
        std::fs::write(own.join("memory.max"), "max\n").unwrap();
        std::fs::write(root.path().join("slice/service/memory.max"), "1000\n").unwrap();
        std::fs::write(root.path().join("slice/memory.max"), "2000\n").unwrap();
        assert_eq!(lowest(&own, root.path(), "memory.max"), Some(1000));
        std::fs::write(own.join("memory.max"), "10\n").unwrap();
        assert_eq!(lowest(&own, root.path(), "memory.max"), Some(10));
    }
}

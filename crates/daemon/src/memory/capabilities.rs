//! What this machine lets us do: tried, never assumed, and with a reason if it is missing.

use super::{Without, ceiling};
use pinfold_core::words;
use pinfold_kernel::cgroup::{self, Hierarchy};
use pinfold_shim::groups::{self, GroupFolders};
use rustix::fs::Access;
use rustix::process::PidfdFlags;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Tries everything; takes some milliseconds.
#[must_use]
pub fn capabilities(without: Without) -> BTreeMap<String, Value> {
    let kept = groups::probe();
    let group = if without.cgroup { Err(SWITCHED_OFF.into()) } else { group(&kept) };
    let memory = match &group {
        _ if without.memory_cgroup => Err(SWITCHED_OFF.into()),
        Err(_) => Err("a run gets no control group at all".into()),
        Ok(_) => memory_group(&kept),
    };
    let reading = match &memory {
        Ok(_) => Ok("anon + shmem of the run's control group".into()),
        Err(_) => Ok("RssAnon + RssShmem of every process of the run".into()),
    };
    let smaps = if without.smaps_rollup { Err(SWITCHED_OFF.into()) } else { smaps_rollup() };
    let found = [
        ("cgroup", group),
        ("memory_cgroup", memory),
        ("memory_reading", reading),
        ("smaps_rollup", smaps),
        ("pidfd", pidfd()),
        ("proc_children", proc_children()),
    ];
    let mut all: BTreeMap<String, Value> =
        found.into_iter().map(|(name, found)| (name.into(), told(found))).collect();
    all.insert("memory_ceiling".into(), told_ceiling());
    all
}

const SWITCHED_OFF: &str = "PINFOLD_WITHOUT says to do without";

/// Where or how it is available, or why it is not.
type Found = Result<String, String>;

fn told(found: Found) -> Value {
    match found {
        Ok(detail) => json!({ "available": true, "detail": detail }),
        Err(detail) => json!({ "available": false, "detail": detail }),
    }
}

fn told_ceiling() -> Value {
    match ceiling() {
        Some(bytes) => {
            json!({ "available": true, "bytes": bytes, "detail": format!("the kernel allows {} to the daemon and all agents together", words::size(bytes)) })
        }
        None => {
            json!({ "available": false, "bytes": null, "detail": "no control group around the daemon has a limit" })
        }
    }
}

fn group(kept: &GroupFolders) -> Found {
    if let Some(folder) = &kept.group {
        return Ok(format!(
            "all processes of a run can be killed at once, in a group below {}",
            folder.display()
        ));
    }
    let Some(own) = cgroup::folder_of(None, Hierarchy::Second) else {
        return Err("no cgroup v2 is mounted as a whole".into());
    };
    if rustix::fs::access(&own, Access::WRITE_OK).is_err() {
        return Err(format!("{} may not be written", own.display()));
    }
    Err(format!("no group that can be killed may be made below {} (cgroup.kill: Linux 5.14)", own.display()))
}

fn memory_group(kept: &GroupFolders) -> Found {
    if let Some(folder) = &kept.memory {
        let version = if folder.join("memory.limit_in_bytes").exists() { "v1" } else { "v2" };
        return Ok(format!("cgroup {version}, below {}", folder.display()));
    }
    let second = cgroup::folder_of(None, Hierarchy::Second);
    let has = |file: &str| {
        let text = second.as_ref().and_then(|own| std::fs::read_to_string(own.join(file)).ok());
        text.is_some_and(|text| text.split_whitespace().any(|word| word == "memory"))
    };
    match cgroup::folder_of(None, Hierarchy::Memory) {
        Some(own) => Err(format!("no group may be made below {}", own.display())),
        None if has("cgroup.controllers") => {
            Err("the memory controller is not handed on to groups below the daemon's (Delegate= of systemd does it)".into())
        }
        None => Err("there is no memory controller here".into()),
    }
}

fn smaps_rollup() -> Found {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").map_err(|error| error.to_string())?;
    match pinfold_kernel::proc::memory::of_rollup(&text) {
        Some(_) => Ok("Pss_Anon + Pss_Shmem confirm a sum before a drain".into()),
        None => Err("it does not report Pss_Anon (Linux 5.4): sums over a limit are not confirmed, so they drain no session".into()),
    }
}

fn pidfd() -> Found {
    match rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()) {
        Ok(_) => Ok("ends are told by the kernel".into()),
        Err(errno) => Err(errno.to_string()),
    }
}

fn proc_children() -> Found {
    if Path::new("/proc/thread-self/children").exists() {
        Ok("trees are walked from parent to child".into())
    } else {
        Err("the kernel was built without CONFIG_PROC_CHILDREN: every process is asked for its parent".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ability_says_whether_and_where_or_why_not() {
        for without in [Without::default(), Without { cgroup: true, memory_cgroup: true, smaps_rollup: true }]
        {
            let all = capabilities(without);
            for (name, value) in &all {
                assert!(value["available"].is_boolean(), "{name}: {value}");
                assert!(!value["detail"].as_str().unwrap().is_empty(), "{name}: {value}");
            }
            if without.cgroup {
                for name in ["cgroup", "memory_cgroup", "smaps_rollup"] {
                    assert_eq!(all[name]["available"], false);
                    assert_eq!(all[name]["detail"], SWITCHED_OFF);
                }
            }
            assert_eq!(all["pidfd"]["available"], true);
        }
    }
}

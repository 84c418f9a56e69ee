//! The processes of a run, for a client that asks for one session: looked at now, each after its parent.

use pinfold_api::object::{RunProcess, Session};
use pinfold_kernel::proc::{self, memory, tree};

/// A page for people has no room for more.
const MOST: usize = 64;

/// Adds to a session the processes of its run, and their memory if nothing else measures it.
pub(crate) fn tell(session: &mut Session) {
    let Some(agent) = session.pid else { return };
    let mut all = Vec::new();
    below(agent, None, &mut all);
    if session.memory_bytes.is_none() {
        let known: Vec<u64> = all.iter().filter_map(|process| process.memory_bytes).collect();
        session.memory_bytes = (!known.is_empty()).then(|| known.iter().sum());
    }
    session.processes = Some(all);
}

fn below(pid: u32, parent: Option<u32>, all: &mut Vec<RunProcess>) {
    if all.len() >= MOST || all.iter().any(|process| process.pid == pid) {
        return;
    }
    let status = std::fs::read_to_string(proc::path(pid, "status"));
    // A process that has ended meanwhile has none.
    let Ok(status) = status else { return };
    let command = proc::command(pid);
    all.push(RunProcess { pid, parent, command, memory_bytes: memory::of_status(&status) });
    for child in tree::children(pid) {
        below(child, Some(pid), all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_before_those_below_it() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut all = Vec::new();
        below(std::process::id(), None, &mut all);
        let own = &all[0];
        assert_eq!((own.pid, own.parent), (std::process::id(), None));
        assert!(own.memory_bytes.is_some_and(|bytes| bytes > 0));
        let found = all.iter().find(|process| process.pid == child.id()).unwrap();
        assert_eq!(found.parent, Some(std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

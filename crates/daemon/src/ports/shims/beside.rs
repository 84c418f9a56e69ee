//! What a run has besides its agent: its tools, and what they left in the background.

use pinfold_kernel::proc;

/// An event has no room for more.
const MOST: usize = 64;
/// Longest command line that is kept, in bytes.
const LONGEST: usize = 200;

/// Returns the processes below a shim, except the agent and the shim's own helpers.
pub(super) fn beside(shim: u32, agent: u32) -> Vec<(u32, String)> {
    let program = |pid: u32| std::fs::read_link(proc::path(pid, "exe")).ok();
    let own = program(shim);
    let all = proc::tree::descendants(shim).into_iter().filter(|pid| *pid != agent);
    // The process that bridges to a socket, and the next run's at its gate, are the shim's.
    let foreign = all.filter(|pid| own.is_none() || program(*pid) != own);
    let living = foreign.filter(|pid| proc::stat::lives(*pid));
    living.map(|pid| (pid, shortened(proc::command(pid)))).take(MOST).collect()
}

fn shortened(mut command: String) -> String {
    command.truncate(command.floor_char_boundary(LONGEST));
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_below_is_named_and_neither_the_agent_nor_what_runs_the_same_program() {
        // The test is the shim, a shell its agent, and what the shell left in the background is beside it.
        let mut agent = Command::new("sh")
            .args(["-c", "sleep 1000 & echo on; read end; kill $!"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 3];
        std::io::Read::read_exact(agent.stdout.as_mut().unwrap(), &mut line).unwrap();
        let seen = || beside(std::process::id(), agent.id());
        let mut found = seen();
        // It is a copy of the shell until it has become its program.
        while !found.iter().any(|(_, command)| command == "sleep 1000") {
            found = seen();
        }
        assert!(found.iter().all(|(pid, _)| *pid != agent.id()), "{found:?}");
        drop(agent.stdin.take());
        agent.wait().unwrap();
    }

    #[test]
    fn a_long_command_line_is_shortened() {
        assert_eq!(shortened("ä".repeat(LONGEST)).len(), LONGEST);
        assert_eq!(shortened("sleep 1".to_owned()), "sleep 1");
    }
}

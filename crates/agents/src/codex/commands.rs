//! The commands that Codex runs. One that outlives its turn is work of Codex's own until its end is reported.
//!
//! Codex reports when a command begins and when it is over, also after the turn in which it began: its shell
//! lets go of a command after ten seconds, and an interrupt leaves it running. What a command itself puts
//! into the background (`server &`) is over for Codex, and nothing reports it.

use serde::{Deserialize, Serialize};

/// Codex itself runs no more at a time.
const MOST: usize = 64;
/// Longest id that is kept, in bytes; those seen have 29.
const LONGEST: usize = 256;

/// The commands whose end was not reported yet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Commands(Vec<Command>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Command {
    id: String,
    /// It has a process. If not, it waits for permission, or did when it was reported.
    process: bool,
    /// The turn in which it began is over.
    left: bool,
}

impl Commands {
    /// A command begins.
    pub(crate) fn began(&mut self, id: &str, process: bool) {
        if id.len() <= LONGEST && self.0.len() < MOST && self.0.iter().all(|command| command.id != id) {
            self.0.push(Command { id: id.to_owned(), process, left: false });
        }
    }

    /// A command is over.
    pub(crate) fn ended(&mut self, id: &str) {
        self.0.retain(|command| command.id != id);
    }

    /// A turn is over. The end of a command that still waited for permission when the turn was interrupted is
    /// never reported.
    pub(crate) fn turn_ended(&mut self, interrupted: bool) {
        self.0.retain(|command| command.process || command.left || !interrupted);
        self.0.iter_mut().for_each(|command| command.left = true);
    }

    /// Returns whether a command has outlived its turn.
    pub(crate) fn outlive(&self) -> bool {
        self.0.iter().any(|command| command.left)
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_outlives_its_turn_until_its_end_is_reported() {
        let mut commands = Commands::default();
        commands.began("a", true);
        assert!(!commands.outlive(), "its turn goes on");
        commands.turn_ended(false);
        assert!(commands.outlive());
        commands.began("b", true);
        commands.ended("a");
        assert!(!commands.outlive());
        commands.ended("b");
        commands.ended("b");
        commands.turn_ended(false);
        assert!(!commands.outlive() && commands.is_empty());
    }

    #[test]
    fn an_interrupt_leaves_a_command_running_and_drops_one_that_was_never_allowed() {
        for (process, interrupted, outlives) in
            [(true, true, true), (true, false, true), (false, true, false), (false, false, true)]
        {
            let mut commands = Commands::default();
            commands.began("a", process);
            commands.turn_ended(interrupted);
            assert_eq!(commands.outlive(), outlives, "{process} {interrupted}");
            commands.turn_ended(true);
            assert_eq!(commands.outlive(), outlives, "it is not of that turn");
        }
    }

    #[test]
    fn commands_without_end_are_not_kept_without_bound() {
        let mut commands = Commands::default();
        (0..1000).for_each(|number| commands.began(&number.to_string(), true));
        commands.began(&"x".repeat(LONGEST + 1), true);
        assert_eq!(commands.0.len(), MOST);
    }
}

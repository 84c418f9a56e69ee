//! The verbs in groups, by what a user wants to do.

use clap::Command;

/// Each group with its verbs, in the order shown.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run", &["new", "run", "set", "start", "stop", "restart", "up", "down"]),
    (
        "Look",
        &[
            "tui", "ls", "show", "why", "tree", "logs", "events", "search", "wait", "status", "usage",
            "accounts", "metrics",
        ],
    ),
    ("Talk", &["attach", "send", "inbox", "interrupt", "answer"]),
    ("Locks", &["lock", "locks", "who", "unlock"]),
    ("Tidy up", &["archive", "restore", "purge", "rm", "rename", "backup", "restore-backup", "export"]),
    ("Set up", &["demo", "agents", "service", "apply", "reload", "completions", "man", "help", "version"]),
];

/// The groups with those of their verbs that exist; verbs without a group are added to the last one.
pub(super) fn grouped(program: &Command) -> Vec<(&'static str, Vec<&Command>)> {
    let find = |name: &&str| program.find_subcommand(name).filter(|verb| !verb.is_hide_set());
    let mut all: Vec<(&'static str, Vec<&Command>)> =
        GROUPS.iter().map(|(group, verbs)| (*group, verbs.iter().filter_map(find).collect())).collect();
    let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
    let others =
        program.get_subcommands().filter(|verb| !verb.is_hide_set() && !grouped.contains(&verb.get_name()));
    if let Some((_, last)) = all.last_mut() {
        last.extend(others);
    }
    all
}

/// The names of all verbs that are not hidden.
pub(crate) fn all_verbs(program: &Command) -> Vec<&str> {
    program.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::definition;
    use std::collections::BTreeSet;

    #[test]
    fn every_verb_is_in_one_group() {
        let program = definition();
        let known: BTreeSet<&str> = all_verbs(&program).into_iter().collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(grouped.len(), known.len(), "one verb is in two groups");
    }
}

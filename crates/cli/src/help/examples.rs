//! Two examples for each verb. The tests run them all, in this order and in one home
//! (`cli/tests/runs/surface/examples.rs`).

/// A command line, and what it is for.
pub(super) type Example = (&'static str, &'static str);

/// Each verb with its examples.
const EXAMPLES: [(&str, [Example; 2]); 47] = [
    ("up", [("pinfold up", "start the daemon"), ("pinfold up --replace", "let this version take over")]),
    (
        "new",
        [
            ("pinfold new web -- python3 -m http.server 0", "keep a program running"),
            (
                "pinfold new chat --mode on-demand --dir . -- cat",
                "run it when a message comes, in a locked directory",
            ),
        ],
    ),
    (
        "set",
        [
            ("pinfold set web --memory 512M", "restart it when it uses more"),
            ("pinfold set chat --idle 30m --tag team", "keep it for longer, and tag it"),
        ],
    ),
    (
        "run",
        [
            ("pinfold run job -- echo done", "run a program here, under the locks of a session"),
            ("pinfold run loop --mode always -- ./worker", "run it again whenever it ends"),
        ],
    ),
    ("start", [("pinfold start web", "start it"), ("pinfold start web chat", "start both at once")]),
    (
        "stop",
        [
            ("pinfold stop web", "stop it and all it started"),
            ("pinfold stop chat --timeout 2s", "SIGKILL after 2 s"),
        ],
    ),
    (
        "restart",
        [
            ("pinfold restart web", "end its run and start another"),
            ("pinfold restart web chat", "both at once"),
        ],
    ),
    (
        "tui",
        [
            ("pinfold tui", "every session, and who waits for you"),
            ("pinfold tui --frame 100x30", "what it shows first, as text"),
        ],
    ),
    (
        "ls",
        [
            ("pinfold ls", "list sessions"),
            ("pinfold ls -q --state failed", "names of those that need attention"),
        ],
    ),
    (
        "show",
        [("pinfold show web", "one page about it"), ("pinfold show web --json", "all of it, for a program")],
    ),
    (
        "why",
        [
            ("pinfold why web", "one sentence"),
            ("pinfold why web --json", "state, reason, next step, last exit"),
        ],
    ),
    ("tree", [("pinfold tree", "sessions below their parents"), ("pinfold tree --all", "archived ones too")]),
    (
        "logs",
        [
            ("pinfold logs web", "what it printed"),
            ("pinfold logs -t -n 20 web chat", "the last lines of two, with times"),
        ],
    ),
    (
        "events",
        [
            ("pinfold events --session web", "what happened to it"),
            ("pinfold events --since 5m", "what happened just now"),
        ],
    ),
    (
        "wait",
        [
            ("pinfold wait web --for running", "until it runs"),
            ("pinfold wait web --for running,failed --timeout 1m", "until either, for a minute"),
        ],
    ),
    (
        "status",
        [
            ("pinfold status", "the daemon, its home, what the kernel can do"),
            ("pinfold status --json", "the same for a program"),
        ],
    ),
    ("metrics", [("pinfold metrics", "for Prometheus"), ("pinfold metrics --json", "as JSON")]),
    (
        "attach",
        [
            ("pinfold attach chat", "join it; Ctrl-] detaches"),
            ("pinfold attach chat --read-only", "only look on"),
        ],
    ),
    (
        "send",
        [
            ("pinfold send chat 'how far are you?'", "queue a message"),
            ("pinfold send chat 'and now?' --wait 30s", "wait for the answer"),
        ],
    ),
    (
        "inbox",
        [("pinfold inbox chat", "its messages"), ("pinfold inbox chat --state failed", "those that failed")],
    ),
    (
        "interrupt",
        [("pinfold interrupt chat", "end its turn"), ("pinfold interrupt chat --quiet", "without a word")],
    ),
    (
        "answer",
        [
            ("pinfold answer chat allow", "allow what it asks"),
            ("pinfold answer chat deny --message 'not on Fridays'", "deny it, and say why"),
        ],
    ),
    (
        "lock",
        [
            ("pinfold lock key:deploy -- echo alone", "one at a time"),
            ("pinfold lock . --wait 10s -- echo alone", "wait for this directory"),
        ],
    ),
    (
        "locks",
        [("pinfold locks", "every lock that is held"), ("pinfold locks --json", "with holders in full")],
    ),
    ("who", [("pinfold who", "who uses this directory"), ("pinfold who /tmp --json", "as JSON")]),
    (
        "unlock",
        [
            ("pinfold unlock key:deploy --kill", "end its holder"),
            ("pinfold unlock session:web --kill", "end a session's run without the daemon"),
        ],
    ),
    (
        "archive",
        [("pinfold archive chat", "put it away, with its history"), ("pinfold archive chat web", "both")],
    ),
    (
        "restore",
        [("pinfold restore chat", "bring it back"), ("pinfold restore --all", "all whose names are free")],
    ),
    (
        "purge",
        [
            ("pinfold purge --dry-run", "what would be archived"),
            ("pinfold purge --mode all", "archive all that are not in use"),
        ],
    ),
    ("rename", [("pinfold rename chat talk", "another name"), ("pinfold rename talk chat", "and back")]),
    (
        "rm",
        [
            ("pinfold rm chat --yes", "delete it for good"),
            ("pinfold rm web --yes --json", "and say what was deleted"),
        ],
    ),
    (
        "backup",
        [
            ("pinfold backup today.db", "copy the database"),
            ("pinfold backup later.db --json", "and say how large it is"),
        ],
    ),
    (
        "down",
        [
            ("pinfold down --keep", "stop the daemon, leave agents running"),
            ("pinfold down", "stop agents, then the daemon"),
        ],
    ),
    (
        "restore-backup",
        [
            ("pinfold restore-backup today.db", "put a backup back; the daemon must be down"),
            ("pinfold restore-backup later.db --json", "and say what it replaced"),
        ],
    ),
    (
        "demo",
        [("pinfold demo", "see it all in a few seconds"), ("pinfold demo --json", "what was seen, as JSON")],
    ),
    (
        "agents",
        [
            ("pinfold agents", "which are known, and installed"),
            ("pinfold agents --check claude", "one turn on your own account"),
        ],
    ),
    (
        "completions",
        [
            ("pinfold completions bash", "source it in ~/.bashrc"),
            ("pinfold completions fish", "for ~/.config/fish/completions/pinfold.fish"),
        ],
    ),
    (
        "man",
        [
            ("pinfold man", "the page pinfold(1), for `man -l -`"),
            ("pinfold man new", "the page pinfold-new(1)"),
        ],
    ),
    (
        "usage",
        [
            ("pinfold usage", "what each session has used"),
            ("pinfold usage --by day --since 7d", "the last week, day by day"),
        ],
    ),
    (
        "accounts",
        [
            ("pinfold accounts", "limits, resets, and who is held"),
            ("pinfold accounts --resume claude:default", "try again now, with one session first"),
        ],
    ),
    (
        "search",
        [
            ("pinfold search 'login page'", "wherever both words are"),
            ("pinfold search hello --session chat", "only what belongs to one session"),
        ],
    ),
    (
        "export",
        [
            ("pinfold export", "all sessions, as `apply` reads them"),
            ("pinfold export web chat", "two of them"),
        ],
    ),
    (
        "apply",
        [
            ("pinfold apply sessions.toml --dry-run", "what would change"),
            ("pinfold apply sessions.toml", "change it"),
        ],
    ),
    (
        "reload",
        [
            ("pinfold reload", "read config.toml again"),
            ("pinfold reload --json", "and say which file it was"),
        ],
    ),
    (
        "service",
        [
            ("pinfold service install", "start the daemon with the machine"),
            ("pinfold service install --print", "only show what would be written"),
        ],
    ),
    ("help", [("pinfold help", "all verbs"), ("pinfold help new", "one of them")]),
    ("version", [("pinfold version", "which pinfold this is"), ("pinfold version --json", "as JSON")]),
];

/// The examples of a verb.
pub(super) fn examples_of(verb: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(name, _)| *name == verb).map_or(&[], |(_, examples)| examples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::definition;
    use crate::help::all_verbs;

    #[test]
    fn every_verb_has_two_examples_that_can_be_read() {
        let program = definition();
        for verb in all_verbs(&program) {
            let examples = examples_of(verb);
            assert_eq!(examples.len(), 2, "{verb}");
            for (line, _) in examples {
                let words: Vec<&str> = line.split(' ').collect();
                assert!(words[1] == verb, "{line}");
            }
        }
    }
}

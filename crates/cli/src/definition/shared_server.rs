//! Warns a user of Codex about the server that all its terminals share, outside of any session.

use crate::output::talk;
use pinfold_kernel::proc;
use pinfold_kernel::proc::environ;
use std::path::{Path, PathBuf};

/// The only agent with such a server.
const AGENT: &str = "codex";
const HINT: &str = "hint: a session has a server of its own, and never uses that one; what is done in those terminals is not a part of it";
/// The `--listen` addresses at which all terminals of a Codex home find it.
const SHARED: [&[u8]; 2] = [b"unix://", b"unix://-"];

/// Warns if such a server runs for this user's Codex home.
pub(crate) fn warn_of_shared_server(agent: Option<&str>, variable: impl Fn(&str) -> Option<String>) {
    let Some(home) = home(variable).filter(|_| agent == Some(AGENT)) else { return };
    if let Some(pid) = proc::pids().unwrap_or_default().into_iter().find(|pid| is_shared(*pid, &home)) {
        talk(&format!(
            "warning: pid {pid} is the server that all Codex terminals of `{}` share",
            home.display()
        ));
        talk(&HINT);
    }
}

/// The Codex home for these variables.
fn home(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("CODEX_HOME").or_else(|| set("HOME").map(|home| home.join(".codex")))?;
    Some(home.canonicalize().unwrap_or(home))
}

fn is_shared(pid: u32, of: &Path) -> bool {
    let words = std::fs::read(proc::path(pid, "cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
    listens(&words) && is_codex(pid, &words) && home_of(pid).is_some_and(|home| home == of)
}

/// Whether a command line is that of a server at the shared address.
fn listens(words: &[&[u8]]) -> bool {
    let at_shared = |pair: &[&[u8]]| pair[0] == b"--listen" && SHARED.contains(&pair[1]);
    words.contains(&b"app-server".as_slice()) && words.windows(2).any(at_shared)
}

/// Whether the program is Codex or its script. What a process calls itself proves nothing.
fn is_codex(pid: u32, words: &[&[u8]]) -> bool {
    let is_named = |path: &Path| path.file_stem().is_some_and(|name| name == AGENT);
    let script = words.get(1).and_then(|word| std::str::from_utf8(word).ok());
    let script = script.filter(|script| script.starts_with('/'));
    proc::program(pid).is_some_and(|program| is_named(&program))
        || script.is_some_and(|script| is_named(Path::new(script)))
}

fn home_of(pid: u32) -> Option<PathBuf> {
    let variables = environ::read(pid).ok().flatten()?;
    home(|name| environ::value(&variables, name).map(|value| String::from_utf8_lossy(value).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_at_the_shared_place_is_one() {
        let rows = [
            ("codex app-server --listen unix://", true),
            ("node /x/codex.js app-server --listen unix://-", true),
            ("codex app-server --listen unix:///run/agents/1.sock", false),
            ("codex app-server", false),
            ("codex --listen unix://", false),
        ];
        for (line, shared) in rows {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            assert_eq!(listens(&words), shared, "{line}");
        }
    }

    #[test]
    fn a_home_is_where_its_variable_says_and_else_below_that_of_the_user() {
        let of = |codex: &'static str| {
            move |name: &str| match name {
                "CODEX_HOME" => Some(codex.to_owned()),
                "HOME" => Some("/no/such".to_owned()),
                _ => None,
            }
        };
        assert_eq!(home(of("/no/codex")), Some("/no/codex".into()));
        assert_eq!(home(of("")), Some("/no/such/.codex".into()));
        assert_eq!(home(|_| None), None);
    }
}

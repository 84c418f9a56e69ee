//! `export`: writes sessions to a file that `apply` reads.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, print, say};
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::object::{Declared, Session};
use pinfold_api::query;
use pinfold_api::request::SessionWorktree;
use pinfold_core::visible::visible;
use serde_json::json;
use std::fmt::Write;

/// Which sessions.
#[derive(Debug, Clone, Args)]
pub(crate) struct Export {
    /// One or more session names [default: all that are not archived]
    sessions: Vec<String>,
}

impl DaemonVerb for Export {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let client = daemon.client()?;
        let known = query::Sessions { known: true, brief: true, ..query::Sessions::default() };
        let names = match &self.sessions[..] {
            [] => {
                let all: Vec<Session> = client.ask(&endpoint::Sessions::call(&known))?;
                all.into_iter().map(|session| session.name).collect()
            }
            named => named.to_vec(),
        };
        let mut all = Vec::new();
        for name in &names {
            all.push(client.ask(&endpoint::Definition::call(name))?);
        }
        if daemon.global.json {
            say(&json!(all));
        } else {
            print(&all.iter().map(section).collect::<Vec<_>>().join("\n"));
        }
        Ok(())
    }
}

/// One session as a TOML table, without default values.
fn section(session: &Declared) -> String {
    let mut text = format!("[sessions.{}]\n", key(&session.name));
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            _ = writeln!(text, "{key} = {value}");
        }
    };
    let optional = |value: &Option<String>| value.as_deref().map(quoted);
    line("agent", Some(quoted(&session.agent)));
    line("vendor_session", optional(&session.vendor_session));
    line("dir", Some(quoted(&session.dir)));
    line("dir_lock", Some(session.dir_lock.to_string()));
    line("mode", Some(quoted(session.mode.word())));
    line("memory", optional(&session.memory));
    line("idle", optional(&session.idle));
    line("stop_grace", optional(&session.stop_grace));
    line("budget", optional(&session.budget));
    line("turn_time", optional(&session.turn_time));
    line("pty", session.pty.then(|| "true".to_owned()));
    line("input", (session.input != "line").then(|| quoted(&session.input)));
    line("turns", (session.turns != "line").then(|| quoted(&session.turns)));
    line("contended_if", optional(&session.contended_if));
    line("parent", optional(&session.parent));
    line("tags", list(&session.tags));
    line("env", list(&session.env));
    line("command", list(&session.command));
    line("worktree", session.worktree.as_ref().map(worktree));
    text
}

/// The record of a worktree as an inline table, which stays in the session's own table.
fn worktree(record: &SessionWorktree) -> String {
    let SessionWorktree { path, repository, gitdir, commondir, created } = record;
    let paths = [("path", path), ("repository", repository), ("gitdir", gitdir), ("commondir", commondir)];
    let paths: Vec<String> = paths.iter().map(|(key, path)| format!("{key} = {}", quoted(path))).collect();
    format!("{{ {}, created = {created} }}", paths.join(", "))
}

/// A session's name as a TOML key: a dot in it would begin another table.
fn key(name: &str) -> String {
    if name.contains('.') { quoted(name) } else { name.to_owned() }
}

/// A text as a TOML string: as in JSON, with everything a terminal would obey escaped.
fn quoted(text: &str) -> String {
    visible(&json!(text).to_string()).into_owned()
}

fn list(texts: &[String]) -> Option<String> {
    let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    (!quoted.is_empty()).then(|| format!("[{}]", quoted.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_api::word::Mode;

    #[test]
    fn what_is_written_is_read_again() {
        let session = Declared {
            name: "a.b-c".into(),
            agent: "command".into(),
            vendor_session: None,
            dir: "/päth \"with\" 'quotes' \\ and\ttab\u{7f}".into(),
            mode: Mode::OnDemand,
            memory: Some("2G".into()),
            idle: Some("5m".into()),
            budget: Some("5USD".into()),
            turn_time: Some("30m".into()),
            stop_grace: None,
            pty: true,
            input: "json".into(),
            turns: "done".into(),
            contended_if: Some("lock \"x\" busy".into()),
            parent: Some("p".into()),
            tags: vec!["t".into()],
            env: vec!["KEY".into()],
            dir_lock: false,
            command: vec!["sh".into(), "-c".into(), "echo \"$1\"\n".into()],
            worktree: Some(SessionWorktree {
                path: "/ä \"b\".worktrees/c".into(),
                repository: "/ä \"b\"".into(),
                gitdir: "/ä \"b\"/.git/worktrees/c".into(),
                commondir: "/ä \"b\"/.git".into(),
                created: true,
            }),
        };
        let read = pinfold_daemon::declared::read(&section(&session)).unwrap();
        let request = &read[0].request;
        assert_eq!((&request.name, request.dir.as_ref()), (&session.name, Some(&session.dir)));
        assert_eq!(request.command.as_ref(), Some(&session.command));
        assert_eq!(request.worktree, session.worktree);
        assert_eq!(request.contended_if, session.contended_if);
        assert_eq!((&read[0].env_names, &request.env), (&session.env, &None));
        assert_eq!((request.pty, request.dir_lock), (Some(true), Some(false)));
        assert_eq!((request.memory.as_deref(), request.turns.as_deref()), (Some("2G"), Some("done")));
    }
}

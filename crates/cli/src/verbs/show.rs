//! `show`: one page about a session: state, last exit, process tree, memory, the last lines.

use super::ls::{home, shade_of};
use super::usage::cost;
use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::looking::looked;
use crate::output::{
    Failure, Paper, Shade, ago, below_home, columns, moment, names_home, print, say, wrapped,
};
use crate::told_exit::told;
use crate::worktree;
use clap::Args;
use pinfold_api::object::{Inbox, LogLine, RunProcess, Session, Usage};
use pinfold_api::word::Activity;
use pinfold_api::{Client, ClientError, endpoint, query};
use pinfold_core::visible::{visible, visible_line};
use pinfold_core::words;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// How many lines of output the page has.
const LINES: usize = 10;

/// Which session.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Its name, or a unique beginning of its id
    session: String,
}

impl DaemonVerb for Show {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let client = daemon.client()?;
        // Not parsed into this version's object: a newer daemon may send more, and JSON should have all of it.
        let text = client.text(&endpoint::Show::call(&self.session))?;
        if daemon.global.json {
            let mut object: Value = serde_json::from_slice(&text).map_err(ClientError::Garbled)?;
            if let Some(worktree) = object["dir"].as_str().and_then(|dir| worktree::shown(Path::new(dir))) {
                object["worktree"] = worktree;
            }
            say(&object);
            if object["seen"] == false {
                looked(&client, &self.session);
            }
            return Ok(());
        }
        let session: Session = serde_json::from_slice(&text).map_err(ClientError::Garbled)?;
        let last = last_lines(&client, &session.id);
        print(&page(&session, &last, Paper::stdout()));
        if !session.seen {
            looked(&client, &session.id);
        }
        Ok(())
    }
}

/// The last lines of output; without them the page is still worth showing.
fn last_lines(client: &Client, id: &str) -> Vec<LogLine> {
    let which = query::Logs { n: Some(LINES), ..query::Logs::default() };
    let lines = client.lines(&endpoint::Logs::call(id, &which)).into_iter().flatten();
    lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()).collect()
}

fn page(session: &Session, last: &[LogLine], paper: Paper) -> String {
    let mut text = String::new();
    let dot = paper.paint("●", shade_of(&session.state)).into_owned();
    let what = [session.agent.as_str(), session.mode.word()].join(", ");
    text.push_str(&format!("{dot} {} ({what})\n", visible(&session.name)));
    let facts = facts(session, paper);
    for (label, fact) in facts.iter().filter_map(|(label, fact)| Some((label, fact.as_ref()?))) {
        let blanks = " ".repeat(LABEL.saturating_sub(columns(label)));
        let width = paper.width().map_or(usize::MAX, |width| width.saturating_sub(LABEL + 2));
        let lines = wrapped(&visible(fact), width);
        let label = paper.paint(label, Shade::Faint);
        let below = format!("\n{}", " ".repeat(LABEL + 2));
        let lines = lines.iter().map(|line| paper.cut_to(line, width)).collect::<Vec<_>>().join(&below);
        text.push_str(&format!("{blanks}{label}: {lines}\n"));
    }
    if let Some(processes) = session.processes.as_ref().filter(|all| !all.is_empty()) {
        text.push_str(&tree(processes, paper));
    }
    if !last.is_empty() {
        text.push('\n');
    }
    for line in last {
        let plain = pinfold_terminal::plain(line.text.trim_end_matches('\r'));
        let at = paper.paint(&moment(&line.at), Shade::Faint).into_owned();
        text.push_str(&paper.cut_line(&format!("{at} {}", visible_line(&plain))));
        text.push('\n');
    }
    text
}

/// The width of the labels, which are right-aligned.
const LABEL: usize = 12;

/// The facts about a session by label; `None` if there is nothing to say, or only the default.
fn facts(session: &Session, paper: Paper) -> Vec<(&'static str, Option<String>)> {
    let home = home().filter(|_| paper.width().is_some());
    let since = |at: &String| format!("{}, {} ago", moment(at), ago(at).unwrap_or_default());
    vec![
        ("State", Some(names_home(&session.why, home.as_deref()).into_owned())),
        ("Activity", activity(session)),
        ("Asks", session.request.as_ref().map(|request| format!("{} ({})", request.title, request.id))),
        ("Status", session.status.clone()),
        ("Since", session.started_at.as_ref().map(since)),
        (
            "Last exit",
            session
                .last_exit
                .as_ref()
                .map(|exit| format!("{}, {} ago", told(exit), ago(&exit.at).unwrap_or_default())),
        ),
        ("Next", session.next.as_ref().map(|next| format!("{} at {}", next.what, moment(&next.at)))),
        (
            "Directory",
            Some(format!(
                "{}{}",
                below_home(&session.dir, home.as_deref()),
                if session.dir_lock { " (locked)" } else { "" }
            )),
        ),
        ("Worktree", worktree::shown(Path::new(&session.dir)).map(|worktree| on_disk(&worktree))),
        ("Command", Some(session.command.join(" ")).filter(|command| !command.is_empty())),
        ("Conversation", session.vendor_session.clone()),
        ("Account", session.account.clone()),
        ("Usage", session.usage.as_ref().map(used)),
        ("Memory", memory(session)),
        ("Pending", session.pending.as_ref().map(from_the_next_run)),
        ("Runs", restarted(session.restarts)),
        ("Inbox", messages(&session.inbox)),
        ("Clients", (session.consumers > 0).then(|| format!("{} attached or following", session.consumers))),
        ("Parent", session.parent.clone()),
        ("Tags", Some(session.tags.join(", ")).filter(|tags| !tags.is_empty())),
        ("Variables", Some(given(session)).filter(|names| !names.is_empty())),
        ("Policy", Some(policy(&session.policy)).filter(|changed| !changed.is_empty())),
        ("Archived", session.archived_at.as_ref().map(since)),
        ("Created", Some(since(&session.created_at))),
        ("Id", Some(session.id.clone())),
    ]
}

/// What it has used: tokens, cost, and how full its context is.
fn used(usage: &Usage) -> String {
    let count = |count: Option<u64>, of: &str| count.map(|count| format!("{count} {of}"));
    let cached = usage.cached_tokens.filter(|cached| *cached > 0);
    let full = usage.context_used.map(|used| match usage.context_size {
        Some(size) if size > 0 => format!("context {used} of {size} ({} %)", used * 100 / size),
        Some(_) | None => format!("context {used}"),
    });
    let parts = [
        count(usage.input_tokens, "in"),
        count(cached, "of them cached"),
        count(usage.output_tokens, "out"),
        usage.cost_usd.map(cost),
        full,
        usage.model.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn activity(session: &Session) -> Option<String> {
    if session.activity == Activity::Unknown {
        return None;
    }
    let from = session.activity_from.as_ref().map(|from| format!(" (by {from})")).unwrap_or_default();
    Some(format!("{}{from}", session.activity))
}

/// The disk space of a worktree, as far as it was counted.
fn on_disk(worktree: &Value) -> String {
    let least = if worktree["counted"] == "all" { "" } else { "at least " };
    format!("{least}{} on disk", words::size(worktree["disk_bytes"].as_u64().unwrap_or(0)))
}

fn restarted(times: u64) -> Option<String> {
    match times {
        0 => None,
        1 => Some("restarted once".to_owned()),
        many => Some(format!("restarted {many} times")),
    }
}

/// Its messages, if there were any.
fn messages(inbox: &Inbox) -> Option<String> {
    let Inbox { queued, in_flight, done, failed, damaged } = inbox;
    let any = queued + in_flight + done + failed + damaged > 0;
    any.then(|| format!("{queued} queued, {in_flight} under way, {done} done, {failed} failed"))
}

/// Changes that are not in force yet.
fn from_the_next_run(pending: &BTreeMap<String, Value>) -> String {
    let each = pending.iter().map(|(name, value)| match value {
        Value::Null => format!("no {name}"),
        Value::String(text) => format!("{name} {text}"),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => format!("{name} {value}"),
    });
    format!("{}, from the next run on", each.collect::<Vec<_>>().join(", "))
}

fn memory(session: &Session) -> Option<String> {
    let used = words::size(session.memory_bytes?);
    let swap =
        session.swap_bytes.filter(|swap| *swap > 0).map(|swap| format!(", {} on swap", words::size(swap)));
    let limit = session.memory_limit_bytes.map(|limit| format!(" of {}", words::size(limit)));
    Some(format!("{used}{}{}", limit.unwrap_or_default(), swap.unwrap_or_default()))
}

/// The names of the variables it was given, without those that every session has.
fn given(session: &Session) -> String {
    let given = session.env.iter().filter(|name| !pinfold_daemon::is_harmless(name));
    given.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// What differs from the default policy, in readable units.
fn policy(own: &Value) -> String {
    let usual = json!(pinfold_core::Policy::default());
    let Some(fields) = own.as_object() else { return String::new() };
    let changed = fields.iter().filter(|(key, value)| usual.get(key.as_str()) != Some(value));
    changed
        .map(|(key, value)| format!("{key} {}", in_units(&usual, key, value)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The value of a policy field; durations are stored as milliseconds.
fn in_units(usual: &Value, key: &str, value: &Value) -> String {
    match (DURATIONS.contains(&key), value.as_u64()) {
        (true, Some(0)) => "none".to_owned(),
        (true, Some(ms)) => words::duration(std::time::Duration::from_millis(ms)),
        (_, _) if usual.get(key).is_none() && value.is_null() => "none".to_owned(),
        (_, _) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

/// The fields of a policy that are durations.
const DURATIONS: [&str; 14] = [
    "stable_after",
    "backoff_initial",
    "backoff_max",
    "clean_window",
    "drain_window",
    "drain_backoff",
    "contention_step",
    "contention_max",
    "idle_after",
    "stop_grace",
    "takeover_deadline",
    "memory_sample",
    "watchdog",
    "hold_limit",
];

/// The processes of its run, each below its parent.
fn tree(processes: &[RunProcess], paper: Paper) -> String {
    let mut text = String::new();
    for process in processes {
        let depth = depth(process, processes);
        let blanks = " ".repeat(LABEL + 2);
        let branch = if depth == 0 { String::new() } else { format!("{}└─ ", "   ".repeat(depth - 1)) };
        let line = format!("{blanks}{branch}{} {}", process.pid, visible_line(&process.command));
        text.push_str(&paper.cut_line(&line));
        text.push('\n');
    }
    text
}

fn depth(of: &RunProcess, all: &[RunProcess]) -> usize {
    let above = |process: &&RunProcess| all.iter().find(|other| Some(other.pid) == process.parent);
    std::iter::successors(Some(of), above).take(all.len()).count() - 1
}

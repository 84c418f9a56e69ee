//! `ls`: lists sessions.

use super::usage::cost;
use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::live;
use crate::output::{
    Failure, Paper, Shade, TableCell, Worth, below_home, names_home, plain, print, say, short, talk,
    without_dir, without_state,
};
use clap::Args;
use pinfold_api::object::Row;
use pinfold_api::word::{Activity, State};
use pinfold_api::{ClientError, endpoint, query};
use pinfold_core::words;
use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::Duration;

/// Which sessions, and how.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Ls {
    /// Show archived ones too
    #[arg(short, long)]
    all: bool,
    /// Print names only
    #[arg(short = 'q')]
    names: bool,
    /// Stay, and show changes as they come
    #[arg(short, long)]
    watch: bool,
    /// Only those in this state; may be given several times
    #[arg(long, value_name = "STATE")]
    state: Vec<String>,
    /// Only those with this tag; given several times: with all of them
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

impl DaemonVerb for Ls {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        if self.watch {
            return live::watch(daemon, |daemon| self.once(daemon));
        }
        self.once(daemon)
    }
}

impl Ls {
    fn once(&self, daemon: &Daemon) -> Result<(), Failure> {
        let which = self.which();
        if daemon.global.json && !self.names {
            // The daemon's answer as it came; parsing it would only mean writing it again.
            let text = daemon.at_once(|client| client.text(&endpoint::Sessions::call(&which)))?;
            say(&String::from_utf8_lossy(&text));
            return Ok(());
        }
        let text = daemon.at_once(|client| client.text(&endpoint::Table::call(&which)))?;
        let rows: Vec<Row<'_>> = serde_json::from_slice(&text).map_err(ClientError::Garbled)?;
        if self.names && daemon.global.json {
            say(&serde_json::json!(rows.iter().map(|row| &row.name).collect::<Vec<_>>()));
        } else if self.names {
            rows.iter().for_each(|row| say(&row.name));
        } else if !rows.is_empty() {
            print(&table(Paper::stdout(), &rows, home().as_deref()));
        } else if !daemon.global.quiet {
            talk(&self.none(daemon));
        }
        Ok(())
    }

    fn which(&self) -> query::Sessions {
        let joined = |all: &[String], by: &str| (!all.is_empty()).then(|| all.join(by));
        query::Sessions {
            all: self.all,
            state: joined(&self.state, ","),
            tags: joined(&self.tag, "\n"),
            brief: std::io::stdout().is_terminal(),
            ..query::Sessions::default()
        }
    }

    /// The message for an empty list: which list it is.
    fn none(&self, daemon: &Daemon) -> String {
        if !self.state.is_empty() || !self.tag.is_empty() {
            return "no such sessions".to_owned();
        }
        let home = crate::home::home(&daemon.global).map(|home| format!(" in {}", home.state.display()));
        format!("no sessions{}; `pinfold new NAME -- COMMAND` makes one", home.unwrap_or_default())
    }
}

/// The caller's home directory, which people write as `~`.
pub(crate) fn home() -> Option<String> {
    std::env::var("HOME").ok().filter(|home| home.len() > 1 && home.starts_with('/'))
}

const HEADS: [(&str, Worth); 11] = [
    ("NAME", Worth::Needed(12)),
    ("STATE", Worth::Needed(7)),
    ("ACTIVITY", Worth::Wanted(2)),
    ("UPTIME", Worth::Wanted(3)),
    ("DIR", Worth::Path(1)),
    ("MEMORY", Worth::Extra),
    ("PID", Worth::Extra),
    ("MODE", Worth::Extra),
    ("RESTARTS", Worth::Extra),
    ("COMMAND", Worth::Extra),
    ("WHY", Worth::Sentence),
];

fn table(paper: Paper, rows: &[Row<'_>], home: Option<&str>) -> String {
    // In a pipe, paths and sentences are complete.
    let people = paper.width().map(|_| People { home });
    if rows.iter().any(|row| row.cost_usd.is_some()) {
        return with_costs(paper, rows, people);
    }
    let rows: Vec<[TableCell<'_>; 11]> = rows.iter().map(|row| cells(row, people)).collect();
    paper.fitted(HEADS, &rows)
}

/// What a terminal can leave out for people: their home directory, and what another column says.
#[derive(Clone, Copy)]
struct People<'a> {
    home: Option<&'a str>,
}

fn cells<'a>(row: &'a Row<'_>, people: Option<People<'_>>) -> [TableCell<'a>; 11] {
    let home = people.and_then(|people| people.home);
    let why = without_state(&row.why);
    let why = if people.is_some() { without_dir(why, &row.dir) } else { why };
    let or_none = |text: Option<String>| plain(text.unwrap_or_else(|| "-".to_owned()));
    let activity = row.activity.as_ref().filter(|activity| **activity != Activity::Unknown);
    [
        plain(row.name.as_ref()),
        TableCell { text: row.state.word().into(), shade: shade_of(&row.state) },
        TableCell {
            text: activity.map_or("-", Activity::word).into(),
            shade: activity.map_or(Shade::Faint, busy),
        },
        or_none(row.uptime_ms.map(|ms| short(Duration::from_millis(ms)))),
        TableCell { text: below_home(&row.dir, home), shade: Shade::Plain },
        or_none(row.memory_bytes.map(words::size)),
        or_none(row.pid.map(|pid| pid.to_string())),
        plain(row.mode.word()),
        plain(row.restarts.to_string()),
        TableCell { text: one_line(&row.command), shade: Shade::Faint },
        TableCell { text: names_home(why, home), shade: Shade::Plain },
    ]
}

/// The same table with a column for costs.
fn with_costs(paper: Paper, rows: &[Row<'_>], people: Option<People<'_>>) -> String {
    let [name, state, activity, uptime, dir, memory, pid, mode, restarts, command, why] = HEADS;
    let cost = ("COST", Worth::Extra);
    let heads = [name, state, activity, uptime, dir, cost, memory, pid, mode, restarts, command, why];
    let rows: Vec<[TableCell<'_>; 12]> = rows.iter().map(|row| with_cost(row, people)).collect();
    paper.fitted(heads, &rows)
}

fn with_cost<'a>(row: &'a Row<'_>, people: Option<People<'_>>) -> [TableCell<'a>; 12] {
    let [name, state, activity, uptime, dir, memory, pid, mode, restarts, command, why] = cells(row, people);
    let cost = plain(row.cost_usd.map_or_else(|| "-".to_owned(), cost));
    [name, state, activity, uptime, dir, cost, memory, pid, mode, restarts, command, why]
}

/// A text without control characters, which would break the table.
fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) { text.replace(char::is_control, " ").into() } else { text.into() }
}

/// The colour of a state.
pub(crate) fn shade_of(state: &State) -> Shade {
    match state {
        State::Running | State::Held => Shade::Good,
        State::Starting | State::Stopping | State::Backoff | State::Blocked => Shade::Busy,
        State::Failed => Shade::Bad,
        State::Idle | State::Stopped | State::Archived => Shade::Faint,
        State::Damaged | State::Unknown | State::Other(_) => Shade::Plain,
    }
}

/// The colour of an activity: one that waits for a person stands out.
fn busy(activity: &Activity) -> Shade {
    match activity {
        Activity::Waiting | Activity::Limited => Shade::Busy,
        Activity::Working => Shade::Good,
        Activity::Idle | Activity::Unknown | Activity::Other(_) => Shade::Faint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::columns;
    use pinfold_api::word::Mode;

    fn row<'a>(name: &'a str, state: State, why: &'a str, dir: &'a str) -> Row<'a> {
        Row {
            name: name.into(),
            uptime_ms: (state == State::Running).then_some(192_000),
            activity: Some(if state == State::Running { Activity::Working } else { Activity::Unknown }),
            state,
            mode: Mode::Always,
            pid: Some(4711),
            memory_bytes: Some(12 << 20),
            restarts: 0,
            cost_usd: None,
            dir: dir.into(),
            command: "claude --resume 0123456789abcdef".into(),
            why: why.into(),
        }
    }

    fn rows() -> Vec<Row<'static>> {
        vec![
            row(
                "api",
                State::Running,
                "running for 3 min 12 s; a turn is under way",
                "/home/u/src/services/api",
            ),
            row(
                "crasher",
                State::Backoff,
                "waiting: exited with 1 after 1.8 s: `RuntimeError: boom`; crashed 6 times in a row, next run in 15 s",
                "/home/u/src/crasher",
            ),
            row("会議-notes", State::Idle, "idle: not needed yet", "/srv/会議"),
        ]
    }

    #[test]
    fn the_table_fits_every_terminal_and_why_has_the_room_first() {
        for width in [60, 80, 120, 200] {
            let text = table(Paper::of(false, Some(width)), &rows(), Some("/home/u"));
            assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
        }
        let narrow = table(Paper::of(false, Some(80)), &rows(), Some("/home/u"));
        let head: Vec<&str> = narrow.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(head, ["NAME", "STATE", "ACTIVITY", "UPTIME", "DIR", "WHY"]);
        assert!(narrow.lines().nth(2).unwrap().contains("exited with 1 after 1.8 s"), "{narrow}");
    }

    #[test]
    fn what_a_session_cost_has_a_column_where_any_has_a_cost_and_there_is_room() {
        let mut rows = rows();
        assert!(!table(Paper::endless(), &rows, None).contains("COST"));
        rows[0].cost_usd = Some(1.5);
        let wide = table(Paper::of(false, Some(200)), &rows, None);
        assert!(wide.lines().next().unwrap().contains("COST") && wide.contains("$1.50"), "{wide}");
        let narrow = table(Paper::of(false, Some(80)), &rows, None);
        assert!(!narrow.contains("COST"), "{narrow}");
    }

    #[test]
    fn nothing_is_cut_in_a_pipe() {
        let text = table(Paper::endless(), &rows(), Some("/home/u"));
        assert!(text.contains("/home/u/src/services/api") && !text.contains('…'), "{text}");
        assert!(text.contains("claude --resume 0123456789abcdef"), "{text}");
        assert!(text.contains("crashed 6 times in a row, next run in 15 s"), "{text}");
    }

    #[test]
    fn a_sentence_does_not_repeat_the_directory_that_has_a_column() {
        assert_eq!(without_dir("`/a` is held by session `b` (pid 1)", "/a"), "held by session `b` (pid 1)");
        assert_eq!(without_dir("`/a/b` is held by session `b`", "/a"), "`/a/b` is held by session `b`");
    }

    #[test]
    fn a_sentence_names_directories_as_people_write_them() {
        let held = "`/home/u/a` is held by session `b` (pid 1, /home/u/run)";
        assert_eq!(names_home(held, Some("/home/u")), "`~/a` is held by session `b` (pid 1, /home/u/run)");
        assert_eq!(names_home(held, None), held);
    }
}

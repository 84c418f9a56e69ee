//! `completions`: the shell scripts for completing verbs, options and session names, and the query that they use.

use crate::daemon;
use crate::doing::{HelpVerb, StandaloneVerb};
use crate::global::Global;
use crate::help::{Completion, NameLookup, SHELLS, completions, script};
use crate::home;
use crate::output::{Failure, Kind, print, say};
use clap::{Args, Command};
use pinfold_api::object::Row;
use pinfold_api::word::State;
use pinfold_api::{endpoint, query};
use serde_json::json;

/// Which shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// bash, zsh or fish
    shell: String,
}

impl StandaloneVerb for Completions {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        let Some(script) = script(&self.shell) else {
            let text = format!("no completions are known for `{}`", self.shell);
            return Err(Failure::new(Kind::Usage, text).hint(format!("the shells are {}", SHELLS.join(", "))));
        };
        if global.json {
            say(&json!({ "shell": self.shell, "script": script }));
        } else {
            print(script);
        }
        Ok(())
    }
}

/// The words of a line; the last one is being typed.
#[derive(Debug, Args)]
pub(crate) struct Complete {
    #[arg(last = true)]
    words: Vec<String>,
}

impl HelpVerb for Complete {
    /// Prints one word per line, with its meaning after a tab. Starts nothing, and never fails.
    fn explain(&self, program: &Command, global: &Global) -> Result<(), Failure> {
        let typed = self.words.last().map_or("", String::as_str);
        for completion in completions(program, &self.words) {
            match completion {
                Completion::Word(word, meaning) => tell(&word, &meaning),
                Completion::Files => say(&":files"),
                Completion::Directories => say(&":dirs"),
                Completion::Asked(NameLookup::Session(verb)) => sessions(&verb, typed, global),
                Completion::Asked(NameLookup::Agent) => agents(typed, global),
            }
        }
        Ok(())
    }
}

fn tell(word: &str, meaning: &str) {
    let line = format!("{word}\t{}", meaning.replace(char::is_control, " "));
    print(&format!("{}\n", line.trim_end()));
}

/// The sessions that suit a verb, with their states.
fn sessions(verb: &str, typed: &str, global: &Global) {
    let Ok(client) = daemon::running(global) else { return };
    let which = query::Sessions { all: true, brief: true, known: true, ..query::Sessions::default() };
    let Ok(text) = client.text(&endpoint::Table::call(&which)) else { return };
    let rows: Vec<Row<'_>> = serde_json::from_slice(&text).unwrap_or_default();
    let meant = rows.iter().filter(|row| row.name.starts_with(typed) && suits(verb, &row.state));
    let said = |row: &Row<'_>| match row.why.starts_with(row.state.word()) {
        true => row.why.to_string(),
        false => format!("{}: {}", row.state, row.why),
    };
    meant.for_each(|row| tell(&row.name, &said(row)));
}

/// Whether a verb makes sense for a session in this state.
fn suits(verb: &str, state: &State) -> bool {
    let rests = [State::Idle, State::Stopped, State::Failed].contains(state);
    match (verb, state) {
        ("restore", state) => *state == State::Archived,
        ("show" | "why" | "logs" | "events" | "inbox", _) => true,
        ("rm" | "rename", state) => rests || *state == State::Archived,
        (_, State::Archived) => false,
        ("start", state) => rests || [State::Backoff, State::Blocked].contains(state),
        ("stop", state) => ![State::Stopped, State::Failed].contains(state),
        (_, _) => true,
    }
}

fn agents(typed: &str, global: &Global) {
    let config = home::home(global).ok().and_then(|home| pinfold_daemon::config::load(&home.config).ok());
    let config = config.unwrap_or_default();
    let names = config.presets().map(|(name, _)| name.to_owned()).chain(["command".to_owned()]);
    names.filter(|name| name.starts_with(typed)).for_each(|name| tell(&name, ""));
}

//! Reads the command line.

use crate::global::Global;
use crate::output::{Failure, Kind};
use crate::verbs::{Ls, Status, Verb};
use clap::{Args, Parser};
use std::ffi::OsString;

/// Keeps AI agents alive while somebody needs them, and never two at once.
#[derive(Debug, Parser)]
#[command(name = "pinfold", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Command {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Reads the command line; help and version are printed here.
pub(crate) fn parse() -> Result<Command, (Failure, Global)> {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(command) = frequent(&words) {
        return Ok(command);
    }
    let read = Command::try_parse_from(&words);
    read.map_err(|error| if error.use_stderr() { (usage(&error), guess_global()) } else { error.exit() })
}

/// One verb and no other: what scripts and people ask all the time is faster than the making of all verbs.
#[derive(Debug, Parser)]
#[command(disable_help_flag = true)]
struct Alone<V: Args> {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    verb: V,
}

/// A command line that begins with a verb that is used often, and has no mistake: those are told by all of the parser.
fn frequent(words: &[OsString]) -> Option<Command> {
    let rest = words.get(1..)?;
    let bare = |verb| Some(Command { global: Global::default(), verb });
    match (rest.first()?.to_str()?, rest.len()) {
        // Nothing to read: a tenth of what `ls` takes would be spent on it.
        ("ls", 1) => bare(Verb::Ls(Ls::default())),
        ("status", 1) => bare(Verb::Status(Status {})),
        ("ls", _) => alone(rest, Verb::Ls),
        ("status", _) => alone(rest, Verb::Status),
        ("lock", _) => alone(rest, Verb::Lock),
        _ => None,
    }
}

fn alone<V: Args>(words: &[OsString], verb: impl Fn(V) -> Verb) -> Option<Command> {
    let Alone { global, verb: read } = Alone::<V>::try_parse_from(words).ok()?;
    Some(Command { global, verb: verb(read) })
}

fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let missing: Vec<_> =
        text.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::trim).collect();
    let mut message = first.strip_prefix("error: ").unwrap_or("no verb was given").to_owned();
    if !missing.is_empty() && message.ends_with(':') {
        message = format!("{message} {}", missing.join(" "));
    }
    let tip = lines.find_map(|line| line.strip_prefix("tip: ").map(str::to_owned));
    Failure::new(Kind::Usage, message)
        .hint(tip.unwrap_or_else(|| "`pinfold --help` lists what can be done".into()))
}

/// A line that cannot be read may still have asked for JSON.
fn guess_global() -> Global {
    let ours = std::env::args_os().skip(1).take_while(|word| word != "--");
    Global { json: ours.into_iter().any(|word| word == "--json"), ..Global::default() }
}

//! Reads the command line.

use crate::daemon;
use crate::global::Global;
use crate::help::{Length, help_page};
use crate::mistakes;
use crate::output::{Failure, Paper, print};
use crate::verbs::{Ls, Send, Status, Tui, Verb};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser};
use pinfold_api::endpoint;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::str::FromStr;

/// Keeps AI agents alive while they are needed, and never two at once.
#[derive(Debug, Parser)]
#[command(name = "pinfold", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Reads the command line. Returns `None` if only help or the version was asked for, which is printed here.
pub(crate) fn parse() -> Result<Option<CommandLine>, (Failure, Global)> {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(command) = frequent(&words).or_else(|| without_verb(&words)) {
        return Ok(Some(command));
    }
    let error = match CommandLine::try_parse_from(&words) {
        Ok(command) => return Ok(Some(command)),
        Err(error) => error,
    };
    let texts: Vec<String> = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let Some(text) = asked_for(&error, &texts) else {
        let (failure, global) = (mistakes::failure(&error, &definition(), &texts), guess_global());
        let session =
            (error.kind() == ErrorKind::InvalidSubcommand).then(|| session_in(&texts, &global)).flatten();
        let hint =
            |name: &String| format!("`{name}` is a session: `pinfold show {name}`, `pinfold attach {name}`");
        return Err((session.iter().map(hint).fold(failure, Failure::hint), global));
    };
    print(&text);
    Ok(None)
}

/// The definition of the command line, built by clap.
pub(crate) fn definition() -> clap::Command {
    let mut program = CommandLine::command();
    program.build();
    program
}

/// A word in the verb's place that names a session. No daemon is started to find out.
fn session_in(words: &[String], global: &Global) -> Option<String> {
    let word = words.iter().find(|word| !word.starts_with('-'))?;
    let named = pinfold_api::Name::from_str(word).is_ok();
    let client = daemon::running(global).ok().filter(|_| named)?;
    client.ask(&endpoint::Show::call(word)).ok().map(|found| found.name).filter(|name| name == word)
}

/// The text asked for with `-h`, `--help` or `--version`.
fn asked_for(error: &clap::Error, words: &[String]) -> Option<String> {
    if error.kind() == ErrorKind::DisplayVersion {
        return Some(error.render().to_string());
    }
    if error.kind() != ErrorKind::DisplayHelp {
        return None;
    }
    let length = if words.iter().any(|word| word == "--help") { Length::Long } else { Length::Short };
    let program = definition();
    let verb = mistakes::verb_in(&program, words).map(str::to_owned);
    Some(help_page(&program, verb.as_deref(), length, Paper::stdout()))
}

/// A command line of only global options: the terminal UI on a terminal, the list elsewhere.
fn without_verb(words: &[OsString]) -> Option<CommandLine> {
    if words.get(1).is_some_and(is_plain) {
        return None;
    }
    let StandaloneVerb { global, verb: NoVerb {} } = StandaloneVerb::<NoVerb>::try_parse_from(words).ok()?;
    let looked_at = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !global.json;
    let verb = if looked_at { Verb::Tui(Tui::usual()) } else { Verb::Ls(Ls::default()) };
    Some(CommandLine { global, verb })
}

/// No words of its own.
#[derive(Debug, Args)]
struct NoVerb {}

/// One verb and no other: what scripts and people ask all the time is faster than the making of all verbs.
#[derive(Debug, Parser)]
#[command(disable_help_flag = true)]
struct StandaloneVerb<V: Args> {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    verb: V,
}

/// Reads a command line that begins with a common verb and has no mistake. Mistakes are left to the full parser.
fn frequent(words: &[OsString]) -> Option<CommandLine> {
    let rest = words.get(1..)?;
    let bare = |verb| Some(CommandLine { global: Global::default(), verb });
    match (rest.first()?.to_str()?, rest.len()) {
        // No arguments to parse: running the parser would take a tenth of the time of `ls`.
        ("ls", 1) => bare(Verb::Ls(Ls::default())),
        ("status", 1) => bare(Verb::Status(Status {})),
        ("send", _) => send(rest),
        ("ls", _) => alone(rest, Verb::Ls),
        ("status", _) => alone(rest, Verb::Status),
        ("lock", _) => alone(rest, Verb::Lock),
        _ => None,
    }
}

/// A session and a text that cannot be options, followed by options.
fn send(words: &[OsString]) -> Option<CommandLine> {
    let [_, session, text, options @ ..] = words else { return None };
    if !is_plain(session) || !is_plain(text) {
        return None;
    }
    let given = Send::of(session.to_str()?, text.to_str()?);
    let sent = |send| Some(CommandLine { global: Global::default(), verb: Verb::Send(send) });
    match options {
        [] => sent(given),
        [only] if only == "--wait" => sent(given.and_wait()),
        _ => alone(words, Verb::Send),
    }
}

/// Whether a word cannot be an option.
fn is_plain(word: &OsString) -> bool {
    !word.as_encoded_bytes().starts_with(b"-")
}

fn alone<V: Args>(words: &[OsString], verb: impl Fn(V) -> Verb) -> Option<CommandLine> {
    let StandaloneVerb { global, verb: read } = StandaloneVerb::<V>::try_parse_from(words).ok()?;
    Some(CommandLine { global, verb: verb(read) })
}

/// Global options guessed from a line that could not be parsed, which may still have asked for JSON.
fn guess_global() -> Global {
    let ours = std::env::args_os().skip(1).take_while(|word| word != "--");
    Global { json: ours.into_iter().any(|word| word == "--json"), ..Global::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<OsString> {
        std::iter::once("pinfold").chain(line.iter().copied()).map(OsString::from).collect()
    }

    #[test]
    fn a_line_that_is_read_the_short_way_is_read_as_by_all_of_the_parser() {
        let lines: [&[&str]; 13] = [
            &["ls"],
            &["status"],
            &["ls", "--all", "--json"],
            &["send", "api", "how are you?"],
            &["send", "api", ""],
            &["send", "", "a\nb"],
            &["send", "help", "help"],
            &["send", "api", "how are you?", "--wait"],
            &["send", "api", "text", "--wait", "30s"],
            &["send", "api", "text", "--wait=30s", "--json"],
            &["send", "api", "text", "--json"],
            &["send", "api", "text", "--key", "k"],
            &["send", "api", "text", "--wait", "--home", "/h"],
        ];
        for line in lines {
            let short = frequent(&words(line)).expect("it is read the short way");
            let whole = CommandLine::try_parse_from(words(line)).unwrap();
            assert_eq!(format!("{short:?}"), format!("{whole:?}"), "{line:?}");
        }
    }

    #[test]
    fn a_send_in_which_a_word_may_be_an_option_is_left_to_all_of_the_parser() {
        let lines: [&[&str]; 9] = [
            &["send", "api"],
            &["send", "api", "-"],
            &["send", "api", "--help"],
            &["send", "--json", "api"],
            &["send", "--", "api", "text"],
            &["send", "--wait", "api", "text"],
            &["send", "api", "--wait", "text"],
            &["send", "api", "text", "--help"],
            &["send", "api", "text", "-h", "--wait"],
        ];
        for line in lines {
            assert!(frequent(&words(line)).is_none(), "{line:?}");
        }
    }
}

//! Reads the command line.

use crate::global::Global;
use crate::help::{Length, help_page};
use crate::mistakes;
use crate::output::{Failure, Paper, print};
use crate::verbs::{Ls, Send, Status, Tui, Verb};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser};
use std::ffi::OsString;
use std::io::IsTerminal;

/// Keeps AI agents alive while somebody needs them, and never two at once.
#[derive(Debug, Parser)]
#[command(name = "pinfold", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Command {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Reads the command line; nothing where only help or the version was asked for, which is printed here.
pub(crate) fn parse() -> Result<Option<Command>, (Failure, Global)> {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(command) = frequent(&words).or_else(|| without_verb(&words)) {
        return Ok(Some(command));
    }
    let error = match Command::try_parse_from(&words) {
        Ok(command) => return Ok(Some(command)),
        Err(error) => error,
    };
    let texts: Vec<String> = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let Some(text) = asked_for(&error, &texts) else {
        return Err((mistakes::failure(&error, &definition(), &texts), guess_global()));
    };
    print(&text);
    Ok(None)
}

/// The definition of the command line, with everything in its place.
pub(crate) fn definition() -> clap::Command {
    let mut program = Command::command();
    program.build();
    program
}

/// What was asked for with `-h`, `--help` or `--version`.
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

/// Nothing but options that every verb takes: the terminal UI on a terminal, the list elsewhere.
fn without_verb(words: &[OsString]) -> Option<Command> {
    let Alone { global, verb: NoVerb {} } = Alone::<NoVerb>::try_parse_from(words).ok()?;
    let looked_at = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !global.json;
    let verb = if looked_at { Verb::Tui(Tui::usual()) } else { Verb::Ls(Ls::default()) };
    Some(Command { global, verb })
}

/// No words of its own.
#[derive(Debug, Args)]
struct NoVerb {}

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
        ("send", 3) => plain_words(rest).map(|[session, text]| Command {
            global: Global::default(),
            verb: Verb::Send(Send::of(session, text)),
        }),
        ("ls", _) => alone(rest, Verb::Ls),
        ("status", _) => alone(rest, Verb::Status),
        ("lock", _) => alone(rest, Verb::Lock),
        _ => None,
    }
}

/// Two words behind the verb, of which neither could be an option.
fn plain_words(words: &[OsString]) -> Option<[&str; 2]> {
    let [_, first, second] = words else { return None };
    let plain = |word: &'_ OsString| word.to_str().filter(|word| !word.starts_with('-')).map(str::len);
    plain(first).and(plain(second))?;
    Some([first.to_str()?, second.to_str()?])
}

fn alone<V: Args>(words: &[OsString], verb: impl Fn(V) -> Verb) -> Option<Command> {
    let Alone { global, verb: read } = Alone::<V>::try_parse_from(words).ok()?;
    Some(Command { global, verb: verb(read) })
}

/// A line that cannot be read may still have asked for JSON.
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
        let lines: [&[&str]; 7] = [
            &["ls"],
            &["status"],
            &["ls", "--all", "--json"],
            &["send", "api", "how are you?"],
            &["send", "api", ""],
            &["send", "", "a\nb"],
            &["send", "help", "help"],
        ];
        for line in lines {
            let short = frequent(&words(line)).expect("it is read the short way");
            let whole = Command::try_parse_from(words(line)).unwrap();
            assert_eq!(format!("{short:?}"), format!("{whole:?}"), "{line:?}");
        }
    }

    #[test]
    fn a_send_in_which_a_word_may_be_an_option_is_left_to_all_of_the_parser() {
        let lines: [&[&str]; 6] = [
            &["send", "api"],
            &["send", "api", "-"],
            &["send", "api", "--help"],
            &["send", "--json", "api"],
            &["send", "api", "text", "--json"],
            &["send", "--", "api", "text"],
        ];
        for line in lines {
            assert!(frequent(&words(line)).is_none(), "{line:?}");
        }
    }
}

//! Lines that cannot be read: which mistake it probably was, and what the line would be without it.

use crate::help::all_verbs;
use crate::output::{Failure, Kind};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use pinfold_core::quoted::quoted;

/// Verbs of other tools, and ours for the same.
const ELSEWHERE: [(&str, &str); 26] = [
    ("ps", "ls"),
    ("list", "ls"),
    ("top", "ls -w"),
    ("monit", "ls -w"),
    ("watch", "ls -w"),
    ("info", "show"),
    ("inspect", "show"),
    ("describe", "show"),
    ("create", "new"),
    ("add", "new"),
    ("exec", "attach"),
    ("enter", "attach"),
    ("kill", "stop"),
    ("delete", "rm"),
    ("remove", "rm"),
    ("mv", "rename"),
    ("log", "logs"),
    ("tail", "logs -f"),
    ("history", "events"),
    ("journal", "events"),
    ("message", "send"),
    ("prompt", "send"),
    ("flock", "lock"),
    ("prune", "purge"),
    ("daemon", "up"),
    ("completion", "completions"),
];

/// Verbs that are planned and not there yet.
const LATER: [&str; 10] =
    ["web", "doctor", "discover", "adopt", "import", "mcp", "acp", "skill", "fleet", "accounts"];

/// What is said of a line that cannot be read.
pub(crate) fn failure(error: &clap::Error, program: &Command, words: &[String]) -> Failure {
    let verb = verb_in(program, words);
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(all)) => Some(all.join(" ")),
        Some(_) | None => None,
    };
    if let Some(unknown) = context(ContextKind::InvalidSubcommand) {
        return no_such_verb(program, &unknown);
    }
    let own = verb.and_then(|verb| program.find_subcommand(verb));
    let wrong = context(ContextKind::InvalidArg);
    let hint = match (error.kind(), own, &wrong) {
        (ErrorKind::UnknownArgument, Some(verb), Some(wrong)) => unexpected(verb, wrong, words),
        (ErrorKind::InvalidValue, _, _) => {
            context(ContextKind::ValidValue).map(|all| format!("one of: {}", all.replace(' ', ", ")))
        }
        (_, _, _) => None,
    };
    let usual = match verb {
        Some(verb) => format!("`pinfold help {verb}` shows how it is used"),
        None => "`pinfold help` lists what can be done".to_owned(),
    };
    Failure::new(Kind::Usage, message(error)).hint(hint.unwrap_or(usual))
}

/// The first line of what clap says, with the arguments that it lists below it.
fn message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let missing: Vec<_> =
        text.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::trim).collect();
    let message = first.strip_prefix("error: ").unwrap_or("no verb was given");
    if missing.is_empty() || !message.ends_with(':') {
        return message.to_owned();
    }
    format!("{message} {}", missing.join(" "))
}

/// A verb that there is not; one that was probably meant, if there is one.
pub(crate) fn no_such_verb(program: &Command, unknown: &str) -> Failure {
    let failure = |text: String| Failure::new(Kind::Usage, text);
    if LATER.contains(&unknown) {
        return failure(format!("`{unknown}` is not in this version yet"))
            .hint("`pinfold help` lists what is");
    }
    let elsewhere = ELSEWHERE.iter().find(|(word, _)| *word == unknown).map(|(_, ours)| vec![*ours]);
    let near = elsewhere.unwrap_or_else(|| near(unknown, all_verbs(program).into_iter()));
    let meant: Vec<String> = near.iter().map(|verb| format!("`pinfold {verb}`")).collect();
    failure(format!("there is no verb `{unknown}`")).hint(match meant.is_empty() {
        true => "`pinfold help` lists what can be done".to_owned(),
        false => format!("{}?", meant.join(" or ")),
    })
}

/// Words that are at most two letters away, and more alike than not; the best first.
fn near<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let off = |word: &'a str| (strsim::osa_distance(unknown, word), word);
    let close = |(off, _): &(usize, &str)| *off <= 2 && off * 2 < unknown.chars().count().max(2);
    let mut all: Vec<(usize, &str)> = known.map(off).filter(close).collect();
    all.sort_unstable();
    let best = all.first().map_or(0, |(off, _)| *off);
    all.into_iter().filter(|(off, _)| *off == best).map(|(_, word)| word).collect()
}

/// A word or an option that a verb does not take.
fn unexpected(verb: &Command, wrong: &str, words: &[String]) -> Option<String> {
    let name = verb.get_name();
    if let Some(option) = wrong.strip_prefix("--") {
        let option = option.split('=').next().unwrap_or(option);
        let known = verb.get_arguments().filter_map(clap::Arg::get_long);
        let known: Vec<&str> = known.collect();
        let begun = known.iter().find(|known| option.len() > 1 && known.starts_with(option)).copied();
        let near = begun.or_else(|| near(option, known.into_iter()).first().copied());
        return near.map(|near| format!("`--{near}`? `pinfold help {name}` lists its options"));
    }
    if wrong.starts_with('-') {
        return None;
    }
    let takes_command = verb.get_positionals().any(clap::Arg::is_last_set);
    let at = words.iter().rposition(|word| word == wrong)?;
    let first = words.iter().position(|word| word == name)?;
    let line = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    if takes_command {
        // The name may be left out: then what stands in its place is the program.
        let named = words.get(first + 1..at).unwrap_or_default();
        let program = named
            .last()
            .filter(|word| named.len() == 1 && name == "new" && is_program(word) && !is_program(wrong));
        let from = if program.is_some() { at - 1 } else { at };
        let (before, command) = (line(&words[..from]), line(&words[from..]));
        return Some(format!("put `--` before the command: pinfold {before} -- {command}"));
    }
    if name == "send" {
        let text = words.get(first + 2..).unwrap_or_default().join(" ");
        let session = words.get(first + 1)?;
        return Some(format!("put the text in quotes: pinfold send {} {}", quoted(session), quoted(&text)));
    }
    None
}

/// Whether a word could be what is run.
fn is_program(word: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    pinfold_kernel::program::find(word.as_ref(), &path).is_some()
}

/// The verb of a line: its first word that is neither an option nor a home.
pub(crate) fn verb_in<'a>(program: &'a Command, words: &[String]) -> Option<&'a str> {
    let mut words = words.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        if word == "--home" {
            words.next();
        } else if !word.starts_with('-') {
            return program.find_subcommand(word).map(Command::get_name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::definition;

    fn hint(line: &[&str]) -> String {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let program = definition();
        let read = program.clone().try_get_matches_from([&["pinfold"], line].concat());
        let object = failure(&read.unwrap_err(), &program, &words).object();
        object["hint"].as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn each_mistake_is_named() {
        let rows: [(&[&str], &str); 20] = [
            (&["new", "x", "sleep", "10"], "put `--` before the command: pinfold new x -- sleep 10"),
            (&["new", "sleep", "10"], "put `--` before the command: pinfold new -- sleep 10"),
            (&["run", "x", "sh", "a b"], "put `--` before the command: pinfold run x -- sh 'a b'"),
            (&["lock", "key:x", "true"], "put `--` before the command: pinfold lock key:x -- true"),
            (
                &["send", "parrot", "hello", "world"],
                "put the text in quotes: pinfold send parrot 'hello world'",
            ),
            (&["answer", "loop", "maybe"], "one of: allow, deny"),
            (&["logs", "a", "--taill", "2"], "`--tail`? `pinfold help logs` lists its options"),
            (&["ls", "--al"], "`--all`? `pinfold help ls` lists its options"),
            (&["ls", "--frobnicate"], "`pinfold help ls` shows how it is used"),
            (&["show"], "`pinfold help show` shows how it is used"),
            (&["strat"], "`pinfold start`?"),
            (&["lst"], "`pinfold ls`?"),
            (&["ps"], "`pinfold ls`?"),
            (&["top"], "`pinfold ls -w`?"),
            (&["kill"], "`pinfold stop`?"),
            (&["delete"], "`pinfold rm`?"),
            (&["doctor"], "`pinfold help` lists what is"),
            (&["web"], "`pinfold help` lists what is"),
            (&["frobnicate"], "`pinfold help` lists what can be done"),
            (&["--home", "ls", "shwo", "a"], "`pinfold show`?"),
        ];
        for (line, expected) in rows {
            assert_eq!(hint(line), expected, "{line:?}");
        }
    }
}

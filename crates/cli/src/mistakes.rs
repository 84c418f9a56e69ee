//! Command lines that cannot be parsed: the likely mistake, and the line without it.

use crate::help::all_verbs;
use crate::output::{Failure, Kind};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use pinfold_core::quoted::quoted;

/// Verbs of other tools, and ours with the same meaning.
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

/// Verbs that are planned but do not exist yet.
const LATER: [&str; 10] =
    ["web", "doctor", "discover", "adopt", "import", "mcp", "acp", "skill", "fleet", "accounts"];

/// The error for a command line that cannot be parsed.
pub(crate) fn failure(error: &clap::Error, program: &Command, words: &[String]) -> Failure {
    let verb = verb_in(program, words);
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(all)) => Some(all.join(" ")),
        Some(_) | None => None,
    };
    let own = verb.and_then(|verb| program.find_subcommand(verb));
    if let Some(unknown) = context(ContextKind::InvalidSubcommand) {
        return own.map_or_else(|| no_such_verb(program, &unknown, words), |own| no_such_act(own, &unknown));
    }
    let wrong = context(ContextKind::InvalidArg);
    let hint = match (error.kind(), own, &wrong) {
        (ErrorKind::UnknownArgument, Some(verb), Some(wrong)) => unexpected(verb, wrong, words),
        (ErrorKind::InvalidValue, _, _) => {
            context(ContextKind::ValidValue).map(|all| format!("one of: {}", all.replace(' ', ", ")))
        }
        (ErrorKind::MissingRequiredArgument, Some(verb), Some(missing)) => left_out(verb, missing, words),
        (_, _, _) => None,
    };
    let usual = match verb {
        Some(verb) => format!("`pinfold help {verb}` shows how it is used"),
        None => "`pinfold help` lists what can be done".to_owned(),
    };
    Failure::new(Kind::Usage, message(error)).hint(hint.unwrap_or(usual))
}

/// The first line of clap's message, with the arguments it lists below.
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

/// The error for an unknown verb, naming the one probably meant.
pub(crate) fn no_such_verb(program: &Command, unknown: &str, words: &[String]) -> Failure {
    let failure = |text: String| Failure::new(Kind::Usage, text);
    if LATER.contains(&unknown) {
        return failure(format!("`{unknown}` is not in this version yet"))
            .hint("`pinfold help` lists what is");
    }
    let elsewhere = ELSEWHERE.iter().find(|(word, _)| *word == unknown).map(|(_, ours)| vec![*ours]);
    let near = elsewhere.unwrap_or_else(|| near(unknown, all_verbs(program).into_iter()));
    let meant: Vec<String> = near.iter().map(|verb| format!("`pinfold {verb}`")).collect();
    let typed = words.iter().position(|word| word == unknown).filter(|_| is_program(unknown));
    failure(format!("there is no verb `{unknown}`")).hint(match (meant.is_empty(), typed) {
        (true, Some(at)) => format!("`pinfold new -- {}` keeps a program alive", line(&words[at..])),
        (true, None) => "`pinfold help` lists what can be done".to_owned(),
        (false, _) => format!("{}?", meant.join(" or ")),
    })
}

/// The error for a verb of two words whose second word is unknown.
fn no_such_act(verb: &Command, unknown: &str) -> Failure {
    let name = verb.get_name();
    let known: Vec<&str> =
        verb.get_subcommands().map(Command::get_name).filter(|own| *own != "help").collect();
    let all = known.iter().map(|own| format!("`pinfold {name} {own}`")).collect::<Vec<_>>().join(" or ");
    let near = near(unknown, known.into_iter()).first().map(|near| format!("`pinfold {name} {near}`?"));
    Failure::new(Kind::Usage, format!("there is no `pinfold {name} {unknown}`")).hint(near.unwrap_or(all))
}

/// Words joined as a user would type them.
fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A hint for a missing argument.
fn left_out(verb: &Command, missing: &str, words: &[String]) -> Option<String> {
    let name = verb.get_name();
    if (name, missing) == ("send", "<TEXT>") {
        let session = words.last().filter(|word| !word.starts_with('-') && *word != name)?;
        return Some(format!(
            "and what? pinfold send {} 'TEXT', or `-` for what stands on stdin",
            quoted(session)
        ));
    }
    let named = ["<SESSION>", "<SESSIONS>...", "<SESSION> <TEXT>"].contains(&missing);
    named.then(|| format!("which one? `pinfold ls` lists them; `pinfold help {name}` shows how it is used"))
}

/// Known words at most two edits away and more alike than not, best first.
fn near<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let off = |word: &'a str| (strsim::osa_distance(unknown, word), word);
    let close = |(off, _): &(usize, &str)| *off <= 2 && off * 2 < unknown.chars().count().max(2);
    let mut all: Vec<(usize, &str)> = known.map(off).filter(close).collect();
    all.sort_unstable();
    let best = all.first().map_or(0, |(off, _)| *off);
    all.into_iter().filter(|(off, _)| *off == best).map(|(_, word)| word).collect()
}

/// A hint for a word or an option that a verb does not take.
fn unexpected(verb: &Command, wrong: &str, words: &[String]) -> Option<String> {
    let name = verb.get_name();
    if wrong.starts_with('-') {
        return unknown_option(verb, wrong, words);
    }
    let at = words.iter().rposition(|word| word == wrong)?;
    let first = words.iter().position(|word| word == name)?;
    if takes_command(verb) {
        // The name is optional: without one, the word in its place is the program.
        let named = words.get(first + 1..at).unwrap_or_default();
        let program = named
            .last()
            .filter(|word| named.len() == 1 && name == "new" && is_program(word) && !is_program(wrong));
        return Some(before_command(words, if program.is_some() { at - 1 } else { at }));
    }
    if name == "send" {
        let text = words.get(first + 2..).unwrap_or_default().join(" ");
        let session = words.get(first + 1)?;
        return Some(format!("put the text in quotes: pinfold send {} {}", quoted(session), quoted(&text)));
    }
    if name == "search" {
        let text = words.get(first + 1..).unwrap_or_default().join(" ");
        return Some(format!("put the words in quotes: pinfold search {}", quoted(&text)));
    }
    None
}

/// A hint for an unknown option: one that was probably meant, or an option of the program to run.
fn unknown_option(verb: &Command, wrong: &str, words: &[String]) -> Option<String> {
    let name = verb.get_name();
    let known: Vec<&str> = verb.get_arguments().filter_map(clap::Arg::get_long).collect();
    let option = wrong.trim_start_matches('-').split('=').next().unwrap_or_default();
    if wrong == "--all" && MANY.contains(&name) {
        return Some(format!("for all of them: pinfold {name} $(pinfold ls -q)"));
    }
    let meant: Vec<&str> = if !wrong.starts_with("--") {
        // A letter from another tool: suggest our options that begin with it.
        known.iter().filter(|known| known.starts_with(option) && **known != "help").copied().take(2).collect()
    } else {
        let begun = known.iter().find(|known| option.len() > 1 && known.starts_with(option)).copied();
        begun.or_else(|| near(option, known.into_iter()).first().copied()).into_iter().collect()
    };
    let program = words.iter().position(|word| word == name).and_then(|first| {
        let at = words.iter().rposition(|word| word.split('=').next() == wrong.split('=').next())?;
        (first + 1..at).find(|at| !words[*at].starts_with('-') && is_program(&words[*at]))
    });
    let command = program.filter(|_| takes_command(verb)).map(|at| before_command(words, at));
    let meant: Vec<String> = meant.iter().map(|meant| format!("`--{meant}`")).collect();
    match (meant.is_empty(), command) {
        (true, command) => command,
        (false, None) => Some(format!("{}? `pinfold help {name}` lists its options", meant.join(" or "))),
        (false, Some(command)) => Some(format!("{}? Or {command}", meant.join(" or "))),
    }
}

/// Verbs that take several sessions.
const MANY: [&str; 6] = ["start", "stop", "restart", "archive", "rm", "logs"];

fn takes_command(verb: &Command) -> bool {
    verb.get_positionals().any(clap::Arg::is_last_set)
}

fn before_command(words: &[String], at: usize) -> String {
    format!("put `--` before the command: pinfold {} -- {}", line(&words[..at]), line(&words[at..]))
}

/// Whether a word could be a program to run.
fn is_program(word: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    pinfold_kernel::program::find(word.as_ref(), &path).is_some()
}

/// The verb of a line: the first word that is neither an option nor the value of `--home`.
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
        let rows: [(&[&str], &str); 33] = [
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
            (&["show"], "which one? `pinfold ls` lists them; `pinfold help show` shows how it is used"),
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
            (&["sh", "-c", "a b"], "`pinfold new -- sh -c 'a b'` keeps a program alive"),
            (&["new", "sh", "--login"], "put `--` before the command: pinfold new -- sh --login"),
            (&["new", "x", "--model", "o"], "`--mode`? `pinfold help new` lists its options"),
            (
                &["new", "sh", "--model=o"],
                "`--mode`? Or put `--` before the command: pinfold new -- sh --model=o",
            ),
            (&["new", "x", "-d", "/tmp"], "`--dir`? `pinfold help new` lists its options"),
            (&["ls", "-l"], "`pinfold help ls` shows how it is used"),
            (&["stop", "--all"], "for all of them: pinfold stop $(pinfold ls -q)"),
            (&["stop"], "which one? `pinfold ls` lists them; `pinfold help stop` shows how it is used"),
            (&["send", "a"], "and what? pinfold send a 'TEXT', or `-` for what stands on stdin"),
            (&["search", "a", "b"], "put the words in quotes: pinfold search 'a b'"),
            (&["rename", "a"], "`pinfold help rename` shows how it is used"),
            (&["service", "instal"], "`pinfold service install`?"),
            (&["service", "start"], "`pinfold service install` or `pinfold service uninstall`"),
        ];
        for (line, expected) in rows {
            assert_eq!(hint(line), expected, "{line:?}");
        }
    }
}

//! Completions for the last word of a line being typed, from the definition of the command line.

use super::groups::all_verbs;
use super::page::{meaning, summary};
use clap::{Arg, Command, ValueHint};

/// One completion, or a kind of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Completion {
    /// This word, and its meaning.
    Word(String, String),
    /// Names that have to be looked up.
    Asked(NameLookup),
    /// Any file.
    Files,
    /// Any directory.
    Directories,
}

/// What kind of names to look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameLookup {
    /// Sessions, as arguments of this verb.
    Session(String),
    /// Agents.
    Agent,
}

/// The values of options that take one of a few words.
const WORDS: [(&str, &str); 5] = [
    ("mode", "on-demand always once"),
    ("input", "line json"),
    ("turns", "line done"),
    ("state", "idle starting running stopping backoff blocked held stopped failed archived"),
    ("states", "idle starting running stopping backoff blocked held stopped failed archived"),
];

/// Completes the last word of a line; the words before it decide what fits.
pub(crate) fn completions(program: &Command, words: &[String]) -> Vec<Completion> {
    let Some((typed, before)) = words.split_last() else { return Vec::new() };
    let all = wanted(program, typed, before);
    let fits = |candidate: &Completion| match candidate {
        Completion::Word(word, _) => word.starts_with(typed.as_str()),
        Completion::Asked(_) | Completion::Files | Completion::Directories => true,
    };
    all.into_iter().filter(fits).collect()
}

fn wanted(program: &Command, typed: &str, before: &[String]) -> Vec<Completion> {
    let Some((at, verb)) = verb_in(program, before) else {
        if let Some(option) = before.last().and_then(|word| option_of(program, word)) {
            return values(option, "");
        }
        return if typed.starts_with('-') { options(program) } else { verbs(program) };
    };
    let rest = &before[at + 1..];
    if rest.iter().any(|word| word == "--") {
        return vec![Completion::Files];
    }
    if let Some(option) = rest.last().and_then(|word| option_of(verb, word)) {
        return values(option, verb.get_name());
    }
    if typed.starts_with('-') {
        return options(verb);
    }
    let given = positions(verb, rest);
    let positional: Vec<&Arg> = verb.get_positionals().filter(|arg| !arg.is_last_set()).collect();
    let last = || positional.last().filter(|arg| is_many(arg));
    let next = positional.get(given).or_else(last).copied();
    match (verb.get_name(), next) {
        ("help" | "man", Some(_)) => verbs(program),
        (name, Some(arg)) => values(arg, name),
        (_, None) => Vec::new(),
    }
}

/// The verb of a line, and its index.
fn verb_in<'a>(program: &'a Command, words: &[String]) -> Option<(usize, &'a Command)> {
    let mut value = false;
    for (at, word) in words.iter().enumerate() {
        if !std::mem::take(&mut value) && !word.starts_with('-') {
            return program.find_subcommand(word).map(|verb| (at, verb));
        }
        value = option_of(program, word).is_some();
    }
    None
}

/// The option that a word names, if it takes a value from the next word.
fn option_of<'a>(of: &'a Command, word: &str) -> Option<&'a Arg> {
    let takes = |arg: &&Arg| arg.get_num_args().is_some_and(|count| count.takes_values());
    let named = |arg: &&Arg| match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(long), _) => arg.get_long() == Some(long),
        (None, Some(short)) => arg.get_short().is_some_and(|own| short == own.to_string()),
        (None, None) => false,
    };
    of.get_arguments().filter(takes).find(named)
}

/// How many of the words are positional arguments.
fn positions(verb: &Command, words: &[String]) -> usize {
    let mut value = false;
    let own = words.iter().filter(|word| {
        let counts = !std::mem::take(&mut value) && !word.starts_with('-');
        value = option_of(verb, word).is_some();
        counts
    });
    own.count()
}

fn is_many(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|count| count.max_values() > 1)
}

fn verbs(program: &Command) -> Vec<Completion> {
    let mut names = all_verbs(program);
    names.sort_unstable();
    let all = names.into_iter().filter_map(|name| program.find_subcommand(name));
    all.map(|verb| Completion::Word(verb.get_name().to_owned(), summary(verb))).collect()
}

fn options(of: &Command) -> Vec<Completion> {
    let shown = of.get_arguments().filter(|arg| !arg.is_hide_set());
    let long = shown.filter_map(|arg| Some(Completion::Word(format!("--{}", arg.get_long()?), meaning(arg))));
    long.collect()
}

/// The possible values of an argument.
fn values(arg: &Arg, verb: &str) -> Vec<Completion> {
    let id = arg.get_id().as_str();
    let word = |word: &str| Completion::Word(word.to_owned(), String::new());
    if (verb, id) == ("inbox", "state") {
        return ["queued", "delivered", "done", "failed"].map(word).to_vec();
    }
    if let Some((_, words)) = WORDS.iter().find(|(own, _)| *own == id) {
        let all = if verb == "purge" && id == "mode" { format!("{words} all") } else { (*words).to_owned() };
        return all.split(' ').map(word).collect();
    }
    match id {
        "session" | "sessions" | "parent" => vec![Completion::Asked(NameLookup::Session(verb.to_owned()))],
        "agent" | "check" => vec![Completion::Asked(NameLookup::Agent)],
        "resource" => vec![word("key:"), word("session:"), Completion::Directories],
        "shell" => super::shells::SHELLS.iter().map(|shell| word(shell)).collect(),
        _ => match (arg.get_possible_values(), arg.get_value_hint()) {
            (possible, _) if !possible.is_empty() => {
                possible.iter().map(|value| word(value.get_name())).collect()
            }
            (_, ValueHint::DirPath) => vec![Completion::Directories],
            (_, ValueHint::FilePath | ValueHint::AnyPath) => vec![Completion::Files],
            (_, _) => Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::definition;

    fn said(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let told = |candidate: &Completion| match candidate {
            Completion::Word(word, _) => word.clone(),
            Completion::Asked(NameLookup::Session(verb)) => format!("<session of {verb}>"),
            Completion::Asked(NameLookup::Agent) => "<agent>".to_owned(),
            Completion::Files => "<files>".to_owned(),
            Completion::Directories => "<dirs>".to_owned(),
        };
        completions(&definition(), &words).iter().map(told).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_may_stand_there_is_known_by_what_stands_before() {
        let rows = [
            ("res", "restart restore restore-backup"),
            ("--h", "--home --help"),
            ("--home ", "<dirs>"),
            ("--home /h sta", "start status"),
            ("stop ", "<session of stop>"),
            ("stop a ", "<session of stop>"),
            ("show a ", ""),
            ("show a --j", "--json"),
            ("new --mode o", "on-demand once"),
            ("new x --agent ", "<agent>"),
            ("new x --dir ", "<dirs>"),
            ("new x -- ./a", "<files>"),
            ("purge --mode a", "always all"),
            ("ls --state st", "starting stopping stopped"),
            ("answer a d", "deny"),
            ("lock k", "key: <dirs>"),
            ("completions z", "zsh"),
            ("help att", "attach"),
            ("inbox --state d", "delivered done"),
            ("inbox --state queued ", "<session of inbox>"),
        ];
        for (line, expected) in rows {
            assert_eq!(said(line), expected, "{line}");
        }
    }
}

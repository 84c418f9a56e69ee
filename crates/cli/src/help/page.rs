//! Lays out a page of help.

use super::examples::examples_of;
use super::groups::grouped;
use crate::output::{Paper, Shade, columns, wrapped};
use clap::{Arg, Command};

/// Longer lines are hard to read.
const WIDEST: usize = 100;
/// Text in fewer columns than this cannot be read.
const NARROWEST: usize = 40;
/// A longer label has its text on the next line.
const LABEL: usize = 26;

/// How detailed the help is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// For `-h`.
    Short,
    /// For `--help` and `help VERB`.
    Long,
}

/// The help page of the program or of one verb. The definition must have been built.
pub(crate) fn help_page(program: &Command, verb: Option<&str>, length: Length, paper: Paper) -> String {
    let width = paper.width().unwrap_or(WIDEST).clamp(NARROWEST, WIDEST);
    let mut page = Page { text: String::new(), width, paper };
    match verb.and_then(|verb| program.find_subcommand(verb)) {
        Some(verb) => page.verb(verb, length),
        None => page.program(program),
    }
    page.text
}

struct Page {
    text: String,
    width: usize,
    paper: Paper,
}

impl Page {
    fn program(&mut self, program: &Command) {
        self.about(program, Length::Short);
        self.text.push_str("\nUsage: pinfold [OPTIONS] VERB ...\n");
        for (group, verbs) in grouped(program) {
            self.head(group);
            let rows: Vec<(String, String)> =
                verbs.iter().map(|verb| (verb.get_name().to_owned(), summary(verb))).collect();
            self.rows(&rows);
        }
        self.options("Options", program.get_arguments());
        self.text.push_str("\n`pinfold help VERB` says more about one.\n");
    }

    fn verb(&mut self, verb: &Command, length: Length) {
        self.about(verb, length);
        let usage = verb.clone().render_usage().to_string();
        let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
        self.text.push('\n');
        for (number, line) in wrapped(usage, self.width.saturating_sub(9)).iter().enumerate() {
            self.text.push_str(if number == 0 { "Usage: " } else { "         " });
            self.text.push_str(line);
            self.text.push('\n');
        }
        let shown = || verb.get_arguments().filter(|arg| !arg.is_hide_set());
        self.options("Arguments", shown().filter(|arg| arg.is_positional()));
        self.options("Options", shown().filter(|arg| !arg.is_positional() && !is_general(arg)));
        self.second_words(verb);
        self.options("Global options", shown().filter(|arg| is_general(arg)));
        let examples = examples_of(verb.get_name());
        if !examples.is_empty() {
            self.head("Examples");
        }
        for (line, meaning) in examples {
            self.text.push_str(&format!("  {line}\n"));
            let meaning = self.paper.paint(meaning, Shade::Faint).into_owned();
            self.text.push_str(&format!("      {meaning}\n"));
        }
    }

    /// The second words of a verb, as in `service install`, with what each takes.
    fn second_words(&mut self, verb: &Command) {
        let words: Vec<&Command> = second_words(verb).collect();
        if words.is_empty() {
            return;
        }
        self.head("Commands");
        let rows: Vec<(String, String)> =
            words.iter().map(|word| (word.get_name().to_owned(), summary(word))).collect();
        self.rows(&rows);
        for word in words {
            let own = word.get_arguments().filter(|arg| !is_general(arg));
            self.options(&format!("Options of {}", word.get_name()), own);
        }
    }

    fn about(&mut self, of: &Command, length: Length) {
        let long = of.get_long_about().filter(|_| length == Length::Long);
        let about = long.or_else(|| of.get_about()).map(ToString::to_string).unwrap_or_default();
        for line in wrapped(&about, self.width) {
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    fn head(&mut self, words: &str) {
        let head = self.paper.paint(&format!("{words}:"), Shade::Good).into_owned();
        self.text.push_str(&format!("\n{head}\n"));
    }

    fn options<'a>(&mut self, head: &str, arguments: impl Iterator<Item = &'a Arg>) {
        let rows: Vec<(String, String)> =
            arguments.filter(|arg| !arg.is_hide_set()).map(|arg| (label(arg), meaning(arg))).collect();
        if !rows.is_empty() {
            self.head(head);
            self.rows(&rows);
        }
    }

    /// Labels on the left, with their meanings beside them.
    fn rows(&mut self, rows: &[(String, String)]) {
        let fitting = rows.iter().map(|(label, _)| columns(label)).filter(|width| *width <= LABEL);
        let column = fitting.max().unwrap_or(LABEL);
        for (label, text) in rows {
            let lines = wrapped(text, self.width.saturating_sub(column + 4));
            let below = columns(label) > column;
            self.text.push_str(&format!("  {label}"));
            for (number, line) in lines.iter().enumerate() {
                let blanks = match (number, below) {
                    (0, false) => column - columns(label) + 2,
                    (0, true) | (_, _) => column + 4,
                };
                if number > 0 || below {
                    self.text.push('\n');
                }
                self.text.push_str(&" ".repeat(blanks));
                self.text.push_str(line);
            }
            self.text.truncate(self.text.trim_end().len());
            self.text.push('\n');
        }
    }
}

/// Whether every verb takes an argument; clap's own `help` and `version` count.
pub(super) fn is_general(arg: &Arg) -> bool {
    arg.is_global_set() || ["help", "version"].contains(&arg.get_id().as_str())
}

/// The words that may follow a verb.
pub(super) fn second_words(verb: &Command) -> impl Iterator<Item = &Command> {
    verb.get_subcommands().filter(|word| !word.is_hide_set() && word.get_name() != "help")
}

/// What a verb does, in one line.
pub(super) fn summary(verb: &Command) -> String {
    verb.get_about().map(ToString::to_string).unwrap_or_default()
}

/// An argument as the user writes it.
pub(super) fn label(arg: &Arg) -> String {
    let names: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let optional = arg.get_num_args().is_some_and(|count| count.min_values() == 0);
    let takes = arg.get_num_args().is_some_and(|count| count.takes_values());
    let value = match (takes, optional) {
        (false, _) => String::new(),
        (true, false) => names.join(" "),
        (true, true) => format!("[{}]", names.join(" ")),
    };
    if arg.is_positional() {
        let many = arg.get_num_args().is_some_and(|count| count.max_values() > 1);
        return format!("{}{}", names.join(" "), if many { "..." } else { "" });
    }
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let both = match (short, long) {
        (Some(short), Some(long)) => format!("{short}, {long}"),
        (Some(short), None) => short,
        (None, long) => format!("    {}", long.unwrap_or_default()),
    };
    format!("{both} {value}").trim_end().to_owned()
}

/// What an argument is for, with its possible values and its default.
pub(super) fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let possible: Vec<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let takes = arg.get_num_args().is_some_and(|count| count.takes_values());
    if takes && !possible.is_empty() {
        text.push_str(&format!(" [possible values: {}]", possible.join(", ")));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes && !defaults.is_empty() {
        text.push_str(&format!(" [default: {}]", defaults.join(" ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::definition;
    use crate::help::all_verbs;

    #[test]
    fn no_line_of_any_page_is_wider_than_the_terminal() {
        let program = definition();
        for width in [60, 80, 200] {
            let paper = Paper::of(false, Some(width));
            let pages = all_verbs(&program).into_iter().map(Some).chain([None]);
            for verb in pages {
                let page = help_page(&program, verb, Length::Long, paper);
                // An example is a line to copy and is never broken.
                let lines = page.lines().filter(|line| !line.starts_with("  pinfold "));
                for line in lines.filter(|line| columns(line) > width.min(WIDEST)) {
                    assert!(line.trim().split(' ').count() == 1, "{verb:?} at {width}: {line}");
                }
            }
        }
    }

    #[test]
    fn words_that_follow_a_verb_are_listed_with_their_options() {
        let page = help_page(&definition(), Some("service"), Length::Long, Paper::endless());
        let (_, words) = page.split_once("Commands:").unwrap();
        assert!(words.contains("  install ") && words.contains("  uninstall "), "{page}");
        let (_, options) = words.split_once("Options of install:").unwrap();
        assert!(options.contains("--linger") && options.contains("--print"), "{page}");
    }

    #[test]
    fn options_of_a_verb_stand_apart_from_those_of_all() {
        let page = help_page(&definition(), Some("ls"), Length::Long, Paper::endless());
        let (own, general) = page.split_once("Global options:").unwrap();
        assert!(own.contains("--state STATE") && !own.contains("--home"), "{page}");
        assert!(general.contains("--home DIR") && general.contains("Examples:"), "{page}");
    }
}

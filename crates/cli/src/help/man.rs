//! Man pages, in roff.

use super::examples::examples_of;
use super::groups::grouped;
use super::page::{is_general, label, meaning, second_words, summary};
use clap::{Arg, Command};

/// All pages, each with its file name.
pub(crate) fn all_pages(program: &Command) -> Vec<(String, String)> {
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set());
    let of_verbs = verbs
        .map(|verb| (format!("pinfold-{}.1", verb.get_name()), man_page(program, Some(verb.get_name()))));
    [("pinfold.1".to_owned(), man_page(program, None))].into_iter().chain(of_verbs).collect()
}

/// The page of the program, or of one verb.
pub(crate) fn man_page(program: &Command, verb: Option<&str>) -> String {
    let found = verb.and_then(|verb| program.find_subcommand(verb));
    let name = found.map_or("pinfold".to_owned(), |verb| format!("pinfold-{}", verb.get_name()));
    let of = found.unwrap_or(program);
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(".TH {} 1 \"\" \"pinfold {version}\"\n", name.to_uppercase());
    text.push_str(&format!(".SH NAME\n{} \\- {}\n", escaped(&name), escaped(&summary(of))));
    let usage = match found {
        Some(verb) => verb.clone().render_usage().to_string(),
        None => "Usage: pinfold [OPTIONS] VERB ...".to_owned(),
    };
    text.push_str(&format!(".SH SYNOPSIS\n{}\n", escaped(usage.trim_start_matches("Usage: "))));
    if let Some(long) = of.get_long_about() {
        text.push_str(&format!(
            ".SH DESCRIPTION\n{}\n",
            escaped(&long.to_string()).replace("\n\n", "\n.PP\n")
        ));
    }
    match found {
        Some(verb) => of_verb(&mut text, verb),
        None => of_program(&mut text, program),
    }
    text
}

fn of_verb(text: &mut String, verb: &Command) {
    let shown = || verb.get_arguments().filter(|arg| !arg.is_hide_set());
    section(text, "ARGUMENTS", shown().filter(|arg| arg.is_positional()));
    section(text, "OPTIONS", shown().filter(|arg| !arg.is_positional() && !is_general(arg)));
    for word in second_words(verb) {
        text.push_str(&format!(".SH {}\n{}\n", word.get_name().to_uppercase(), escaped(&summary(word))));
        let own = word.get_arguments().filter(|arg| !arg.is_hide_set() && !is_general(arg));
        section(text, &format!("OPTIONS OF {}", word.get_name().to_uppercase()), own);
    }
    section(text, "GLOBAL OPTIONS", shown().filter(|arg| is_general(arg)));
    text.push_str(".SH EXAMPLES\n");
    for (line, meaning) in examples_of(verb.get_name()) {
        text.push_str(&format!(".TP\n.B {}\n{}\n", escaped(line), escaped(meaning)));
    }
    text.push_str(".SH SEE ALSO\n.BR pinfold (1)\n");
}

fn of_program(text: &mut String, program: &Command) {
    for (group, verbs) in grouped(program) {
        text.push_str(&format!(".SH {}\n", group.to_uppercase()));
        for verb in verbs {
            text.push_str(&format!(
                ".TP\n.BR pinfold-{} (1)\n{}\n",
                verb.get_name(),
                escaped(&summary(verb))
            ));
        }
    }
    section(text, "OPTIONS", program.get_arguments().filter(|arg| !arg.is_hide_set()));
}

fn section<'a>(text: &mut String, head: &str, arguments: impl Iterator<Item = &'a Arg>) {
    let rows: Vec<String> = arguments
        .map(|arg| format!(".TP\n.B {}\n{}\n", escaped(label(arg).trim()), escaped(&meaning(arg))))
        .collect();
    if !rows.is_empty() {
        text.push_str(&format!(".SH {head}\n{}", rows.concat()));
    }
}

/// Escapes what roff would interpret.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = text
        .lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::definition;

    #[test]
    fn every_verb_has_a_page_and_no_text_is_taken_for_a_request() {
        let program = definition();
        let pages = all_pages(&program);
        assert!(pages.len() > 30 && pages.iter().any(|(name, _)| name == "pinfold-new.1"));
        let requests = [".TH ", ".SH ", ".TP", ".B ", ".BR ", ".PP"];
        for (name, page) in pages {
            for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
                assert!(requests.iter().any(|request| line.starts_with(request)), "{name}: {line}");
            }
        }
        assert_eq!(escaped(".hidden\n'quoted' a\\b --x"), "\\&.hidden\n\\&'quoted' a\\eb \\-\\-x");
    }
}

//! The verbs, from the program's help.

use super::{check, made_from};
use crate::program::{groups, helps, said};

/// A verb's help without the options that every verb has, which the page lists once at its top.
fn own(help: &str) -> String {
    let mut general = false;
    let lines = help.lines().filter(|line| {
        general = *line == "Global options:" || (general && !line.is_empty());
        !general
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    text.replace("\n\n\n", "\n\n").trim().to_owned()
}

fn page() -> String {
    let mut page = "# Verbs\n\n".to_owned();
    page.push_str(&made_from("the definition of the command line"));
    page.push_str("What `pinfold help VERB` prints, for all of them. [Exit codes and errors](../errors.md) are the same for every verb.\n");
    let helps = helps();
    for (group, verbs) in groups() {
        page.push_str(&format!("\n**{group}**\n\n| verb | does |\n|---|---|\n"));
        for (verb, summary) in verbs {
            page.push_str(&format!("| [`{verb}`](#{verb}) | {} |\n", summary.replace('|', "\\|")));
        }
    }
    let program = said(&["--help"]);
    let options = program.split("\nOptions:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    page.push_str(&format!("\n## Options of every verb\n\n```text\n{options}\n```\n"));
    for (_, verbs) in groups() {
        for (verb, _) in verbs {
            page.push_str(&format!("\n## {verb}\n\n```text\n{}\n```\n", own(&helps[&verb])));
        }
    }
    page
}

#[test]
fn the_page_of_verbs_is_what_the_program_says() {
    check("verbs.md", &page());
}

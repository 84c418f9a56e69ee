//! Command lines that are not run, in blocks and in the text, use only verbs and options that exist.

use crate::page::pages;
use crate::program::{groups, helps, said};
use std::collections::BTreeMap;

/// All options of the program and of each verb.
struct Known {
    general: Vec<String>,
    verbs: BTreeMap<String, Vec<String>>,
}

fn options(help: &str) -> Vec<String> {
    let words = help.split(|c: char| c.is_whitespace() || ",.;:`()[]=|".contains(c));
    words.filter(|word| word.starts_with('-') && word.len() > 1).map(str::to_owned).collect()
}

fn known() -> Known {
    let verbs = helps().into_iter().map(|(verb, help)| (verb, options(&help))).collect();
    Known { general: options(&said(&["--help"])), verbs }
}

/// What is wrong with a command line of pinfold.
fn wrong(known: &Known, line: &str) -> Option<String> {
    let (line, _) = line.split_once(" -- ").unwrap_or((line, ""));
    let (line, _) = line.split_once(['|', '>', '#', '&', ';']).unwrap_or((line, ""));
    let mut words = line.split_whitespace().skip_while(|word| *word != "pinfold").skip(1).peekable();
    let mut takes_value = false;
    let verb = words.find(|word| {
        let is_verb = !word.starts_with('-') && !takes_value;
        takes_value = *word == "--home";
        is_verb
    })?;
    // `VERB` and `...` stand for any verb.
    if !verb.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let Some(own) = known.verbs.get(verb) else { return Some(format!("there is no verb `{verb}`")) };
    let mut options = words.filter(|word| word.starts_with('-') && word.len() > 1 && *word != "--");
    let is_known = |word: &str| {
        let name = word.split('=').next().unwrap_or(word).trim_end_matches(['.', ',', ']']).to_owned();
        own.contains(&name) || known.general.contains(&name)
    };
    options.find(|word| !is_known(word)).map(|word| format!("`{verb}` has no `{word}`"))
}

/// Whether a page is checked. The others quote other people's words, or name verbs because they do not exist.
fn is_ours(page: &str) -> bool {
    !page.starts_with("docs/design/") && !page.starts_with("CHANGELOG")
}

#[test]
fn verbs_and_options_exist_wherever_they_are_named() {
    let known = known();
    let mut faults = Vec::new();
    for page in pages().iter().filter(|page| is_ours(&page.name())) {
        let prose = page.prose();
        let codes = prose.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let inline = codes.filter(|code| code.starts_with("pinfold "));
        let blocks = page.blocks();
        let in_blocks =
            blocks.iter().filter(|block| block.has_commands()).flat_map(|block| block.text.lines());
        let in_blocks = in_blocks.map(|line| line.trim().trim_start_matches("$ "));
        for line in inline.chain(in_blocks.filter(|line| line.starts_with("pinfold "))) {
            faults.extend(wrong(&known, line).map(|fault| format!("{}: {line}: {fault}", page.name())));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_wrong_word_is_noticed() {
    let known = known();
    assert_eq!(wrong(&known, "pinfold --home x ls -q --state failed"), None);
    assert_eq!(wrong(&known, "pinfold lock key:x -- sleep --nothing"), None);
    assert_eq!(wrong(&known, "pinfold lss"), Some("there is no verb `lss`".to_owned()));
    assert_eq!(wrong(&known, "pinfold ls --stat x"), Some("`ls` has no `--stat`".to_owned()));
    assert!(groups().iter().any(|(group, _)| group == "Locks"));
}

#[test]
fn command_lines_stand_in_blocks_that_are_looked_at() {
    let plain = |line: &str| line.starts_with("pinfold ") || line.starts_with("$ pinfold ");
    let mut faults = Vec::new();
    for page in pages().iter().filter(|page| is_ours(&page.name())) {
        let blocks = page.blocks().into_iter().filter(|block| !block.has_commands());
        let unmarked = blocks.filter(|block| block.mark("not run").is_none());
        faults.extend(
            unmarked
                .filter(|block| block.text.lines().any(plain))
                .map(|block| format!("{}:{}", page.name(), block.line)),
        );
    }
    assert!(faults.is_empty(), "make these `sh` or `console`, or say why they are not run: {faults:?}");
}

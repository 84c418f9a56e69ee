//! Help texts, the version, and command lines that cannot be parsed.

use super::coverage::verbs;
use super::stage::Stage;

#[test]
fn the_help_of_the_program_and_of_every_verb() {
    let stage = Stage::new("help");
    stage.case("program", &[&["-h"], &["--help"]]);
    stage.case("version_flag", &[&["-V"], &["--version"], &["--json", "--version"]]);
    stage.case("nothing", &[&[], &["--json"], &["--quiet"]]);
    stage.case("word_help", &[&["help"], &["help", "ls"], &["--json", "help"]]);
    stage.both("version_verb", &["version"]);
    for shell in ["bash", "zsh", "fish"] {
        stage.case(&format!("completions_{shell}"), &[&["completions", shell]]);
    }
    stage.case("completions_json", &[&["--json", "completions", "fish"]]);
    stage.both("completions_of_what", &["completions", "tcsh"]);
    stage.case("man_of_the_program", &[&["man"]]);
    stage.case("man_of_a_verb", &[&["man", "stop"], &["--json", "man", "version"]]);
    stage.both("man_of_what", &["man", "tui"]);
    stage.both("help_of_what", &["help", "shwo"]);
    for verb in verbs(&stage) {
        stage.case(&verb, &[&[&verb, "-h"], &[&verb, "--help"]]);
    }
    stage.done();
}

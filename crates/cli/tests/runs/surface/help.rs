//! Help texts, the version, and lines that cannot be read.

use super::coverage::verbs;
use super::stage::Stage;

#[test]
fn the_help_of_the_program_and_of_every_verb() {
    let stage = Stage::new("help");
    stage.case("program", &[&["-h"], &["--help"]]);
    stage.case("version", &[&["-V"], &["--version"], &["--json", "--version"]]);
    stage.case("nothing", &[&[], &["--json"], &["--quiet"]]);
    stage.case("word_help", &[&["help"], &["help", "ls"], &["--json", "help"]]);
    for verb in verbs(&stage) {
        stage.case(&verb, &[&[&verb, "-h"], &[&verb, "--help"]]);
    }
    stage.done();
}

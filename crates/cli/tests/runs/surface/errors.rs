//! What every verb says when it cannot do what it was asked for.

use super::coverage::verbs;
use super::stage::Stage;

#[test]
fn a_line_that_cannot_be_read() {
    let stage = Stage::new("usage");
    for verb in verbs(&stage) {
        stage.both(&format!("{verb}_unknown_option"), &[&verb, "--no-such-option"]);
    }
    stage.done();
}

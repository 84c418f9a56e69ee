//! Files and, in the core, functions stay small: what is over the limit is split, not explained.

use std::path::Path;

use crate::lex::{Token, tokens};
use crate::module::closing;
use crate::sources::Sources;

const FILE: usize = 600;
const FUNCTION: usize = 60;

/// One line for each file or function that is too large.
pub(crate) fn too_large(sources: &Sources) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources {
        let lines = text.lines().count();
        if lines > FILE {
            found.push(format!("{} has {lines} lines, over {FILE}", path.display()));
        }
        if path.starts_with("crates/core") {
            found.extend(long_functions(path, text));
        }
    }
    found
}

fn long_functions(path: &Path, text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "fn") {
        let lines = last_line(&tokens[at..]).saturating_sub(token.line);
        if lines > FUNCTION {
            let name = tokens.get(at + 1).map_or("", |name| name.text.as_str());
            found.push(format!(
                "{}:{}: fn {name} has {lines} lines, over {FUNCTION}",
                path.display(),
                token.line
            ));
        }
    }
    found
}

/// The line where the function ends that begins here; one without a body ends at its semicolon.
fn last_line(function: &[Token]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in function.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "{" if depth == 0 => {
                let end = at + closing(&function[at..]);
                return function.get(end).map_or(token.line, |brace| brace.line);
            }
            ";" if depth == 0 => return token.line,
            _ => {}
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: String) -> Vec<String> {
        too_large(&Sources::from([(path.into(), text)]))
    }

    #[test]
    fn a_file_over_the_limit_is_named() {
        assert_eq!(found("crates/api/src/a.rs", "\n".repeat(600)), Vec::<String>::new());
        let says = found("crates/api/src/a.rs", "\n".repeat(601));
        assert_eq!(says, ["crates/api/src/a.rs has 601 lines, over 600"]);
    }

    #[test]
    fn a_function_of_the_core_over_the_limit_is_named() {
        let function =
            |lines: usize| format!("fn short([u8; 3]);\nfn long(x: [u8; 3]) {{{}}}\n", "\n".repeat(lines));
        assert_eq!(found("crates/core/src/a.rs", function(60)), Vec::<String>::new());
        let says = found("crates/core/src/a.rs", function(61));
        assert_eq!(says, ["crates/core/src/a.rs:2: fn long has 61 lines, over 60"]);
    }
}

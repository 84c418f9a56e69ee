//! Files and functions stay small, those of tests as well: what is over the limit is split, not excused.

use std::path::Path;

use crate::lex::{Token, tokens};
use crate::module::closing;
use crate::sources::Sources;

// The longest there were when the limits were set: no model that was read has a shorter tail.
pub(crate) const FILE: usize = 541;
pub(crate) const FUNCTION: usize = 53;

/// One line for each file or function that is too large.
pub(crate) fn too_large(sources: &Sources) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources {
        let lines = text.lines().count();
        if lines > FILE {
            found.push(format!("{} has {lines} lines, over {FILE}", path.display()));
        }
        found.extend(long_functions(path, text));
    }
    found
}

fn long_functions(path: &Path, text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "fn") {
        // Without a name it is a function pointer type.
        let Some(name) = tokens.get(at + 1).map(|name| &name.text).filter(|name| *name != "(") else {
            continue;
        };
        let lines = last_line(&tokens[at..]).map_or(1, |last| last + 1 - token.line);
        if lines > FUNCTION {
            found.push(format!(
                "{}:{}: fn {name} has {lines} lines, over {FUNCTION}",
                path.display(),
                token.line
            ));
        }
    }
    found
}

/// The last line of the function that begins here; one without a body ends at its semicolon.
fn last_line(function: &[Token]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in function.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "{" if depth == 0 => {
                let end = at + closing(&function[at..]);
                return function.get(end).map(|brace| brace.line);
            }
            ";" if depth == 0 => return Some(token.line),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: String) -> Vec<String> {
        too_large(&Sources::from([(path.into(), text)]))
    }

    #[test]
    fn a_file_over_the_limit_is_named() {
        assert_eq!(found("crates/api/src/a.rs", "\n".repeat(541)), Vec::<String>::new());
        let says = found("crates/api/src/a.rs", "\n".repeat(542));
        assert_eq!(says, ["crates/api/src/a.rs has 542 lines, over 541"]);
    }

    #[test]
    fn a_function_over_the_limit_is_named_wherever_it_is() {
        // From the line with its name to that of its closing brace.
        let function = |lines: usize| {
            format!("fn short([u8; 3]);\nfn long(x: [u8; 3]) {{{}}}\n", "\n".repeat(lines - 1))
        };
        for path in ["crates/core/src/a.rs", "crates/cli/tests/runs/a.rs", "bench/src/a.rs"] {
            assert_eq!(found(path, function(53)), Vec::<String>::new());
            let says = found(path, function(54));
            assert_eq!(says, [format!("{path}:2: fn long has 54 lines, over 53")]);
        }
    }

    #[test]
    fn the_type_of_a_function_has_no_length() {
        let field = format!("struct A {{ f: fn(u8) -> u8,{}}}", "\n".repeat(60));
        assert_eq!(found("crates/api/src/a.rs", field), Vec::<String>::new());
    }
}

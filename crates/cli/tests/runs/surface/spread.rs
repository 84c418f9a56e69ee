//! JSON on several lines, so that a change of one field is a change of one line.

/// Breaks a JSON text into lines around its values. Nothing is parsed, left out or reordered: without the
/// breaks and the blanks after them it is the text that was printed.
pub(super) fn spread(text: &str) -> String {
    let mut lines = Lines { out: String::with_capacity(text.len() * 2), depth: 0 };
    let mut inside = false;
    let mut escaped = false;
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        if inside {
            lines.out.push(letter);
            inside = letter != '"' || escaped;
            escaped = letter == '\\' && !escaped;
            continue;
        }
        inside = letter == '"';
        lines.put(letter, rest.peek().copied());
    }
    lines.out
}

struct Lines {
    out: String,
    depth: usize,
}

impl Lines {
    /// Writes one character outside of a string, given the next one.
    fn put(&mut self, letter: char, next: Option<char>) {
        let empty = |close| next == Some(close);
        match letter {
            '{' | '[' => {
                self.out.push(letter);
                self.depth += 1;
                if !empty('}') && !empty(']') {
                    self.break_line();
                }
            }
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                if !self.out.ends_with(['{', '[']) {
                    self.break_line();
                }
                self.out.push(letter);
            }
            ',' => {
                self.out.push(letter);
                self.break_line();
            }
            _ => self.out.push(letter),
        }
    }

    fn break_line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.depth));
    }
}

#[test]
fn a_value_is_broken_into_lines_and_nothing_else_changes() {
    let text = r#"{"b":[1,{"a":"x, {y\"}"}],"e":{},"f":[]}"#;
    let lines = [
        "{",
        "  \"b\":[",
        "    1,",
        "    {",
        r#"      "a":"x, {y\"}""#,
        "    }",
        "  ],",
        "  \"e\":{},",
        "  \"f\":[]",
        "}",
    ];
    assert_eq!(spread(text), lines.join("\n"));
}

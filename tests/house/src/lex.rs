//! Cuts Rust source into words and marks, without comments, strings and characters. It knows just enough of
//! the language to find paths, `mod` and `use`; it is not a parser.

/// A word, `::`, or one mark, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// Cuts a file into tokens.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut reader = Reader { rest: source, line: 1, found: Vec::new() };
    while reader.step() {}
    reader.found
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    found: Vec<Token>,
}

impl Reader<'_> {
    /// Takes the next token; `false` at the end of the file.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        if self.rest.starts_with("//") {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.skip(block_comment(self.rest));
        } else if let Some(length) = literal(self.rest) {
            self.skip(length);
        } else if first.is_alphabetic() || first == '_' {
            self.take(word(self.rest));
        } else if self.rest.starts_with("::") {
            self.take(2);
        } else if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else {
            self.take(first.len_utf8());
        }
        true
    }

    fn take(&mut self, length: usize) {
        self.found.push(Token { text: self.rest[..length].to_owned(), line: self.line });
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        self.line += self.rest[..length].matches('\n').count();
        self.rest = &self.rest[length..];
    }
}

fn word(text: &str) -> usize {
    text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len())
}

/// The length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let here = &text[at..];
        if here.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of the string, character, lifetime or number that the text begins with.
fn literal(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if first.is_ascii_digit() {
        return Some(word(text));
    }
    if first == '\'' {
        return Some(quote(text));
    }
    if text.starts_with("b'") {
        return Some(1 + quote(&text[1..]));
    }
    let mut prefixes = ["", "b", "c", "r", "br", "cr"].into_iter();
    prefixes.find_map(|prefix| opened(text, prefix))
}

/// The length of a string with this prefix, raw or not.
fn opened(text: &str, prefix: &str) -> Option<usize> {
    let rest = text.strip_prefix(prefix)?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    if !rest[hashes..].starts_with('"') || (hashes > 0 && !prefix.ends_with('r')) {
        return None;
    }
    let body = &rest[hashes + 1..];
    let length = if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        body.find(&end).map_or(body.len(), |at| at + end.len())
    } else {
        until_unescaped(body, '"')
    };
    Some(prefix.len() + hashes + 1 + length)
}

/// The length up to and including this mark, if no backslash precedes it.
fn until_unescaped(body: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, letter) in body.char_indices() {
        if !escaped && letter == mark {
            return at + letter.len_utf8();
        }
        escaped = !escaped && letter == '\\';
    }
    body.len()
}

/// The length of a character or the name of a lifetime: only a character ends with a quote.
fn quote(text: &str) -> usize {
    let rest = &text[1..];
    let mut letters = rest.chars();
    match (letters.next(), letters.next()) {
        (Some('\\'), _) => 1 + until_unescaped(rest, '\''),
        (Some(letter), Some('\'')) => 1 + letter.len_utf8() + 1,
        _ => 1 + word(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        tokens(source).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_strings_and_characters_say_nothing() {
        let source = "a // crate::b\n/* c /* d */ */ \"e\\\" f\" r#\"g \" h\"# 'i' '\\'' b'\"' 'life j";
        assert_eq!(words(source), ["a", "j"]);
    }

    #[test]
    fn lines_are_counted_through_what_is_skipped() {
        let found = tokens("\"\n\n\"\n/*\n*/ here");
        assert_eq!(found, [Token { text: "here".into(), line: 5 }]);
    }

    #[test]
    fn a_path_is_words_and_double_colons() {
        assert_eq!(words("crate::a::b(x)"), ["crate", "::", "a", "::", "b", "(", "x", ")"]);
    }
}

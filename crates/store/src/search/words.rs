//! Words: how a text is split into them, for the index, for queries, and for what is shown.

/// What to search for: each word, or beginning of one, must occur. Words that are written together
/// (`src/main.rs`) must occur together. Case does not matter; anything that is not a letter or a digit only separates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchWords {
    phrases: Vec<Vec<String>>,
    /// The query as typed, in lower case: for names, which are searched as a whole.
    typed: String,
}

impl SearchWords {
    /// Reads what a person typed. No character has a special meaning.
    #[must_use]
    pub fn new(text: &str) -> SearchWords {
        let phrases = text.split_whitespace().map(|word| tokens(word).map(|token| token.word).collect());
        let phrases = phrases.filter(|phrase: &Vec<String>| !phrase.is_empty()).collect();
        SearchWords { phrases, typed: text.trim().to_lowercase() }
    }

    /// Whether there is nothing that could be found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.phrases.is_empty()
    }

    /// Returns the FTS5 query, each word prefixed with a mark, or `None` if there are no words. Every word is
    /// quoted: none of it is syntax. If there are several, the longest, which is probably the rarest, is also
    /// returned alone.
    pub(super) fn query(&self, mark: &str) -> Option<(String, Option<String>)> {
        let marked = |word: &String| format!("{mark}{word}");
        let quoted = |phrase: &Vec<String>| {
            format!("\"{}\" *", phrase.iter().map(marked).collect::<Vec<_>>().join(" "))
        };
        let longest =
            self.phrases.iter().max_by_key(|phrase| phrase.iter().map(String::len).sum::<usize>())?;
        let all: Vec<String> = self.phrases.iter().map(quoted).collect();
        Some((all.join(" AND "), (all.len() > 1).then(|| quoted(longest))))
    }

    /// Whether a name matches: it has all of them as words, or contains what was typed.
    pub(super) fn are_in_name(&self, name: &str) -> bool {
        !self.is_empty() && (name.to_lowercase().contains(&self.typed) || self.found_in(name).is_some())
    }

    /// Returns where the first of them is in a text that has all of them, and how often they occur.
    pub(super) fn found_in(&self, text: &str) -> Option<MatchPlace> {
        let tokens: Vec<Token> = tokens(text).collect();
        let (mut at, mut times) = (None, 0);
        for phrase in &self.phrases {
            let mut places = (0..tokens.len()).filter(|from| begins_with(&tokens[*from..], phrase));
            let first = places.next()?;
            times += 1 + places.count();
            let range = (tokens[first].from, tokens[first + phrase.len() - 1].to);
            at = at.min(Some(range)).or(Some(range));
        }
        at.map(|(from, to)| MatchPlace { from, to, times })
    }
}

/// Where something was found in a text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MatchPlace {
    pub(super) from: usize,
    pub(super) to: usize,
    /// How often it occurs in all.
    pub(super) times: usize,
}

/// The last word of a phrase may be the beginning of a word.
fn begins_with(tokens: &[Token], phrase: &[String]) -> bool {
    let Some((last, before)) = phrase.split_last() else { return false };
    tokens.len() >= phrase.len()
        && before.iter().zip(tokens).all(|(wanted, token)| *wanted == token.word)
        && tokens[before.len()].word.starts_with(last.as_str())
}

/// One word of a text, and where it is.
struct Token {
    word: String,
    from: usize,
    to: usize,
}

/// Returns a text as it is given to the index: the words of its first bytes, separated by spaces, each
/// prefixed with a mark.
pub(super) fn folded(text: &str, most: usize, mark: &str) -> String {
    let text = &text[..text.floor_char_boundary(most)];
    let mut folded = String::with_capacity(2 * text.len() + 16);
    for token in tokens(text) {
        folded.push_str(mark);
        folded.push_str(&token.word);
        folded.push(' ');
    }
    folded
}

fn tokens(text: &str) -> impl Iterator<Item = Token> {
    let mut letters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (from, first) = letters.find(|(_, letter)| letter.is_alphanumeric())?;
        let mut to = from + first.len_utf8();
        if !stands_alone(first) {
            while let Some((at, letter)) =
                letters.next_if(|(_, letter)| letter.is_alphanumeric() && !stands_alone(*letter))
            {
                to = at + letter.len_utf8();
            }
        }
        Some(Token { word: text[from..to].to_lowercase(), from, to })
    })
}

/// Scripts without spaces between words: each letter is a word, and a query is a sequence of them.
fn stands_alone(letter: char) -> bool {
    matches!(letter,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{2E80}'..='\u{9FFF}' | '\u{A960}'..='\u{A97F}' | '\u{AC00}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(sought: &str, text: &str) -> bool {
        SearchWords::new(sought).found_in(text).is_some()
    }

    #[test]
    fn what_is_found_and_what_is_not() {
        let text = "Fix src/main.rs: the RuntimeError is über-bad, 日本語のテキスト";
        for sought in [
            "fix", "MAIN.RS", "src/main", "runtime", "error is", "über", "ÜBER", "本語", "fix bad", "bad fix",
        ] {
            let words = SearchWords::new(sought);
            assert_eq!(words.found_in(text).is_some(), sought != "error is", "{sought}");
        }
        for sought in ["ix", "main.c", "rs/src", "uber", "語本", "fix good", "!!!", "", "\" OR \""] {
            assert!(!finds(sought, text), "{sought}");
        }
    }

    #[test]
    fn nothing_that_is_typed_is_syntax() {
        let rows = [
            ("fix", Some("\"fix\" *")),
            ("a\"b", Some("\"a b\" *")),
            ("NEAR(a b)", Some("\"near a\" * AND \"b\" *")),
            ("text:x OR -y*", Some("\"text x\" * AND \"or\" * AND \"y\" *")),
            ("日本", Some("\"日 本\" *")),
            ("\"*^()", None),
        ];
        for (typed, query) in rows {
            assert_eq!(SearchWords::new(typed).query("").map(|(all, _)| all).as_deref(), query, "{typed}");
        }
    }

    #[test]
    fn the_first_place_and_how_often() {
        let place = SearchWords::new("b a").found_in("xx A b a").unwrap();
        assert_eq!((place.from, place.to, place.times), (3, 4, 3));
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!(folded("Ab-cd", 100, ""), "ab cd ");
        assert_eq!(folded("Ab-cd", 100, "0f"), "0fab 0fcd ");
        assert_eq!(folded("aé", 2, ""), "a ");
    }
}

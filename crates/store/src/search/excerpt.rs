//! What is shown of a text: one line around the match.

use super::SEARCHED;
use super::words::SearchWords;

/// How many letters to show before and after the match.
const AROUND: usize = 60;

/// Returns a line around the first of the words, if the text has all of them. Whatever could move a cursor
/// becomes a space.
pub(super) fn excerpt(text: &str, words: &SearchWords) -> Option<String> {
    let text = &text[..text.floor_char_boundary(SEARCHED)];
    let place = words.found_in(text)?;
    let before = text[..place.from].char_indices().rev().take(AROUND).last().map_or(place.from, |(at, _)| at);
    let after = text[place.to..].char_indices().nth(AROUND).map_or(text.len(), |(at, _)| place.to + at);
    let mut line = String::with_capacity(after - before + 6);
    if before > 0 {
        line.push('…');
    }
    for word in text[before..after].split(|letter: char| letter.is_whitespace() || letter.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() && line != "…" {
            line.push(' ');
        }
        line.push_str(word);
    }
    if after < text.len() {
        line.push('…');
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, sought: &str) -> Option<String> {
        excerpt(text, &SearchWords::new(sought))
    }

    #[test]
    fn a_short_text_is_shown_whole_on_one_line() {
        assert_eq!(of("one\n\ttwo \u{1b}[2Jthree", "two").unwrap(), "one two [2Jthree");
        assert_eq!(of("one two", "four"), None);
    }

    #[test]
    fn a_long_one_is_cut_on_both_sides() {
        let text = format!("{}needle{}", "ä ".repeat(100), " ö".repeat(100));
        let line = of(&text, "needle").unwrap();
        assert!(line.starts_with("…ä ä") && line.ends_with("ö ö…") && line.contains(" needle "), "{line}");
        assert!(line.chars().count() <= 2 * AROUND + 8, "{line}");
    }
}

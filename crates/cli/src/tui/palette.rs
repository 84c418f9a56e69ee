//! The command palette: everything with a key in the list, found by words.

use super::keymap::{KeyBinding, KeyContext, TABLE};

/// The rows whose name or help has words that begin with each of the typed ones.
pub(crate) fn found(text: &str) -> Vec<&'static KeyBinding> {
    let sought: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let fits = |row: &&KeyBinding| {
        let said = format!("{} {}", row.act.word(), row.help).to_lowercase();
        let words: Vec<&str> = said.split(|letter: char| !letter.is_alphanumeric()).collect();
        sought.iter().all(|part| words.iter().any(|word| word.starts_with(part.as_str())))
    };
    TABLE.iter().filter(|row| row.place == KeyContext::List).filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::keymap::KeyAction;

    #[test]
    fn what_can_be_done_is_found_by_the_beginnings_of_its_words() {
        let first = |text| found(text).first().map(|row| row.act);
        assert_eq!(first("arch"), Some(KeyAction::Archive));
        assert_eq!(first("loc"), Some(KeyAction::Locks));
        assert_eq!(first("mes sea"), Some(KeyAction::Search));
        assert_eq!(first("nothing of the kind"), None);
        assert_eq!(found("").len(), TABLE.iter().filter(|row| row.place == KeyContext::List).count());
    }
}

//! Bounds of the texts in a definition.

use super::bad_definition::BadDefinition;
use pinfold_api::request::NewSession;

/// More than this is not one line any more.
const LONGEST_PART: usize = 1000;

/// Checks a text that is looked for in lines; the empty one stands for none.
pub(super) fn part_of_a_line(text: &str) -> Result<Option<String>, BadDefinition> {
    if text.len() > LONGEST_PART || text.chars().any(char::is_control) {
        return Err(BadDefinition::NotPartOfALine { most: LONGEST_PART });
    }
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

/// A tag is a word or two.
const LONGEST_TAG: usize = 256;
const MOST_TAGS: usize = 64;

/// Checks the tags of a request.
pub(super) fn check_tags(request: &NewSession) -> Result<(), BadDefinition> {
    let tags = request.tags.as_deref().unwrap_or_default();
    if tags.len() > MOST_TAGS {
        return Err(BadDefinition::TooManyTags { tags: tags.len(), most: MOST_TAGS });
    }
    if let Some(bytes) = tags.iter().map(String::len).find(|length| *length > LONGEST_TAG) {
        return Err(BadDefinition::LongTag { bytes, most: LONGEST_TAG });
    }
    match tags.iter().find(|tag| tag.chars().any(char::is_control)) {
        Some(tag) => Err(BadDefinition::OddTag { tag: tag.clone() }),
        None => Ok(()),
    }
}

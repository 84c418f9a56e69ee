//! What the ids of vendor sessions look like. An id becomes a word of a command line, the name of a lock and a
//! part of a path, and it can come from an agent that lies.

use serde::{Deserialize, Serialize};

/// Longest id in bytes.
const LONGEST: usize = 256;

/// The form of an agent's ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VendorIdForm {
    /// Any word that is neither an option nor a path.
    #[default]
    Word,
    /// A UUID.
    Uuid,
    /// `ses_` and letters or digits.
    Opencode,
}

impl VendorIdForm {
    /// Returns whether an id has this form.
    #[must_use]
    pub fn accepts(self, id: &str) -> bool {
        is_word(id)
            && match self {
                VendorIdForm::Word => true,
                VendorIdForm::Uuid => is_uuid(id),
                VendorIdForm::Opencode => id.strip_prefix("ses_").is_some_and(is_alphanumeric),
            }
    }

    /// Returns the form in words, for an error.
    #[must_use]
    pub fn described(self) -> &'static str {
        match self {
            VendorIdForm::Word => {
                "1 to 256 bytes that begin with a letter or a digit, without spaces, `/`, `{` and `}`"
            }
            VendorIdForm::Uuid => "a UUID, such as 0b9c1b5e-5a0f-4c4e-9d3b-2f6f3c1f7a11",
            VendorIdForm::Opencode => "`ses_` and letters or digits",
        }
    }

    /// Returns whether this is the form of every agent that names none.
    pub(crate) fn is_word(&self) -> bool {
        *self == VendorIdForm::Word
    }
}

/// Braces would be read as a placeholder of the command that the id is filled in.
fn is_word(id: &str) -> bool {
    let odd = |letter: char| letter.is_control() || letter.is_whitespace() || "/{}".contains(letter);
    id.len() <= LONGEST && id.starts_with(|first: char| first.is_ascii_alphanumeric()) && !id.contains(odd)
}

fn is_alphanumeric(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_uuid(id: &str) -> bool {
    let parts: Vec<&str> = id.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::VendorIdForm::{Opencode, Uuid, Word};
    use super::*;

    #[test]
    fn an_id_is_accepted_only_in_the_form_of_its_vendor() {
        let uuid = "0b9c1b5e-5a0f-4c4e-9d3b-2f6f3c1f7a11";
        let longest = "a".repeat(LONGEST);
        let rows: [(&str, &[VendorIdForm]); 21] = [
            (uuid, &[Word, Uuid]),
            ("0B9C1B5E-5A0F-7C4E-9D3B-2F6F3C1F7A11", &[Word, Uuid]),
            ("ses_2f6f3c1f7A11", &[Word, Opencode]),
            ("s-1", &[Word]),
            ("20261118_1", &[Word]),
            ("a:b@c.d=e", &[Word]),
            (&longest, &[Word]),
            (&format!("{longest}a"), &[]),
            ("", &[]),
            ("--resume=evil", &[]),
            ("-c", &[]),
            ("../../etc/passwd", &[]),
            ("a/b", &[]),
            (".hidden", &[]),
            ("a b", &[]),
            ("a\nb", &[]),
            ("a\u{1b}[2J", &[]),
            ("a{prompt}", &[]),
            ("ses_", &[Word]),
            ("ses_-x", &[Word]),
            (&format!("{uuid}-"), &[Word]),
        ];
        for (id, accepted) in rows {
            for form in [Word, Uuid, Opencode] {
                assert_eq!(form.accepts(id), accepted.contains(&form), "{id:?} {form:?}");
            }
        }
    }
}

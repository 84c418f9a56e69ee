//! `[attach]`: what the program of a session may do to the terminal of an attached client.

use super::reading::nearest;
use super::value::TextVisitor;
use pinfold_terminal::Allow;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt::{self, Formatter};

/// The keys of the table.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AttachTable {
    #[serde(deserialize_with = "words")]
    pub(super) allow: Allow,
}

const LIST: &str = "is a list of words in quotes, as in [\"title\", \"links\", \"clipboard\"]";

/// Everything that is allowed: a list replaces the default.
fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Allow, D::Error> {
    struct Reading;
    impl<'de> Visitor<'de> for Reading {
        type Value = Allow;

        fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str(LIST)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Allow, A::Error> {
            let mut allow = Allow::NOTHING;
            while let Some(Allowed(word)) = list.next_element()? {
                allow.allow(&word);
            }
            Ok(allow)
        }
    }
    from.deserialize_any(Reading)
}

/// One known word.
struct Allowed(String);

impl<'de> Deserialize<'de> for Allowed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Allowed, D::Error> {
        let text = from.deserialize_any(TextVisitor(LIST))?;
        if Allow::WORDS.contains(&text.as_str()) {
            return Ok(Allowed(text));
        }
        let meant = nearest(&text, &Allow::WORDS);
        Err(D::Error::custom(format!("nothing is called `{text}` here; the nearest word is `{meant}`")))
    }
}

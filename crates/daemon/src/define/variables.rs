//! The variables of a session: harmless ones of the caller that created it, and those given with `--env`.
//!
//! Given values may be secret. They are never part of the record in the database, which has only the name of
//! their file (`values.rs`). Older records have everything in one map, and are split when they are loaded.

use pinfold_store::Ulid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Names and values, by name.
pub(crate) type Map = BTreeMap<String, String>;

/// Harmless variables that a session keeps from the caller that created it. Nothing of git's, no keys, no
/// tokens.
const HARMLESS: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "TMPDIR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
];
const HARMLESS_BEGINNINGS: [&str; 4] = ["LC_", "XDG_CONFIG", "XDG_DATA", "XDG_CACHE"];

/// Whether a variable of this name is taken from the caller without asking.
#[must_use]
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || HARMLESS_BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// The whole environment of a session's runs: the same at start 1 and at restart 100.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(crate) struct Variables {
    harmless: Map,
    given: Map,
    /// The file with the given ones.
    file: Option<Ulid>,
}

/// The form in a session's record. Older versions cannot read the first form and say so; otherwise they would
/// start agents without their given values.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Apart(Apart),
    Together(Map),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Apart {
    harmless: Map,
    #[serde(with = "as_text")]
    file: Ulid,
}

/// An id as text.
mod as_text {
    use pinfold_store::Ulid;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(id: &Ulid, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Ulid, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl From<Stored> for Variables {
    fn from(stored: Stored) -> Variables {
        match stored {
            Stored::Apart(Apart { harmless, file }) => {
                Variables { harmless, given: Map::new(), file: Some(file) }
            }
            Stored::Together(harmless) => Variables { harmless, given: Map::new(), file: None },
        }
    }
}

impl From<Variables> for Stored {
    fn from(Variables { harmless, file, given: _ }: Variables) -> Stored {
        match file {
            Some(file) => Stored::Apart(Apart { harmless, file }),
            None => Stored::Together(harmless),
        }
    }
}

impl Variables {
    /// Variables that a session takes from the caller that creates it.
    pub(crate) fn of_caller(harmless: Map) -> Variables {
        Variables { harmless, ..Variables::default() }
    }

    /// A copy for another session, which keeps them in a file of its own.
    pub(crate) fn for_another(&self) -> Variables {
        Variables { file: None, ..self.clone() }
    }

    /// Adds given values; the present file does not have them.
    pub(crate) fn give(&mut self, more: Map) {
        if !more.is_empty() {
            self.given.extend(more);
            self.file = None;
        }
    }

    /// Given values that are in no file yet.
    pub(crate) fn unkept(&self) -> Option<&Map> {
        (self.file.is_none() && !self.given.is_empty()).then_some(&self.given)
    }

    /// Sets the file that has the given values.
    pub(crate) fn kept_in(&mut self, file: Ulid) {
        self.file = Some(file);
    }

    /// The file that has the given values.
    pub(crate) fn file(&self) -> Option<Ulid> {
        self.file
    }

    /// The names of variables that differ from these.
    pub(crate) fn differing(&self, other: &Variables) -> Vec<String> {
        let (own, others) = (self.all(), other.all());
        let names: BTreeSet<&str> = own.keys().chain(others.keys()).copied().collect();
        names.into_iter().filter(|name| own.get(name) != others.get(name)).map(str::to_owned).collect()
    }

    /// Takes the given values of a later definition instead of its own, whose file was deleted; `changed` are the
    /// names of those that were others.
    pub(crate) fn replaced(&mut self, later: &Variables, changed: &[String]) {
        self.given.clone_from(&later.given);
        self.given.retain(|name, _| !changed.contains(name));
    }

    /// Takes what was read from the file.
    pub(crate) fn found(&mut self, given: Map) {
        self.given = given;
    }

    /// Splits an older record: whatever is not known to be harmless counts as given.
    pub(crate) fn take_apart(&mut self) {
        if self.file.is_none() {
            let (harmless, given) =
                std::mem::take(&mut self.harmless).into_iter().partition(|(name, _)| is_harmless(name));
            self.harmless = harmless;
            self.give(given);
        }
    }

    /// The value of a variable; given ones have precedence.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.given.get(name).or_else(|| self.harmless.get(name)).map(String::as_str)
    }

    /// The given variables.
    pub(crate) fn given(&self) -> &Map {
        &self.given
    }

    /// All variables, by name.
    pub(crate) fn all(&self) -> BTreeMap<&str, &str> {
        let both = self.harmless.iter().chain(&self.given);
        both.map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

/// Prints names only: debug output has no values either.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.all().keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(entries: &[(&str, &str)]) -> Map {
        entries.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn nothing_secret_is_on_the_list_of_harmless_variables() {
        for name in ["GIT_DIR", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "LD_PRELOAD"] {
            assert!(!is_harmless(name));
        }
    }

    #[test]
    fn what_was_given_is_never_part_of_the_record() {
        let mut variables = Variables::of_caller(map(&[("PATH", "/bin"), ("HOME", "/h")]));
        assert_eq!(json!(variables), json!({ "PATH": "/bin", "HOME": "/h" }));
        variables.give(map(&[("TOKEN", "secret"), ("HOME", "/other")]));
        assert!(!json!(variables).to_string().contains("secret"));
        assert!(!format!("{variables:?}").contains("secret"));
        assert_eq!((variables.get("HOME"), variables.all().len()), (Some("/other"), 3));
        let file = Ulid::new(1, 2);
        variables.kept_in(file);
        assert_eq!(variables.unkept(), None);
        let stored = json!(variables);
        assert!(!stored.to_string().contains("secret"), "{stored}");
        let mut read: Variables = serde_json::from_value(stored).unwrap();
        assert_eq!(read.file(), Some(file));
        read.found(map(&[("TOKEN", "secret"), ("HOME", "/other")]));
        assert_eq!(read, variables);
    }

    #[test]
    fn a_version_before_cannot_take_a_record_for_one_without_variables() {
        let mut variables = Variables::of_caller(map(&[("PATH", "/bin")]));
        variables.give(map(&[("TOKEN", "secret")]));
        variables.kept_in(Ulid::new(1, 2));
        serde_json::from_value::<Map>(json!(variables)).unwrap_err();
    }

    #[test]
    fn a_record_of_before_is_taken_apart_once() {
        let before = json!({ "PATH": "/bin", "LC_ALL": "C", "TOKEN": "secret" });
        let mut variables: Variables = serde_json::from_value(before).unwrap();
        variables.take_apart();
        assert_eq!(variables.unkept(), Some(&map(&[("TOKEN", "secret")])));
        variables.kept_in(Ulid::new(1, 2));
        variables.take_apart();
        assert_eq!(variables.unkept(), None);
        let mut plain: Variables = serde_json::from_value(json!({ "PATH": "/bin" })).unwrap();
        plain.take_apart();
        assert_eq!(plain.unkept(), None);
    }
}

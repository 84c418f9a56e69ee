//! `[tui]`: the look of the terminal UI, whether it takes the mouse, how it notifies a person, and its keys.

use super::reading::nearest;
use super::value::{Flag, TextVisitor, Word, WordTable};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

/// The keys of the table.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TuiTable {
    mouse: Option<Flag>,
    colors: Option<Word<Colors>>,
    theme: Option<Word<ThemeSetting>>,
    notify: Option<Notify>,
    keys: Keys,
}

/// The settings of the terminal UI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuiSettings {
    /// Whether it takes the mouse.
    pub mouse: bool,
    /// How many colours it uses.
    pub colors: Colors,
    /// The background it is read on.
    pub theme: ThemeSetting,
    /// How it notifies a person: words of [`NOTIFY`].
    pub notify: Vec<String>,
    /// Keys that differ from the usual ones, by action: words of [`ACTS`].
    pub keys: BTreeMap<String, Vec<String>>,
}

/// How many colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colors {
    /// As many as the terminal says it has.
    #[default]
    Auto,
    /// None: bold, faint and reversed only.
    None,
    /// The 16 of the terminal's own theme.
    Sixteen,
    /// The palette of 256.
    Indexed,
    /// 24-bit colours.
    True,
}

/// The background the UI is read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThemeSetting {
    /// What `COLORFGBG` says; dark if it says nothing.
    #[default]
    Auto,
    /// A dark background.
    Dark,
    /// A light background.
    Light,
}

impl WordTable for Colors {
    const WORDS: &'static [(&'static str, Colors)] = &[
        ("auto", Colors::Auto),
        ("none", Colors::None),
        ("16", Colors::Sixteen),
        ("256", Colors::Indexed),
        ("truecolor", Colors::True),
    ];
}

impl WordTable for ThemeSetting {
    const WORDS: &'static [(&'static str, ThemeSetting)] =
        &[("auto", ThemeSetting::Auto), ("dark", ThemeSetting::Dark), ("light", ThemeSetting::Light)];
}

/// The ways in which a terminal notifies a person.
pub const NOTIFY: [&str; 5] = ["bell", "title", "osc9", "osc777", "osc99"];

/// The actions of keys, by the words of the file. A test of the terminal UI checks that they are its own.
pub const ACTS: [&str; 44] = [
    "down",
    "up",
    "page-down",
    "page-up",
    "first",
    "last",
    "next-needy",
    "attach",
    "send",
    "answer",
    "interrupt",
    "start",
    "stop",
    "restart",
    "new",
    "archive",
    "undo",
    "purge",
    "search",
    "needy",
    "tags",
    "pin",
    "follow",
    "pane",
    "screen",
    "pane-down",
    "pane-up",
    "group",
    "fold",
    "archived",
    "locks",
    "palette",
    "mouse",
    "redraw",
    "help",
    "quit",
    "close",
    "accept",
    "newline",
    "field-next",
    "field-back",
    "allow",
    "deny",
    "always",
];

impl TuiTable {
    /// The settings of the table, with the usual values for the rest.
    pub(super) fn tui(&self) -> TuiSettings {
        let usual = || vec!["bell".to_owned(), "title".to_owned()];
        TuiSettings {
            mouse: self.mouse.is_none_or(|flag| flag.0),
            colors: self.colors.map_or(Colors::Auto, |word| word.0),
            theme: self.theme.map_or(ThemeSetting::Auto, |word| word.0),
            notify: self.notify.as_ref().map_or_else(usual, |notify| notify.0.clone()),
            keys: self.keys.0.clone(),
        }
    }
}

const NOTIFY_LIST: &str = "is a list of words in quotes, as in [\"bell\", \"osc9\"]";

/// Words of [`NOTIFY`].
#[derive(Debug, Clone, PartialEq)]
struct Notify(Vec<String>);

impl<'de> Deserialize<'de> for Notify {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Notify, D::Error> {
        let words = from.deserialize_any(List(NOTIFY_LIST))?;
        match words.iter().find(|word| !NOTIFY.contains(&word.as_str())) {
            None => Ok(Notify(words)),
            Some(wrong) => Err(unknown(wrong, &NOTIFY)),
        }
    }
}

/// Keys by action.
#[derive(Debug, Clone, PartialEq, Default)]
struct Keys(BTreeMap<String, Vec<String>>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Keys, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Keys;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("is a table of what is done and its key, as in stop = \"X\"")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = BTreeMap::new();
                while let Some(Act(act)) = map.next_key()? {
                    let OneOrMore(pressed) = map.next_value()?;
                    keys.insert(act, pressed);
                }
                Ok(Keys(keys))
            }
        }
        from.deserialize_map(Reading)
    }
}

/// A word of [`ACTS`]: read as a key, so that a wrong one is found on its line.
struct Act(String);

impl<'de> Deserialize<'de> for Act {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Act, D::Error> {
        let act = from.deserialize_str(TextVisitor("is a word for what is done"))?;
        if ACTS.contains(&act.as_str()) { Ok(Act(act)) } else { Err(unknown(&act, &ACTS)) }
    }
}

fn unknown<E: Error>(found: &str, known: &'static [&'static str]) -> E {
    E::custom(format!("nothing is called `{found}` here; the nearest word is `{}`", nearest(found, known)))
}

/// One text, or a list of them.
struct OneOrMore(Vec<String>);

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<OneOrMore, D::Error> {
        from.deserialize_any(List("is a key in quotes, or a list of them, as in [\"X\", \"ctrl-x\"]"))
            .map(OneOrMore)
    }
}

/// Reads texts; its own text says what is expected.
struct List(&'static str);

impl<'de> Visitor<'de> for List {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<String>, E> {
        Ok(vec![text.to_owned()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
        let mut all = Vec::new();
        while let Some(Texted(text)) = list.next_element()? {
            all.push(text);
        }
        Ok(all)
    }
}

/// One text of a list.
struct Texted(String);

impl<'de> Deserialize<'de> for Texted {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Texted, D::Error> {
        from.deserialize_any(TextVisitor("is a list of words in quotes")).map(Texted)
    }
}

//! The keys: one table of what each does where. The help, the configuration and a test that no key has two meanings in
//! one place are made of it.

use super::key::Key;
use std::collections::BTreeMap;

/// Where a key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// In the list.
    List,
    /// Where text is typed: characters are text there.
    Field,
    /// On a page that is read, or a question that is answered with yes or no.
    Page,
    /// Where a request is answered.
    Request,
}

macro_rules! acts {
    ($($Act:ident = $word:literal,)+) => {
        /// What a key does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Act { $($Act),+ }

        impl Act {
            /// Its word in the configuration.
            pub(crate) fn word(self) -> &'static str {
                match self { $(Act::$Act => $word),+ }
            }
        }
    };
}

acts! {
    Down = "down", Up = "up", PageDown = "page-down", PageUp = "page-up", First = "first", Last = "last",
    NextNeedy = "next-needy", Attach = "attach", Send = "send", Answer = "answer", Interrupt = "interrupt",
    Start = "start", Stop = "stop", Restart = "restart", New = "new", Archive = "archive", Undo = "undo",
    Purge = "purge", Search = "search", Needy = "needy", Tags = "tags", Pin = "pin", Follow = "follow",
    Pane = "pane", Screen = "screen", PaneDown = "pane-down", PaneUp = "pane-up", Group = "group", Fold = "fold",
    Archived = "archived", Locks = "locks", Palette = "palette", Mouse = "mouse", Redraw = "redraw",
    Help = "help", Quit = "quit", Close = "close", Accept = "accept", Newline = "newline",
    FieldNext = "field-next", FieldBack = "field-back", Allow = "allow", Deny = "deny", Always = "always",
}

/// One row of the table.
pub(crate) struct Row {
    pub(crate) place: Place,
    pub(crate) act: Act,
    pub(crate) keys: &'static [&'static str],
    pub(crate) help: &'static str,
}

const fn row(place: Place, act: Act, keys: &'static [&'static str], help: &'static str) -> Row {
    Row { place, act, keys, help }
}

/// Every key, where it is pressed, and what it does.
pub(crate) const TABLE: &[Row] = &[
    row(Place::List, Act::Down, &["j", "down"], "select the next session"),
    row(Place::List, Act::Up, &["k", "up"], "select the one before"),
    row(Place::List, Act::PageDown, &["page-down", "ctrl-f"], "one page down"),
    row(Place::List, Act::PageUp, &["page-up", "ctrl-b"], "one page up"),
    row(Place::List, Act::First, &["g", "home"], "select the first"),
    row(Place::List, Act::Last, &["G", "end"], "select the last"),
    row(Place::List, Act::NextNeedy, &["tab"], "select the next that needs a person"),
    row(Place::List, Act::Attach, &["enter"], "attach; Ctrl-] comes back"),
    row(Place::List, Act::Send, &["s"], "send a message"),
    row(Place::List, Act::Answer, &["a"], "answer what it asks"),
    row(Place::List, Act::Interrupt, &["i"], "interrupt the turn, keep the run"),
    row(Place::List, Act::Start, &["S"], "start it"),
    row(Place::List, Act::Stop, &["x"], "stop it"),
    row(Place::List, Act::Restart, &["r"], "restart it"),
    row(Place::List, Act::New, &["n"], "make a session"),
    row(Place::List, Act::Archive, &["A"], "archive it; undo brings it back"),
    row(Place::List, Act::Undo, &["u"], "bring back what was archived last"),
    row(Place::List, Act::Purge, &["P"], "archive all that are not in use, after a look"),
    row(Place::List, Act::Search, &["/"], "search names, messages and answers"),
    row(Place::List, Act::Needy, &["!"], "only those that need a person"),
    row(Place::List, Act::Tags, &["t"], "change its tags"),
    row(Place::List, Act::Pin, &["p"], "pin it to the top, or let go"),
    row(Place::List, Act::Follow, &["f"], "follow its output"),
    row(Place::List, Act::Pane, &["d"], "show or hide the details"),
    row(Place::List, Act::Screen, &["v"], "look at its terminal without attaching"),
    row(Place::List, Act::PaneDown, &["ctrl-d"], "scroll the details down"),
    row(Place::List, Act::PaneUp, &["ctrl-u"], "scroll the details up"),
    row(Place::List, Act::Group, &["o"], "group by tag, directory, account, state, or not"),
    row(Place::List, Act::Fold, &["space"], "fold or unfold the group"),
    row(Place::List, Act::Archived, &["z"], "show or hide archived ones"),
    row(Place::List, Act::Locks, &["L"], "the locks that are held"),
    row(Place::List, Act::Palette, &[":"], "find what can be done by its name"),
    row(Place::List, Act::Mouse, &["m"], "take the mouse, or leave it to the terminal"),
    row(Place::List, Act::Redraw, &["ctrl-l"], "repaint the screen"),
    row(Place::List, Act::Help, &["?", "f1"], "this page"),
    row(Place::List, Act::Close, &["esc"], "leave the search or the filter"),
    row(Place::List, Act::Quit, &["q", "ctrl-c"], "quit; agents go on"),
    row(Place::Field, Act::Accept, &["enter", "ctrl-s"], "take it: send, make, search"),
    row(Place::Field, Act::Newline, &["alt-enter", "ctrl-j"], "a new line in a message"),
    row(Place::Field, Act::FieldNext, &["tab", "down"], "the next field; completes a directory"),
    row(Place::Field, Act::FieldBack, &["shift-tab", "up"], "the field before"),
    row(Place::Field, Act::Close, &["esc", "ctrl-c"], "close; a message that was begun is kept"),
    row(Place::Page, Act::Down, &["j", "down"], "scroll down"),
    row(Place::Page, Act::Up, &["k", "up"], "scroll up"),
    row(Place::Page, Act::PageDown, &["page-down", "space"], "one page down"),
    row(Place::Page, Act::PageUp, &["page-up"], "one page up"),
    row(Place::Page, Act::Accept, &["enter", "y"], "yes, do it"),
    row(Place::Page, Act::Close, &["esc", "q", "n", "ctrl-c"], "no; close"),
    row(Place::Request, Act::Allow, &["y"], "allow it"),
    row(Place::Request, Act::Deny, &["n"], "deny it"),
    row(Place::Request, Act::Always, &["A"], "allow all that are alike"),
    row(Place::Request, Act::Accept, &["w"], "answer with words: type them, then enter allows"),
    row(Place::Request, Act::Close, &["esc", "q", "ctrl-c"], "close, answer nothing"),
];

/// The keys in force.
#[derive(Debug, Clone)]
pub(crate) struct Keymap {
    rows: Vec<(Place, Act, Vec<Key>)>,
}

/// Why keys of the configuration cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadKeys {
    /// Nothing is written so.
    NotAKey { act: String, key: String },
    /// Two things would be done by one key.
    Twice { key: String, one: &'static str, other: &'static str },
}

impl Keymap {
    /// The table, with other keys where they are given by the word of what they do.
    pub(crate) fn of(changed: &BTreeMap<String, Vec<String>>) -> Result<Keymap, BadKeys> {
        let mut rows = Vec::with_capacity(TABLE.len());
        for Row { place, act, keys, .. } in TABLE {
            let own = changed.get(act.word());
            let words = || -> Vec<&str> {
                own.map_or_else(|| keys.to_vec(), |own| own.iter().map(String::as_str).collect())
            };
            let mut pressed = Vec::new();
            for word in words() {
                let bad = || BadKeys::NotAKey { act: act.word().to_owned(), key: word.to_owned() };
                pressed.push(Key::parse(word).ok_or_else(bad)?);
            }
            // In a field characters are text, whatever else they do.
            if *place == Place::Field {
                pressed.retain(|key| key.typed().is_none());
            }
            rows.push((*place, *act, pressed));
        }
        let keymap = Keymap { rows };
        keymap.twice().map_or(Ok(keymap), Err)
    }

    fn twice(&self) -> Option<BadKeys> {
        let all = || {
            self.rows.iter().flat_map(|(place, act, keys)| keys.iter().map(move |key| (*place, *key, *act)))
        };
        let mut seen: BTreeMap<(Place, Key), Act> = BTreeMap::new();
        for (place, key, act) in all() {
            if let Some(before) = seen.insert((place, key), act) {
                let key = key.to_string();
                return Some(BadKeys::Twice { key, one: before.word(), other: act.word() });
            }
        }
        None
    }

    /// What a key does in a place.
    pub(crate) fn act(&self, place: Place, key: Key) -> Option<Act> {
        let here = self.rows.iter().filter(|(of, ..)| *of == place);
        here.into_iter().find(|(_, _, keys)| keys.contains(&key)).map(|(_, act, _)| *act)
    }

    /// The keys that do something in a place, as they are written.
    pub(crate) fn words(&self, place: Place, act: Act) -> String {
        let found = self.rows.iter().find(|(of, does, _)| (*of, *does) == (place, act));
        let keys = found.map(|(_, _, keys)| keys.as_slice()).unwrap_or_default();
        keys.iter().map(Key::to_string).collect::<Vec<_>>().join(" ")
    }

    /// The first of them.
    pub(crate) fn word(&self, place: Place, act: Act) -> String {
        self.words(place, act).split(' ').next().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn usual() -> Keymap {
        Keymap::of(&BTreeMap::new()).expect("the table is sound")
    }

    #[test]
    fn no_key_has_two_meanings_in_one_place_and_each_is_found() {
        let keymap = usual();
        for Row { place, act, keys, help } in TABLE {
            assert!(!keys.is_empty() && !help.is_empty(), "{act:?}");
            for key in *keys {
                let pressed = Key::parse(key).unwrap_or_else(|| panic!("{key}"));
                assert_eq!(keymap.act(*place, pressed), Some(*act), "{key} in {place:?}");
            }
        }
    }

    #[test]
    fn the_configuration_knows_the_same_words() {
        let own: BTreeSet<&str> = TABLE.iter().map(|row| row.act.word()).collect();
        let known: BTreeSet<&str> = pinfold_daemon::config::ACTS.into_iter().collect();
        assert_eq!(own, known);
    }

    #[test]
    fn keys_of_the_configuration_take_the_place_of_the_usual_ones() {
        let told = |act: &str, keys: &[&str]| {
            let keys = keys.iter().map(|key| (*key).to_owned()).collect();
            Keymap::of(&BTreeMap::from([(act.to_owned(), keys)]))
        };
        let keymap = told("stop", &["X", "ctrl-x"]).expect("it is sound");
        assert_eq!(keymap.act(Place::List, Key::char('x')), None);
        assert_eq!(keymap.act(Place::List, Key::char('x').with_ctrl()), Some(Act::Stop));
        assert_eq!(keymap.words(Place::List, Act::Stop), "X ctrl-x");
        let twice = BadKeys::Twice { key: "q".into(), one: "stop", other: "quit" };
        assert_eq!(told("stop", &["q"]).unwrap_err(), twice);
        assert!(matches!(told("stop", &["nokey"]), Err(BadKeys::NotAKey { .. })));
    }
}

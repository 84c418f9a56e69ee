//! The keys: one table says what each does in which context. The help and the configuration are made from it,
//! and a test checks that no key has two meanings in one context.

use super::key::KeyPress;
use std::collections::BTreeMap;

/// The context in which a key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyContext {
    /// In the list.
    List,
    /// Where text is typed; characters are text there.
    Field,
    /// On a page that is read, or at a yes-or-no question.
    Page,
    /// At a request to be answered.
    Request,
}

macro_rules! acts {
    ($($Act:ident = $word:literal,)+) => {
        /// What a key does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum KeyAction { $($Act),+ }

        impl KeyAction {
            /// The name of this action in the configuration.
            pub(crate) fn word(self) -> &'static str {
                match self { $(KeyAction::$Act => $word),+ }
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
pub(crate) struct KeyBinding {
    pub(crate) place: KeyContext,
    pub(crate) act: KeyAction,
    pub(crate) keys: &'static [&'static str],
    pub(crate) help: &'static str,
}

const fn row(
    place: KeyContext,
    act: KeyAction,
    keys: &'static [&'static str],
    help: &'static str,
) -> KeyBinding {
    KeyBinding { place, act, keys, help }
}

/// Every key with its context and its action.
pub(crate) const TABLE: &[KeyBinding] = &[
    row(KeyContext::List, KeyAction::Down, &["j", "down"], "select the next session"),
    row(KeyContext::List, KeyAction::Up, &["k", "up"], "select the one before"),
    row(KeyContext::List, KeyAction::PageDown, &["page-down", "ctrl-f"], "one page down"),
    row(KeyContext::List, KeyAction::PageUp, &["page-up", "ctrl-b"], "one page up"),
    row(KeyContext::List, KeyAction::First, &["g", "home"], "select the first"),
    row(KeyContext::List, KeyAction::Last, &["G", "end"], "select the last"),
    row(KeyContext::List, KeyAction::NextNeedy, &["tab"], "select the next that needs a person"),
    row(KeyContext::List, KeyAction::Attach, &["enter"], "attach; Ctrl-] comes back"),
    row(KeyContext::List, KeyAction::Send, &["s"], "send a message"),
    row(KeyContext::List, KeyAction::Answer, &["a"], "answer what it asks"),
    row(KeyContext::List, KeyAction::Interrupt, &["i"], "interrupt the turn, keep the run"),
    row(KeyContext::List, KeyAction::Start, &["S"], "start it"),
    row(KeyContext::List, KeyAction::Stop, &["x"], "stop it"),
    row(KeyContext::List, KeyAction::Restart, &["r"], "restart it"),
    row(KeyContext::List, KeyAction::New, &["n"], "make a session"),
    row(KeyContext::List, KeyAction::Archive, &["A"], "archive it; undo brings it back"),
    row(KeyContext::List, KeyAction::Undo, &["u"], "bring back what was archived last"),
    row(KeyContext::List, KeyAction::Purge, &["P"], "archive all that are not in use, after a look"),
    row(KeyContext::List, KeyAction::Search, &["/"], "search names, messages and answers"),
    row(KeyContext::List, KeyAction::Needy, &["!"], "only those that need a person"),
    row(KeyContext::List, KeyAction::Tags, &["t"], "change its tags"),
    row(KeyContext::List, KeyAction::Pin, &["p"], "pin it to the top, or let go"),
    row(KeyContext::List, KeyAction::Follow, &["f"], "follow its output"),
    row(KeyContext::List, KeyAction::Pane, &["d"], "show or hide the details"),
    row(KeyContext::List, KeyAction::Screen, &["v"], "look at its terminal without attaching"),
    row(KeyContext::List, KeyAction::PaneDown, &["ctrl-d"], "scroll the details down"),
    row(KeyContext::List, KeyAction::PaneUp, &["ctrl-u"], "scroll the details up"),
    row(KeyContext::List, KeyAction::Group, &["o"], "group by tag, directory, account, state, or not"),
    row(KeyContext::List, KeyAction::Fold, &["space"], "fold or unfold the group"),
    row(KeyContext::List, KeyAction::Archived, &["z"], "show or hide archived ones"),
    row(KeyContext::List, KeyAction::Locks, &["L"], "the locks that are held"),
    row(KeyContext::List, KeyAction::Palette, &[":"], "find what can be done by its name"),
    row(KeyContext::List, KeyAction::Mouse, &["m"], "take the mouse, or leave it to the terminal"),
    row(KeyContext::List, KeyAction::Redraw, &["ctrl-l"], "repaint the screen"),
    row(KeyContext::List, KeyAction::Help, &["?", "f1"], "this page"),
    row(KeyContext::List, KeyAction::Close, &["esc"], "leave the search or the filter"),
    row(KeyContext::List, KeyAction::Quit, &["q", "ctrl-c"], "quit; agents go on"),
    row(KeyContext::Field, KeyAction::Accept, &["enter", "ctrl-s"], "take it: send, make, search"),
    row(KeyContext::Field, KeyAction::Newline, &["alt-enter", "ctrl-j"], "a new line in a message"),
    row(KeyContext::Field, KeyAction::FieldNext, &["tab", "down"], "the next field; completes a directory"),
    row(KeyContext::Field, KeyAction::FieldBack, &["shift-tab", "up"], "the field before"),
    row(KeyContext::Field, KeyAction::Close, &["esc", "ctrl-c"], "close; a message that was begun is kept"),
    row(KeyContext::Page, KeyAction::Down, &["j", "down"], "scroll down"),
    row(KeyContext::Page, KeyAction::Up, &["k", "up"], "scroll up"),
    row(KeyContext::Page, KeyAction::PageDown, &["page-down", "space"], "one page down"),
    row(KeyContext::Page, KeyAction::PageUp, &["page-up"], "one page up"),
    row(KeyContext::Page, KeyAction::Accept, &["enter", "y"], "yes, do it"),
    row(KeyContext::Page, KeyAction::Close, &["esc", "q", "n", "ctrl-c"], "no; close"),
    row(KeyContext::Request, KeyAction::Allow, &["y"], "allow it"),
    row(KeyContext::Request, KeyAction::Deny, &["n"], "deny it"),
    row(KeyContext::Request, KeyAction::Always, &["A"], "allow all that are alike"),
    row(KeyContext::Request, KeyAction::Accept, &["w"], "answer with words: type them, then enter allows"),
    row(KeyContext::Request, KeyAction::Close, &["esc", "q", "ctrl-c"], "close, answer nothing"),
];

/// The keys in force, after the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Keymap {
    rows: Vec<(KeyContext, KeyAction, Vec<KeyPress>)>,
}

/// Why the configuration's keys are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadKeys {
    /// This is not the name of a key.
    NotAKey { act: String, key: String },
    /// One key would do two things.
    Twice { key: String, one: &'static str, other: &'static str },
}

impl Keymap {
    /// The table, with the keys of the given actions replaced. Actions are given by name.
    pub(crate) fn of(changed: &BTreeMap<String, Vec<String>>) -> Result<Keymap, BadKeys> {
        let mut rows = Vec::with_capacity(TABLE.len());
        for KeyBinding { place, act, keys, .. } in TABLE {
            let own = changed.get(act.word());
            let words = || -> Vec<&str> {
                own.map_or_else(|| keys.to_vec(), |own| own.iter().map(String::as_str).collect())
            };
            let mut pressed = Vec::new();
            for word in words() {
                let bad = || BadKeys::NotAKey { act: act.word().to_owned(), key: word.to_owned() };
                pressed.push(KeyPress::parse(word).ok_or_else(bad)?);
            }
            // In a field characters are text, whatever else they do.
            if *place == KeyContext::Field {
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
        let mut seen: BTreeMap<(KeyContext, KeyPress), KeyAction> = BTreeMap::new();
        for (place, key, act) in all() {
            if let Some(before) = seen.insert((place, key), act) {
                let key = key.to_string();
                return Some(BadKeys::Twice { key, one: before.word(), other: act.word() });
            }
        }
        None
    }

    /// What a key does in a context.
    pub(crate) fn act(&self, place: KeyContext, key: KeyPress) -> Option<KeyAction> {
        let here = self.rows.iter().filter(|(of, ..)| *of == place);
        here.into_iter().find(|(_, _, keys)| keys.contains(&key)).map(|(_, act, _)| *act)
    }

    /// The names of the keys for an action in a context.
    pub(crate) fn words(&self, place: KeyContext, act: KeyAction) -> String {
        let found = self.rows.iter().find(|(of, does, _)| (*of, *does) == (place, act));
        let keys = found.map(|(_, _, keys)| keys.as_slice()).unwrap_or_default();
        keys.iter().map(KeyPress::to_string).collect::<Vec<_>>().join(" ")
    }

    /// The first of these names.
    pub(crate) fn word(&self, place: KeyContext, act: KeyAction) -> String {
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
        for KeyBinding { place, act, keys, help } in TABLE {
            assert!(!keys.is_empty() && !help.is_empty(), "{act:?}");
            for key in *keys {
                let pressed = KeyPress::parse(key).unwrap_or_else(|| panic!("{key}"));
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
        assert_eq!(keymap.act(KeyContext::List, KeyPress::char('x')), None);
        assert_eq!(keymap.act(KeyContext::List, KeyPress::char('x').with_ctrl()), Some(KeyAction::Stop));
        assert_eq!(keymap.words(KeyContext::List, KeyAction::Stop), "X ctrl-x");
        let twice = BadKeys::Twice { key: "q".into(), one: "stop", other: "quit" };
        assert_eq!(told("stop", &["q"]).unwrap_err(), twice);
        assert!(matches!(told("stop", &["nokey"]), Err(BadKeys::NotAKey { .. })));
    }
}

//! One file, one way of harming it, one state of the daemon: what the verbs say, and that the home works afterwards.

use super::cure::{self, Cure};
use super::files::Kind;
use super::harm::Harm;
use super::inhabited::{DEADLINE, Inhabited, Known, anothers, by, settled};
use super::{When, is_of_search, is_of_store};
use crate::world::Answer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// A row of the table.
pub(super) struct Row {
    kind: Kind,
    harm: Harm,
    when: When,
    said: Vec<Said>,
    cure: Option<Cure>,
    pub(super) wrong: Option<String>,
    /// How many ways out were offered.
    pub(super) ways: usize,
}

/// The result for a file that does not exist at that time.
const ABSENT: &str = "is not there";

impl Row {
    pub(super) fn is_absent(&self) -> bool {
        self.said.iter().any(|said| said.text == ABSENT)
    }
}

/// What one or more verbs said.
#[derive(Debug, PartialEq)]
struct Said {
    verbs: Vec<String>,
    text: String,
}

impl fmt::Display for Row {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_absent() {
            return write!(text, "{:?} {:?}: {ABSENT}", self.kind, self.when);
        }
        write!(text, "{:?} {:?} {:?}:", self.kind, self.harm, self.when)?;
        if self.said.is_empty() {
            write!(text, " well")?;
        }
        for Said { verbs, text: said } in &self.said {
            write!(text, "\n   {}: {said}", verbs.join(" "))?;
        }
        if let Some(cure) = &self.cure {
            write!(text, "\n   done: {cure:?}")?;
        }
        self.wrong.as_ref().map_or(Ok(()), |wrong| write!(text, "\n   WRONG: {wrong}"))
    }
}

/// The case being tried.
struct Case<'a> {
    home: &'a Inhabited,
    kind: Kind,
    when: When,
    known: Known,
    /// Texts acknowledged since the harm.
    sent: Vec<String>,
    said: Vec<Said>,
    /// The hint of the first answer that named damage.
    hint: Option<String>,
    cure: Option<Cure>,
}

pub(super) fn try_one(home: &Inhabited, kind: Kind, harm: Harm, when: When, way: usize) -> Row {
    let (sent, said) = (Vec::new(), Vec::new());
    let mut case = Case { home, kind, when, known: home.read(), sent, said, hint: None, cure: None };
    let mut ways = 0;
    let tried = case.run(harm, way, &mut ways);
    Row { kind, harm, when, said: case.said, cure: case.cure, wrong: tried.err(), ways }
}

type Done = Result<(), String>;

impl Case<'_> {
    fn run(&mut self, harm: Harm, way: usize, ways: &mut usize) -> Done {
        let (kind, when) = (self.kind, self.when);
        let world = &self.home.world;
        let backup = world.path(&self.home.fresh("backup"));
        if is_of_store(kind) {
            world.ok(&["backup", backup.to_str().unwrap()]);
        }
        if kind == Kind::Reserve {
            self.home.reserved();
        }
        if is_of_search(kind) {
            self.home.searched();
        }
        match when {
            When::Running => {}
            When::Down => _ = world.ok(&["down"]),
            When::Killed => world.kill_daemon(),
        }
        self.home.complete(kind);
        let Some(file) = self.home.file(kind) else {
            self.say("", ABSENT);
            return Ok(());
        };
        let aside = world.path(&self.home.fresh("aside"));
        let harmed = harm.do_to(&file, &aside, anothers(kind).as_deref());
        if self.rounds()? == Round::Well && harm != Harm::Moved {
            return self.no_doubles();
        }
        let Some(hint) = self.hint.take() else {
            if harm == Harm::Moved {
                harmed.put_back();
            }
            return self.ends_well();
        };
        let all = cure::ways(&hint, harm, self.home.is_up());
        *ways = all.len();
        // What a harm does depends on what the daemon was reading: the last time, there may have been more ways.
        let cure = all.get(way).or(all.last()).ok_or_else(|| format!("no way out: {hint}"))?.clone();
        self.cure = Some(cure.clone());
        cure.follow(self.home, &harmed, &backup)?;
        match cure {
            Cure::PutBack => {}
            Cure::Commands(_) if cure.makes_a_backup() => {}
            // The backup was made before any of this.
            Cure::Commands(_) => self.sent.clear(),
            Cure::Aside(_) if kind == Kind::Config || kind == Kind::Witness => {}
            Cure::Aside(_) => return self.goes_on_with_less(),
        }
        self.ends_well()
    }

    /// Something was given up for good, as the hint said; checks that what is left works.
    fn goes_on_with_less(&mut self) -> Done {
        (self.known, self.sent) = (Known::default(), Vec::new());
        self.home.world.ok(&["ls", "--all"]);
        let name = self.home.fresh("anew");
        self.home.world.ok(&["new", &name, "--mode", "on-demand", "--", "cat"]);
        for _ in 0..2 {
            self.home.world.ok(&["down"]);
            self.home.world.ok(&["send", &name, "text"]);
        }
        self.no_doubles()
    }

    /// Tries all verbs, and again after `down`, until damage is named. What a daemon has read at its start
    /// and found well, the next one need not read again, unless the store is at stake.
    fn rounds(&mut self) -> Result<Round, String> {
        self.verbs(&["ls", "show", "inbox", "events", "send", "search", "stop", "start"])?;
        if self.hint.is_some() {
            return Ok(Round::Named);
        }
        if self.when != When::Running && !is_of_store(self.kind) && self.said.is_empty() {
            return Ok(Round::Well);
        }
        self.ask(&["down"])?;
        let before = self.said.len();
        self.verbs(&["ls", "inbox", "events", "send", "search"])?;
        Ok(if self.said.len() == before { Round::Well } else { Round::Named })
    }

    fn no_doubles(&self) -> Done {
        match self.home.world.doubles() {
            none if none.is_empty() => Ok(()),
            doubles => Err(format!("two agents at once: {doubles}")),
        }
    }

    fn verbs(&mut self, verbs: &[&str]) -> Done {
        let text = self.home.fresh("text");
        let asked = |verb: &&&str| **verb != "search" || is_of_search(self.kind);
        for verb in verbs.iter().filter(asked).collect::<Vec<_>>() {
            let words: &[&str] = match *verb {
                "ls" => &["ls", "--all"],
                "events" => &["events"],
                "send" => &["send", "chat", &text],
                "inbox" => &["inbox", "chat"],
                "search" => &["search", "question"],
                verb => &[verb, "runs"],
            };
            let answer = self.ask(words)?;
            if answer.code == 0 && *verb == "send" {
                self.sent.push(text.clone());
            }
        }
        Ok(())
    }

    fn ask(&mut self, words: &[&str]) -> Result<Answer, String> {
        let answer = self.home.world.within(DEADLINE, &[&["--json"], words].concat());
        if answer.code == 0 {
            self.compare(words[0], &answer.json())?;
            return Ok(answer);
        }
        let error = answer.error();
        let (message, hint) = (text(&error["message"]), text(&error["hint"]));
        self.say(words[0], &format!("{} {message}; HINT {hint}", answer.code));
        if self.named(answer.code) {
            self.hint.get_or_insert(hint);
        } else if !self.kills_the_daemon() || answer.code != 69 {
            return Err("neither right nor named".to_owned());
        }
        Ok(answer)
    }

    /// Whether an exit code says that something of the home cannot be used: its data, or its configuration.
    fn named(&self, code: i32) -> bool {
        code == if self.kind == Kind::Config { 78 } else { 65 }
    }

    /// SQLite maps its index: writing into it in place kills the daemon, and the next verb starts another.
    fn kills_the_daemon(&self) -> bool {
        matches!(self.kind, Kind::Index | Kind::SearchIndex) && self.when == When::Running
    }

    fn say(&mut self, verb: &str, text: &str) {
        let text = text.replace(self.home.world.home.to_str().unwrap(), "HOME");
        let verb = verb.to_owned();
        match self.said.iter_mut().find(|said| said.text == text) {
            Some(said) => said.verbs.push(verb),
            None => self.said.push(Said { verbs: vec![verb], text }),
        }
    }

    /// Checks that what was acknowledged exists and is equal.
    fn compare(&self, verb: &str, told: &Value) -> Done {
        let none = Vec::new();
        let list = told.as_array().unwrap_or(&none);
        match verb {
            "ls" => {
                let settled: Vec<Value> = list.iter().map(settled).collect();
                equal(&self.known.sessions, &by(&settled, "name"))
            }
            "inbox" => {
                let gone = |text: &&String| !list.iter().any(|message| message["text"] == text.as_str());
                let gone: Vec<&String> = self.sent.iter().filter(gone).collect();
                if !gone.is_empty() {
                    return Err(format!("{gone:?} were acknowledged and are gone"));
                }
                equal(&self.known.messages, &by(list, "id"))
            }
            "events" => equal(&self.known.events, &by(list, "seq")),
            // The message, and its answer.
            "search" => match list.iter().filter(|hit| hit["session"] == "chat").count() {
                2 => Ok(()),
                _ => Err(format!("`question` is found as {told}")),
            },
            _ => Ok(()),
        }
    }

    /// Checks that everything works again, and that nothing acknowledged is missing.
    fn ends_well(&mut self) -> Done {
        let before = self.said.len();
        self.verbs(&["ls", "inbox", "events", "send", "stop", "start"])?;
        self.ask(&["down"])?;
        self.verbs(&["ls", "inbox", "events", "send"])?;
        self.no_doubles()?;
        if self.said.len() > before { Err("it does not end well".to_owned()) } else { Ok(()) }
    }
}

/// How all verbs went, before and after `down`.
#[derive(Debug, PartialEq)]
enum Round {
    Well,
    Named,
}

fn equal(known: &BTreeMap<String, Value>, found: &BTreeMap<String, Value>) -> Done {
    for (key, row) in known {
        if found.get(key) != Some(row) {
            return Err(format!("{row} became {:?}", found.get(key)));
        }
    }
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

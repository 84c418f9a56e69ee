//! A hint that is a command consists of exactly the intended words, whatever names are in it, and pasting it
//! runs nothing else.

use crate::lines::Lines;
use crate::world::{Answer, Ends, World, finish};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Names that a shell would run, split, expand or swallow, and that a terminal would obey or not show.
const NAMES: &[&str] = &[
    "repo; touch X #",
    "$(touch X)",
    "`touch X`",
    "`pinfold rm all --yes`",
    "a'b",
    "a'$(touch X)'b",
    "a\"$(touch X)\"b",
    "a\\'; touch X; \\'",
    "two  blanks",
    "*",
    "~",
    "&& touch X",
    "new\nline; touch X",
    "new\nline' ; touch X; '",
    "tab\there",
    "\u{1b}]0;title\u{7}\u{1b}[2J",
    "c1\u{9b}31m",
    "right\u{202e}tfel\u{2066}",
    "no\u{200b}thing",
    "100%s%n\\n\n.",
    "größe 日本",
];

/// A newline at the end cannot be written as one word in every shell.
const LAST: &str = "last'; touch X; '\n";

struct Place {
    world: World,
    /// Where hints are pasted; nothing may appear there.
    shell: PathBuf,
}

impl Place {
    fn new() -> Place {
        let world = World::new();
        let shell = world.path("shell");
        std::fs::create_dir(&shell).unwrap();
        Place { world, shell }
    }

    /// A directory with a hostile name, as pinfold names it.
    fn directory(&self, name: &str) -> String {
        let path = self.world.path("places").join(name);
        std::fs::create_dir_all(&path).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Holds a lock until dropped.
    fn hold(&self, resource: &str) -> Hold {
        let mut command = self.world.command(&["lock", resource, "--", "sh", "-c", "echo held; exec cat"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let line = Lines::of(child.stdout.take().unwrap()).next("the holder");
        assert_eq!(line, "held", "{resource:?}");
        Hold { child }
    }

    /// The words of a command, as a shell reads them.
    fn words(&self, shell: &str, command: &str) -> Vec<String> {
        let script = format!("printf '%s\\0' {command}");
        let run = Command::new(shell).args(["-c", &script]).current_dir(&self.shell).output().unwrap();
        let complaint = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(run.status.success() && complaint.is_empty(), "{shell}: {command:?}: {complaint}");
        let text = String::from_utf8(run.stdout).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    /// Checks that the pasted text has run nothing.
    fn nothing_ran(&self, what: &str) {
        let made: Vec<_> = std::fs::read_dir(&self.shell).unwrap().collect();
        assert!(made.is_empty(), "{what:?} made {made:?}");
        assert!(!self.world.path("X").exists(), "{what:?} was run");
    }

    /// Checks that the hint of an answer has this command, in every shell, for people and for programs.
    fn hints(&self, words: &[&str], wanted: &[&str]) {
        let (plain, json) = (self.world.run(words), self.world.run(&[&["--json"], words].concat()));
        let hint = json.error()["hint"].as_str().unwrap_or_else(|| panic!("{json:?}")).to_owned();
        for hint in [hint, hint_of(&plain)] {
            assert!(!hint.contains(char::is_control), "{words:?}: {hint:?}");
            for shell in ["dash", "bash"] {
                let read: Vec<_> = commands(&hint).map(|command| self.words(shell, command)).collect();
                assert!(read.iter().any(|read| read == wanted), "{shell}: {wanted:?} is not in {hint:?}");
            }
        }
        self.nothing_ran(&words.join(" "));
    }
}

struct Hold {
    child: Child,
}

impl Drop for Hold {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        _ = self.child.wait();
    }
}

fn hint_of(answer: &Answer) -> String {
    let hint = answer.stderr.lines().find_map(|line| line.strip_prefix("hint: "));
    hint.unwrap_or_else(|| panic!("no hint in {answer:?}")).to_owned()
}

/// The commands in a hint: the texts between backticks that begin with the program's name.
fn commands(hint: &str) -> impl Iterator<Item = &str> {
    hint.split('`').skip(1).step_by(2).filter(|command| command.starts_with("pinfold "))
}

#[test]
fn the_hint_of_a_held_directory_or_key_is_the_command_that_frees_it() {
    let place = Place::new();
    for name in NAMES {
        let (directory, key) = (place.directory(name), format!("key:{name}"));
        place.hints(&["unlock", &directory], &["pinfold", "unlock", &directory, "--kill"]);
        let _held = place.hold(&key);
        place.hints(&["lock", &key, "--", "true"], &["pinfold", "unlock", &key, "--kill"]);
    }
}

#[test]
fn the_hint_of_a_session_that_waits_for_a_directory_is_quoted() {
    let place = Place::new();
    for (number, name) in NAMES.iter().enumerate().step_by(2) {
        let directory = place.directory(name);
        let _held = place.hold(&directory);
        let unlock = ["pinfold", "unlock", &directory, "--kill"];
        place.hints(&["run", "r", "--dir", &directory, "--", "true"], &unlock);
        let session = format!("s{number}");
        place.world.ok(&["new", &session, "--dir", &directory, "--pty", "--", "sleep", "1000"]);
        place.hints(&["attach", &session], &unlock);
    }
}

#[test]
fn a_name_that_is_not_a_directory_is_quoted_as_the_key_that_it_could_be() {
    let place = Place::new();
    for name in NAMES {
        let answer = place.world.run(&["lock", name, "--", "true"]);
        assert_eq!(answer.code, 78, "{answer:?}");
        let hint = hint_of(&answer);
        let key =
            hint.strip_suffix("` locks a name, without a directory").unwrap().strip_prefix('`').unwrap();
        for shell in ["dash", "bash"] {
            assert_eq!(place.words(shell, key), [format!("key:{name}")], "{shell}: {hint:?}");
        }
        place.nothing_ran(name);
    }
}

#[test]
fn a_word_that_not_every_shell_can_read_is_still_one_word_and_runs_nothing() {
    let place = Place::new();
    let resource = format!("key:{LAST}");
    let _held = place.hold(&resource);
    let hint = hint_of(&place.world.run(&["lock", &resource, "--", "true"]));
    let command = commands(&hint).next().unwrap_or_else(|| panic!("{hint:?}"));
    assert_eq!(place.words("bash", command), ["pinfold", "unlock", &resource, "--kill"]);
    assert_eq!(place.words("dash", command).len(), 4, "another word, and only one");
    place.nothing_ran(LAST);
}

#[test]
fn a_pasted_hint_does_what_it_says() {
    let place = Place::new();
    let directory = place.directory("new\nline; touch X #'\u{1b}[2J");
    let mut held = place.hold(&directory);
    let hint = hint_of(&place.world.run(&["lock", &directory, "--", "true"]));
    let command = commands(&hint).next().unwrap().replacen("pinfold", "\"$PINFOLD\"", 1);
    let mut shell = Command::new("sh");
    let like = place.world.command(&[]);
    shell.args(["-c", &command]).current_dir(&place.shell).env("PINFOLD", &place.world.binary);
    shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = finish(&mut shell);
    assert_eq!(answer.code, 0, "{command:?}: {answer:?}");
    assert!(!held.child.ended().success(), "its holder was ended");
    place.nothing_ran(&command);
}

/// Every verb that takes a session or a message, to be given a hostile one.
const WITH_A_NAME: &[&[&str]] = &[
    &["show", "{}"],
    &["why", "{}"],
    &["logs", "{}"],
    &["start", "{}"],
    &["stop", "{}"],
    &["restart", "{}"],
    &["archive", "{}"],
    &["restore", "{}"],
    &["rm", "{}", "--yes"],
    &["attach", "{}"],
    &["interrupt", "{}"],
    &["inbox", "{}"],
    &["inbox", "a", "--retry", "{}"],
    &["inbox", "a", "--cancel", "{}"],
    &["send", "{}", "text"],
    &["set", "{}", "--mode", "once"],
    &["set", "a", "--agent", "{}"],
    &["new", "b", "--agent", "{}"],
    &["new", "b", "--parent", "{}", "--", "true"],
    &["new", "{}", "--", "true"],
    &["new", "b", "--", "{}"],
    &["new", "b", "--dir", "{}", "--", "true"],
    &["run", "{}", "--", "true"],
    &["run", "b", "--", "{}"],
    &["wait", "{}", "--for", "running"],
    &["wait", "a", "--for", "{}"],
    &["who", "{}"],
    &["unlock", "session:{}", "--kill"],
    &["lock", "session:{}", "--", "true"],
    &["lock", "key:b", "--", "{}"],
    &["backup", "{}/x"],
    &["restore-backup", "{}"],
    &["events", "--session", "{}"],
    &["{}"],
    &["--home", "{}", "--no-start", "ls"],
];

#[test]
fn no_verb_puts_a_hostile_name_into_a_hint_unquoted() {
    let place = Place::new();
    place.world.ok(&["new", "a", "--mode", "on-demand", "--", "true"]);
    let known: BTreeSet<&str> =
        ["pinfold", "a", "b", "SESSION", "NAME", "TEXT", "COMMAND...", "FILE", "RESOURCE"].into();
    let mut seen = 0;
    for name in
        ["repo; touch X #", "$(touch X)", "`touch X`", "a'$(touch X)", "nl\n`touch X`", "\u{1b}[31m\u{202e}"]
    {
        for words in WITH_A_NAME {
            let words: Vec<String> = words.iter().map(|word| word.replace("{}", name)).collect();
            let answer = place.world.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
            let hint = answer.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default();
            seen += usize::from(!hint.is_empty());
            for command in commands(hint) {
                for word in place.words("dash", command) {
                    let plain = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
                    let meant = known.contains(&word.as_str()) || plain || word.ends_with(name);
                    assert!(meant, "{words:?}: `{word}` in {hint:?}");
                }
            }
            place.nothing_ran(&words.join(" "));
        }
    }
    assert!(seen > 40, "only {seen} hints were looked at");
}

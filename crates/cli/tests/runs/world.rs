//! A home of its own for every test, the real binary, and an end for everything that a test started.

use crate::lines::Lines;
use crate::processes::{self, Held, PATIENCE};
use crate::sweeper::Sweeper;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub(crate) struct World {
    _limit: crate::limit::Limit,
    temp: Option<tempfile::TempDir>,
    _sweeper: Sweeper,
    pub(crate) root: PathBuf,
    /// The home, which need not be below the root.
    pub(crate) home: PathBuf,
    pub(crate) binary: PathBuf,
}

/// The answer of a verb.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The error object of a verb; of one on several sessions, the first.
    pub(crate) fn error(&self) -> Value {
        let told = self.json();
        let first = told.as_array().and_then(|all| all.iter().find(|one| one["error"].is_object()));
        first.unwrap_or(&told)["error"].clone()
    }
}

/// Every verb that the program's help lists in its groups.
pub(crate) fn verbs_in(help: &str) -> Vec<String> {
    let listed = help.lines().take_while(|line| *line != "Options:");
    let first = |line: &str| {
        let verb = line.strip_prefix("  ")?.split(' ').next()?;
        verb.starts_with(|letter: char| letter.is_ascii_lowercase()).then(|| verb.to_owned())
    };
    let verbs: Vec<String> = listed.filter_map(first).collect();
    assert!(verbs.len() > 30, "{verbs:?} are too few to be all verbs");
    verbs
}

/// What every agent of a test does first: from then on the kernel knows whether anything of it lives. A
/// second agent beside it, or beside anything that it started, writes its name down. A test may kill `flock`
/// itself, so only its own code for a held lock counts.
pub(crate) const GUARD: &str = "exec 9>>\"$ROOT/guard-$PINFOLD_SESSION\"; flock -n -E 200 9; \
     test $? -ne 200 || echo \"$PINFOLD_SESSION $PINFOLD_RUN\" >>\"$ROOT/doubles\"; ";

impl World {
    pub(crate) fn new() -> World {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let home = root.join("home");
        let sweeper = Sweeper::over(&root);
        World {
            _limit: crate::limit::Limit::of_test(),
            temp: Some(temp),
            _sweeper: sweeper,
            root,
            home,
            binary: env!("CARGO_BIN_EXE_pinfold").into(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PINFOLD_") {
                command.env_remove(name);
            }
        }
        command.env("PINFOLD_HOME", &self.home).env("PINFOLD_LOCKS", self.path("locks"));
        // Where the homes made here are listed.
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("ROOT", &self.root).current_dir(&self.root);
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Answer {
        self.within(LIMIT, words)
    }

    /// Runs a verb that must end within this time, whatever its answer.
    #[track_caller]
    pub(crate) fn within(&self, limit: Duration, words: &[&str]) -> Answer {
        let late = |late: Late| panic!("{late}\n{}", self.standings(words));
        try_finish(&mut self.command(words), limit).unwrap_or_else(late)
    }

    /// What can be said about this home when a verb does not end: every session, why the one concerned is in
    /// its state, and the daemon's log.
    fn standings(&self, words: &[&str]) -> String {
        let ask = |words: &[&str]| match try_finish(&mut self.command(words), Duration::from_secs(5)) {
            Ok(answer) => format!("{words:?}: {}{}", answer.stdout, answer.stderr),
            Err(late) => late.to_string(),
        };
        let named = words.iter().skip(1).find(|word| !word.starts_with('-'));
        let why = named.map(|name| ask(&["why", name])).unwrap_or_default();
        format!("{}\n{why}\n{}", ask(&["ls", "--all"]), self.daemon_log())
    }

    /// Runs a verb that must succeed.
    pub(crate) fn ok(&self, words: &[&str]) -> Answer {
        let answer = self.run(words);
        assert_eq!(answer.code, 0, "{words:?}: {answer:?}\n{}", self.daemon_log());
        answer
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        self.ok(&[&["--json"], words].concat()).json()
    }

    /// Creates a session that runs a shell script with the guard.
    pub(crate) fn guarded(&self, name: &str, options: &[&str], script: &str) -> Value {
        let script = format!("{GUARD}{script}");
        self.json(&[&["new", name, "--env", "ROOT"], options, &["--", "sh", "-c", &script]].concat())
    }

    pub(crate) fn sessions(&self) -> BTreeMap<String, Value> {
        let list = self.json(&["ls", "--all"]);
        let list = list.as_array().unwrap().iter();
        list.map(|session| (session["name"].as_str().unwrap().to_owned(), session.clone())).collect()
    }

    pub(crate) fn show(&self, name: &str) -> Value {
        self.json(&["show", name])
    }

    /// The pid of a session's agent.
    pub(crate) fn pid(&self, name: &str) -> u32 {
        number(&self.show(name)["pid"])
    }

    pub(crate) fn wait(&self, name: &str, states: &str) {
        self.ok(&["wait", name, "--for", states, "--timeout", "240s"]);
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        let events = self.json(&["events"]);
        events.as_array().unwrap().clone()
    }

    /// The events of one kind and session.
    pub(crate) fn events_of(&self, name: &str, kind: &str) -> Vec<Value> {
        let of = |event: &Value| event["session"] == name && event["kind"] == kind;
        self.events().into_iter().filter(of).collect()
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        number(&self.json(&["status"])["pid"])
    }

    /// Kills the daemon with SIGKILL; returns when it is gone.
    pub(crate) fn kill_daemon(&self) {
        processes::kill(self.daemon_pid());
    }

    pub(crate) fn daemon_log(&self) -> String {
        std::fs::read_to_string(self.home.join("daemon.log")).unwrap_or_default()
    }

    /// Follows the output of a verb.
    pub(crate) fn follow(&self, words: &[&str]) -> Following {
        let mut child = self.command(words).stdout(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(child.stdout.take().unwrap());
        Following { child, lines }
    }

    /// Waits until a session's agent has printed a line that begins like this; returns the rest of it.
    pub(crate) fn printed(&self, name: &str, beginning: &str) -> String {
        let following = self.follow(&["logs", name, "-f", "-n", "1000"]);
        let line = following.until(&format!("`{beginning}` from {name}"), |line| line.starts_with(beginning));
        line[beginning.len()..].trim().to_owned()
    }

    /// Follows the events from the first one on.
    pub(crate) fn watch(&self) -> Following {
        self.follow(&["--json", "events", "-f", "--since", "0"])
    }

    /// The cases of two agents of a session at once, or of one beside something that another had started.
    pub(crate) fn doubles(&self) -> String {
        std::fs::read_to_string(self.path("doubles")).unwrap_or_default()
    }

    /// Whether a socket is this home's, by its path or through a link to it.
    fn is_ours(&self, socket: &Path) -> bool {
        let target = std::fs::read_link(socket).unwrap_or_else(|_| socket.to_owned());
        target.starts_with(&self.home)
    }

    /// Whether a process was started in a run of this home.
    pub(crate) fn is_member(&self, pid: u32) -> bool {
        processes::variable(pid, "PINFOLD_SOCKET").is_some_and(|socket| self.is_ours(Path::new(&socket)))
    }

    /// All processes started in runs of this home, by session.
    pub(crate) fn members(&self) -> BTreeMap<String, Vec<u32>> {
        let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for pid in processes::all().into_iter().filter(|pid| processes::lives(*pid) && self.is_member(*pid)) {
            if let Some(session) = processes::variable(pid, "PINFOLD_SESSION") {
                found.entry(session).or_default().push(pid);
            }
        }
        found
    }

    /// Checks what must hold at any time after any crash: events without gaps, one end for each run.
    pub(crate) fn check_history(&self) -> Vec<Value> {
        let events = self.events();
        for (index, event) in events.iter().enumerate() {
            assert_eq!(event["seq"], index as u64 + 1, "a gap in {events:#?}");
        }
        let mut ends: BTreeMap<&str, u32> = BTreeMap::new();
        for event in events.iter().filter(|event| event["kind"] == "run_exited") {
            *ends.entry(event["run"].as_str().unwrap()).or_default() += 1;
            assert!(event["verdict"].is_string(), "{event}");
        }
        let doubled: Vec<_> = ends.iter().filter(|(_, count)| **count != 1).collect();
        assert!(doubled.is_empty(), "runs with several ends: {doubled:?}");
        let started = events.iter().filter(|event| event["kind"] == "run_started");
        for event in started.filter(|event| !ends.contains_key(event["run"].as_str().unwrap())) {
            self.lives_or_ends(event);
        }
        assert_eq!(self.doubles(), "", "two agents of one session at once");
        events
    }

    /// Waits until a run is alive or its end is on disk.
    fn lives_or_ends(&self, started: &Value) {
        let until = Instant::now() + PATIENCE;
        let run = &started["run"];
        while Instant::now() < until {
            let live = self.sessions().values().any(|session| session["run"] == *run);
            if live || self.events().iter().any(|event| event["kind"] == "run_exited" && event["run"] == *run)
            {
                return;
            }
        }
        panic!("no end of {started}");
    }

    /// Waits until no process of this home's runs is alive; names those that are.
    pub(crate) fn assert_no_members(&self) {
        let members = self.members();
        assert!(members.is_empty(), "{members:?} live");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        processes::end_around(&self.root);
        if self.home.starts_with(&self.root) {
            return drop(self.temp.take());
        }
        processes::end_around(&self.home);
    }
}

/// A verb that keeps printing.
pub(crate) struct Following {
    pub(crate) child: Child,
    lines: Lines,
}

impl Following {
    /// The first line that satisfies `wanted`.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        self.lines.until(what, wanted)
    }

    /// The first event that satisfies `wanted`.
    pub(crate) fn event(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        parse(&self.until(what, |line| wanted(&parse(line))))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// No verb of a test takes longer: one that waits forever fails its test instead of holding up all others.
const LIMIT: Duration = PATIENCE;

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Answer {
    finish_within(command, LIMIT)
}

/// Runs a command that must end within this time.
#[track_caller]
pub(crate) fn finish_within(command: &mut Command, limit: Duration) -> Answer {
    try_finish(command, limit).unwrap_or_else(|late| panic!("{late}"))
}

/// A command that did not end in time.
#[derive(Debug)]
struct Late(String);

impl std::fmt::Display for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs a command to its end; kills one that takes too long.
fn try_finish(command: &mut Command, limit: Duration) -> Result<Answer, Late> {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = Output::of(&mut child);
    if !held(child.id()).ends_within(limit) {
        _ = child.kill();
        _ = child.wait();
        return Err(Late(format!("{command:?} still ran after {limit:?}")));
    }
    let status = child.wait().unwrap();
    let took = begun.elapsed();
    let (stdout, stderr) = output.whole().map_err(|late| Late(format!("{late} of {command:?}")))?;
    Ok(Answer { code: code(status), stdout, stderr, took })
}

/// The exit code of a process, as a shell gives it.
fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// The output of a child, read while it runs.
struct Output(Receiver<Vec<u8>>, Receiver<Vec<u8>>);

impl Output {
    fn of(child: &mut Child) -> Output {
        Output(reading(child.stdout.take()), reading(child.stderr.take()))
    }

    /// All output. A process that inherited the pipe and keeps it open is as wrong as a verb that does not end.
    fn whole(&self) -> Result<(String, String), Late> {
        let text = |read: &Receiver<Vec<u8>>| match read.recv_timeout(LIMIT) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(_) => Err(Late("there is no end of the output".to_owned())),
        };
        Ok((text(&self.0)?, text(&self.1)?))
    }
}

/// Waiting for a process that a test started, with a limit and an error that names it.
pub(crate) trait Ends {
    /// Waits for its end.
    fn ended(&mut self) -> ExitStatus;
    /// Waits for its end and for the end of its output.
    fn finished(self) -> Answer;
}

impl Ends for Child {
    #[track_caller]
    fn ended(&mut self) -> ExitStatus {
        if !held(self.id()).ends_within(LIMIT) {
            let words = std::fs::read(format!("/proc/{}/cmdline", self.id())).unwrap_or_default();
            panic!("{} does not end", String::from_utf8_lossy(&words).replace('\0', " "));
        }
        self.wait().unwrap()
    }

    #[track_caller]
    fn finished(mut self) -> Answer {
        let begun = Instant::now();
        let output = Output::of(&mut self);
        let status = self.ended();
        let took = begun.elapsed();
        let (stdout, stderr) = output.whole().unwrap_or_else(|late| panic!("{late}"));
        Answer { code: code(status), stdout, stderr, took }
    }
}

fn reading(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        _ = sender.send(bytes);
    });
    receiver
}

pub(crate) fn number(value: &Value) -> u32 {
    value.as_u64().and_then(|number| number.try_into().ok()).unwrap_or_else(|| panic!("{value} is no number"))
}

/// Opens a process, so that its pid cannot come to mean another.
pub(crate) fn held(pid: u32) -> Held {
    Held::open(pid).unwrap_or_else(|| panic!("process {pid} has gone"))
}

//! Where the demo is played: its own folder, the verbs run in it, and what the demo prints.

use super::processes;
use crate::output::{Paper, Shade, print, say};
use crate::signals::{self, Signals};
use pinfold_core::visible::visible;
use rustix::process::{Pid, PidfdFlags, Signal};
use serde_json::{Value, json};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// No step takes this long unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);
/// The polling interval for what has no event.
const GLANCE: Duration = Duration::from_millis(10);
/// How long an agent of the demo has to end.
const GRACE: &str = "2s";

/// Why the demo stopped early.
#[derive(Debug)]
pub(super) enum Stopped {
    /// A signal asked it to end.
    Asked,
    /// Something is not as promised.
    Failed(String),
}

/// The output of a verb.
pub(super) struct VerbOutput {
    pub(super) code: i32,
    pub(super) stdout: String,
    stderr: String,
}

impl VerbOutput {
    /// The output and errors in one line.
    pub(super) fn shown(&self) -> String {
        let (stdout, stderr) = (self.stdout.trim(), self.stderr.trim().replace('\n', "; "));
        format!("`{stdout}` and `{stderr}`, and ended with {}", self.code)
    }
}

pub(super) struct DemoStage {
    program: PathBuf,
    root: PathBuf,
    signals: Signals,
    paper: Option<Paper>,
    begun: Instant,
    steps: Vec<(String, Vec<String>)>,
}

impl DemoStage {
    /// Makes the folder. With `silent`, what the demo tells is kept instead of printed.
    pub(super) fn open(silent: bool) -> io::Result<DemoStage> {
        let signals = signals::take()?;
        let program = std::env::current_exe()?;
        let root = make_root()?;
        let paper = (!silent).then(Paper::stdout);
        Ok(DemoStage { program, root, signals, paper, begun: Instant::now(), steps: Vec::new() })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn took(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The step that began last.
    pub(super) fn at(&self) -> &str {
        self.steps.last().map_or("the beginning", |(title, _)| title)
    }

    pub(super) fn steps(&self) -> Value {
        let step = |(title, facts): &(String, Vec<String>)| json!({ "title": title, "facts": facts });
        self.steps.iter().map(step).collect()
    }

    pub(super) fn line(&self, text: &str) {
        if self.paper.is_some() {
            say(&text);
        }
    }

    pub(super) fn step(&mut self, title: &str) {
        self.steps.push((title.to_owned(), Vec::new()));
        let number = self.steps.len();
        self.line("");
        self.painted(&format!("{number}. {title}"), Shade::Good);
    }

    pub(super) fn shell(&self, words: &str) {
        self.painted(&format!("   $ {words}"), Shade::Faint);
    }

    pub(super) fn fact(&mut self, text: &str) {
        self.line(&format!("   {text}"));
        if let Some((_, facts)) = self.steps.last_mut() {
            facts.push(text.to_owned());
        }
    }

    fn painted(&self, text: &str, shade: Shade) {
        if let Some(paper) = self.paper {
            print(&format!("{}\n", paper.paint(&visible(text), shade)));
        }
    }

    pub(super) fn must(&self, holds: bool, why: impl FnOnce() -> String) -> Result<(), Stopped> {
        if holds { Ok(()) } else { Err(Stopped::Failed(why())) }
    }

    /// Makes a folder for agents to work in.
    pub(super) fn make(&self, folder: &str) -> Result<(), Stopped> {
        std::fs::create_dir(self.root.join(folder)).map_err(|error| Stopped::Failed(error.to_string()))
    }

    /// Shows and runs `pinfold new NAME OPTIONS -- sh -c SCRIPT`.
    pub(super) fn new_session(&self, name: &str, options: &[&str], script: &str) -> Result<Value, Stopped> {
        let shown: String = options.iter().map(|option| format!(" {option}")).collect();
        self.shell(&format!("pinfold new {name}{shown} -- sh -c '{script}'"));
        let words = [&["new", name], options, &["--stop-grace", GRACE, "--", "sh", "-c", script]].concat();
        self.json(&words)
    }

    pub(super) fn show(&self, name: &str) -> Result<Value, Stopped> {
        self.json(&["show", name])
    }

    /// Runs a verb that must succeed, and parses its JSON.
    pub(super) fn json(&self, words: &[&str]) -> Result<Value, Stopped> {
        let said = self.verb(&[&["--json"], words].concat())?;
        let failed = || Stopped::Failed(format!("`pinfold {}` said {}", words.join(" "), said.shown()));
        if said.code != 0 {
            return Err(failed());
        }
        serde_json::from_str(&said.stdout).map_err(|_| failed())
    }

    /// Runs a verb in the demo's home.
    pub(super) fn verb(&self, words: &[&str]) -> Result<VerbOutput, Stopped> {
        let mut child = self.start(words).map_err(|error| Stopped::Failed(error.to_string()))?;
        let ended = self.wait_for(&mut child);
        if ended.is_err() {
            _ = child.kill();
            _ = child.wait();
        }
        ended.map_err(|stopped| match stopped {
            Stopped::Failed(why) => Stopped::Failed(format!("`pinfold {}` {why}", words.join(" "))),
            Stopped::Asked => Stopped::Asked,
        })
    }

    fn start(&self, words: &[&str]) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(&self.root);
        // The caller's own pinfold must not matter here, nor that this may be inside a run of it.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PINFOLD_") || name == "NOTIFY_SOCKET" {
                command.env_remove(name);
            }
        }
        command.env("PINFOLD_HOME", self.root.join("home")).env("PINFOLD_LOCKS", self.root.join("locks"));
        // Keeps the throw-away home out of the user's list of known homes.
        command.env("XDG_STATE_HOME", self.root.join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    }

    /// Waits for a verb. Its output is read only after its end: it is far shorter than a pipe's buffer.
    fn wait_for(&self, child: &mut Child) -> Result<VerbOutput, Stopped> {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() > until => return Err(Stopped::Failed("does not end".into())),
                Ok(None) => self.glance()?,
                Err(error) => return Err(Stopped::Failed(error.to_string())),
            }
        };
        let (mut stdout, mut stderr) = (String::new(), String::new());
        _ = child.stdout.take().map(|mut pipe| pipe.read_to_string(&mut stdout));
        _ = child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut stderr));
        Ok(VerbOutput { code: status.code().unwrap_or(-1), stdout, stderr })
    }

    fn glance(&self) -> Result<(), Stopped> {
        if self.signals.end_asked() {
            return Err(Stopped::Asked);
        }
        std::thread::sleep(GLANCE);
        Ok(())
    }

    pub(super) fn pause(&self, time: Duration) -> Result<(), Stopped> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.glance()?;
        }
        Ok(())
    }

    /// Polls until `look` finds something.
    pub(super) fn until<T>(
        &self,
        what: &str,
        look: impl Fn(&DemoStage) -> Result<Option<T>, Stopped>,
    ) -> Result<T, Stopped> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            self.must(Instant::now() < until, || format!("waited too long for {what}"))?;
            self.glance()?;
        }
    }

    /// Shows and runs `kill -9 PID`, and waits until the process has ended.
    pub(super) fn kill(&self, pid: u32, whose: &str) -> Result<(), Stopped> {
        self.shell(&format!("kill -9 {pid}    # {whose}"));
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let held = number.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
        let killed = held.is_some_and(|held| rustix::process::pidfd_send_signal(&held, Signal::KILL).is_ok());
        self.must(killed, || format!("{pid}, {whose}, is not there"))?;
        self.until(&format!("the end of {pid}"), |_| Ok((!processes::lives(pid)).then_some(())))
    }

    /// Ends everything that runs and removes the folder; the error says what could not be removed.
    pub(super) fn clear(&self) -> Result<(), String> {
        if self.root.join("home/daemon.lock").exists() {
            // A killed daemon has left its agents running: the next one adopts and stops them.
            for verb in ["up", "down"] {
                self.patiently(verb);
            }
        }
        let until = Instant::now() + PATIENCE;
        while !processes::around(&self.root).is_empty() && Instant::now() < until {
            processes::end_around(&self.root);
            std::thread::sleep(GLANCE);
        }
        std::fs::remove_dir_all(&self.root).map_err(|error| error.to_string())?;
        let left = processes::around(&self.root);
        if left.is_empty() { Ok(()) } else { Err(format!("processes {left:?} do not end")) }
    }

    /// Runs a verb, ignoring signals, and gives up on one that does not end.
    fn patiently(&self, verb: &str) {
        let Ok(mut child) = self.start(&["--quiet", verb]) else { return };
        let until = Instant::now() + PATIENCE;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(GLANCE);
        }
        _ = child.kill();
        _ = child.wait();
    }
}

fn make_root() -> io::Result<PathBuf> {
    let temp = std::env::temp_dir();
    for number in 0.. {
        let root = temp.join(format!("pinfold-demo-{}-{number}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&root) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.and_then(|()| root.canonicalize()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

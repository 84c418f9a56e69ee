//! The real binary in a home of its own.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub(crate) struct Home {
    _limit: crate::limit::Limit,
    _temp: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command in the background, ended with the test.
pub(crate) struct Running {
    pub(crate) child: Child,
}

impl Home {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        Self { _limit: crate::limit::Limit::of_test(), _temp: temp, root }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        std::fs::create_dir_all(self.path(name)).unwrap();
        self.path(name)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinfold"));
        command.args(words);
        self.settle(&mut command);
        command
    }

    /// Gives a command this home, and nothing of the caller's.
    pub(crate) fn settle(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PINFOLD_") {
                command.env_remove(name);
            }
        }
        command.env("PINFOLD_HOME", self.path("home")).env("PINFOLD_LOCKS", self.path("locks"));
        // Where the homes made here are listed.
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("PINFOLD", env!("CARGO_BIN_EXE_pinfold")).current_dir(&self.root);
    }

    pub(crate) fn run(&self, words: &[&str]) -> Answer {
        finish(&mut self.command(words))
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let answer = self.run(&[&["--json"], words].concat());
        serde_json::from_str(&answer.stdout).unwrap()
    }

    /// Runs a shell script with the home in its environment; `$PINFOLD` is the binary.
    pub(crate) fn script(&self, script: &str) -> Answer {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        self.settle(&mut command);
        finish(&mut command)
    }

    /// Starts a command and waits for its first line, which says that the lock is held.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        let mut command = self.command(words);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        assert_eq!(first_line(&mut child), "ready", "{words:?}");
        Running { child }
    }

    /// Holds a resource until it is ended.
    pub(crate) fn hold(&self, resource: &str) -> Running {
        self.start(&["lock", resource, "--", "sh", "-c", "echo ready; exec sleep 1000"])
    }
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn end(&mut self) {
        // Children first: they hold the lock as well.
        for pid in children(self.pid()) {
            kill(pid, "KILL");
        }
        let _ = self.child.kill();
        self.child.ended();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends what a failed test left running: it has this home in its environment.
impl Drop for Home {
    fn drop(&mut self) {
        let marker = format!("PINFOLD_HOME={}", self.path("home").display());
        for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environ.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes()) {
                kill(entry.file_name().to_string_lossy().parse().unwrap(), "KILL");
            }
        }
    }
}

/// No verb of a test takes longer: one that waits forever fails its test instead of holding up all others.
const LIMIT: Duration = Duration::from_secs(240);

/// Runs a command to its end.
#[track_caller]
pub(crate) fn finish(command: &mut Command) -> Answer {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.finished()
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
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.try_wait().unwrap() {
                return status;
            }
            if Instant::now() >= until {
                let words = std::fs::read(format!("/proc/{}/cmdline", self.id())).unwrap_or_default();
                _ = self.kill();
                panic!("{} still ran after {LIMIT:?}", String::from_utf8_lossy(&words).replace('\0', " "));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[track_caller]
    fn finished(mut self) -> Answer {
        use std::os::unix::process::ExitStatusExt;
        let (stdout, stderr) = (reading(self.stdout.take()), reading(self.stderr.take()));
        let status = self.ended();
        let text = |read: &Receiver<Vec<u8>>| {
            let bytes = read.recv_timeout(LIMIT).expect("somebody keeps its output open");
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Answer { code, stdout: text(&stdout), stderr: text(&stderr) }
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

/// The first line that a child prints. The rest is read as well: writing into a closed pipe would end it.
#[track_caller]
pub(crate) fn first_line(child: &mut Child) -> String {
    let (sender, first) = channel();
    let pipe = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            _ = sender.send(line);
        }
    });
    first.recv_timeout(LIMIT).unwrap_or_else(|error| panic!("{error} while waiting for a first line"))
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

pub(crate) fn kill(pid: u32, signal: &str) {
    Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).stderr(Stdio::null()).status().unwrap();
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

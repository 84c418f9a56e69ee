//! The pictures of the documentation: a home that is thrown away, sessions of many kinds in it, and what the real binary shows of them.

use crate::sitting::Sitting;
use crate::svg::svg;
use pinfold_terminal::Size;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// No program of a scene takes longer.
const WITHIN: Duration = Duration::from_secs(60);
/// As wide as a terminal usually is, and higher than any page here.
const WIDE: u16 = 80;
const HIGH: u16 = 60;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The window of the terminal UI: too narrow for the column of memory, which comes with the first reading.
const WINDOW: (u16, u16) = (28, 80);

/// A picture of a verb: the name of its file, without `.svg`, what it shows, and the words after `pinfold`.
const PICTURES: [(&str, &str, &[&str]); 2] = [
    ("ls", "pinfold ls: sessions of many kinds, each with its state and why it is so", &["ls"]),
    ("show", "pinfold show: everything about one session on one page", &["show", "api"]),
];

/// A server that prints, with a process below it.
const SERVE: &str = "#!/bin/sh
echo 'listening on 127.0.0.1:8080'
echo 'GET /v1/users 200'
echo 'GET /v1/users/7 404'
tail -f /dev/null & wait
";
/// A program that cannot work.
const WORKER: &str = "#!/bin/sh
sleep 0.3
echo 'RuntimeError: cannot reach the model' >&2
exit 1
";
/// A job that fails at once.
const MIGRATE: &str = "#!/bin/sh
echo 'migration 7: column `email` exists already' >&2
exit 3
";
/// An agent that answers.
const CHAT: &str = "#!/bin/sh
while read -r line; do echo \"PINFOLD_DONE done: $line\"; done
";

/// An agent that lives in a terminal. An answer and the next prompt are one write, so that both are seen or neither.
const DESK: &str = "#!/bin/sh
printf '\\033[1;36mdesk\\033[0m, an agent in a terminal. Ask it something.\\n\\033[1m>\\033[0m '
while read -r line; do printf '\\033[32mdone:\\033[0m %s\\n\\033[1m>\\033[0m ' \"$line\"; done
";
/// An agent whose turn does not end while it is looked at.
const PLAN: &str = "#!/bin/sh
read -r line; tail -f /dev/null
";

/// Draws every picture with this binary: the name of its file, and the SVG.
///
/// # Errors
/// A verb fails, or something is not seen in time.
pub fn draw(binary: &Path) -> Outcome<Vec<(String, String)>> {
    let stage = Stage::new(binary)?;
    stage.inhabit()?;
    let verbs = PICTURES.iter();
    let verbs = verbs.map(|(name, title, words)| Ok((format!("{name}.svg"), stage.picture(title, words)?)));
    let mut pictures: Vec<(String, String)> = verbs.collect::<Outcome<_>>()?;
    pictures.push(("tui.svg".to_owned(), stage.terminal_ui()?));
    pictures.push(("attach.svg".to_owned(), stage.attach()?));
    Ok(pictures)
}

/// A home of its own, in which nothing of the caller's environment counts.
struct Stage {
    binary: PathBuf,
    root: tempfile::TempDir,
}

impl Stage {
    fn new(binary: &Path) -> Outcome<Stage> {
        // A word with a digit in it is not compared, and the rest of this name is made up.
        let root = tempfile::Builder::new().prefix("you-1").tempdir()?;
        for folder in ["you/src/api", "you/src/web", "you/notes"] {
            std::fs::create_dir_all(root.path().join(folder))?;
        }
        // The pause after a crash is longer than any scene: it is there when the picture is drawn.
        std::fs::create_dir(root.path().join("home"))?;
        std::fs::write(
            root.path().join("home/config.toml"),
            "[policy]\nbackoff_initial = \"1m\"\nbackoff_max = \"5m\"\n",
        )?;
        Ok(Stage { binary: std::fs::canonicalize(binary)?, root })
    }

    fn command(&self, program: &Path, dir: &str) -> Command {
        let mut command = Command::new(program);
        let root = self.root.path();
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8").env("TERM", "xterm-256color");
        command.env("TZ", "UTC0").env("HOME", root.join("you"));
        command.env("PINFOLD_HOME", root.join("home")).env("PINFOLD_LOCKS", root.join("locks"));
        command.current_dir(root.join("you").join(dir));
        command
    }

    fn pinfold(&self, dir: &str, words: &[&str]) -> Outcome<()> {
        let output = self.command(&self.binary, dir).args(words).output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("pinfold {words:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }

    /// A program of the scene, and the word that runs it.
    fn program(&self, path: &str, text: &str) -> Outcome<()> {
        let path = self.root.path().join("you").join(path);
        std::fs::write(&path, text)?;
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        Ok(())
    }

    /// One of each kind: one that runs, one that wants its directory, one that crashes, one that failed, one that chats, one that is stopped.
    fn inhabit(&self) -> Outcome<()> {
        self.program("src/api/serve", SERVE)?;
        self.program("src/web/worker", WORKER)?;
        self.program("src/web/migrate", MIGRATE)?;
        self.program("notes/chat", CHAT)?;
        self.program("src/plan", PLAN)?;
        self.pinfold(
            "src/api",
            &["new", "api", "--dir", ".", "--tag", "team", "--memory", "512M", "--", "./serve"],
        )?;
        self.pinfold("src/api", &["new", "review", "--dir", ".", "--", "./serve"])?;
        let plan = ["new", "plan", "--mode", "on-demand", "--turns", "done", "--", "./plan"];
        self.pinfold("src", &plan)?;
        self.pinfold("src", &["send", "plan", "split the work into steps"])?;
        self.pinfold("src/web", &["new", "worker", "--", "./worker"])?;
        self.pinfold("src/web", &["new", "migrate", "--mode", "once", "--", "./migrate"])?;
        let chat = ["--mode", "on-demand", "--turns", "done", "--idle", "1ms", "--", "./chat"];
        self.pinfold("notes", &[&["new", "notes"], &chat[..]].concat())?;
        self.pinfold("notes", &["send", "notes", "what is left to do?", "--wait", "30s"])?;
        self.pinfold("notes", &[&["new", "drafts"], &chat[..]].concat())?;
        self.pinfold("notes", &["stop", "drafts"])?;
        self.pinfold("notes", &["send", "drafts", "shorten the first part"])?;
        self.pinfold("src", &["wait", "plan", "--for", "running", "--timeout", "30s"])?;
        self.pinfold("notes", &["wait", "notes", "--for", "idle", "--timeout", "30s"])?;
        self.pinfold("notes", &["wait", "migrate", "--for", "failed", "--timeout", "30s"])?;
        self.pinfold("notes", &["wait", "worker", "--for", "backoff", "--timeout", "30s"])
    }

    /// What a verb shows on a terminal, below the line that was typed.
    fn picture(&self, title: &str, words: &[&str]) -> Outcome<String> {
        let sitting = Sitting::begin(&self.typed(words), Size::new(HIGH, WIDE))?;
        sitting.until_its_end(WITHIN)?;
        Ok(sitting.look(|terminal| svg(terminal, title)))
    }

    /// A verb, after a line that shows its words as a shell would.
    fn typed(&self, words: &[&str]) -> Command {
        let mut command = self.command(Path::new("/bin/sh"), "src");
        command.args(["-c", "printf '\\033[1m$ pinfold %s\\033[0m\\n' \"$*\"; exec \"$0\" \"$@\""]);
        command.arg(&self.binary).args(words);
        command
    }

    /// The list of the terminal UI, and what the selected session prints.
    fn terminal_ui(&self) -> Outcome<String> {
        let mut command = self.command(&self.binary, "src");
        command.arg("tui");
        let sitting = Sitting::begin(&command, Size::new(WINDOW.0, WINDOW.1))?;
        sitting.until("drafts", WITHIN)?;
        // The pane is whole once it has the runs of the session; the line of keys is painted last.
        sitting.until(" runs\n", WITHIN)?;
        sitting.until("  ? help", WITHIN)?;
        Ok(sitting.look(|terminal| {
            svg(terminal, "pinfold, the terminal UI: who needs you first, and what the selected one does")
        }))
    }

    /// A terminal that is joined and typed into, before it is left.
    fn attach(&self) -> Outcome<String> {
        self.program("notes/desk", DESK)?;
        self.pinfold("notes", &["new", "desk", "--pty", "--", "./desk"])?;
        let sitting = Sitting::begin(&self.typed(&["attach", "desk"]), Size::new(HIGH, WIDE))?;
        sitting.until("Ask it something", WITHIN)?;
        sitting.keys(b"list what is left to do\r")?;
        sitting.until("done: list", WITHIN)?;
        Ok(sitting
            .look(|terminal| svg(terminal, "pinfold attach: a session's terminal, joined and typed into")))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        _ = self.pinfold("src", &["down"]);
    }
}

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
/// High enough for the list and for what there is to say of one.
const LINES: u16 = 28;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A picture: the name of its file, without `.svg`, what it shows, and the words after `pinfold`.
const PICTURES: [(&str, &str, &[&str]); 2] = [
    ("ls", "pinfold ls: sessions of many kinds, each with its state and why it is so", &["ls"]),
    ("show", "pinfold show: everything about one session on one page", &["show", "api"]),
];

/// The same of something that stays on its terminal, with what is done there before it is drawn.
const SCREENS: [(&str, &str, &[&str], &[Step]); 4] = [
    (
        "tui",
        "pinfold, the terminal UI: who waits for you comes first, with everything about the selected one below",
        &[],
        &[Step::Until("1 waiting for you"), Step::Until("── deploy"), Step::Until("\n output\n")],
    ),
    (
        "tui-search",
        "the terminal UI while a word is searched for, in names, messages and answers",
        &[],
        &[
            Step::Until("── deploy"),
            Step::Keys(b"/the"),
            Step::Until("“split"),
            Step::Until("“shorten"),
            Step::Until("\n runs\n"),
        ],
    ),
    (
        "tui-screen",
        "the terminal UI with the live screen of a session, which is looked at and not attached to",
        &[],
        &[Step::Until("── deploy"), Step::Keys(b"v"), Step::Until("3. No")],
    ),
    (
        "attach",
        "pinfold attach: the terminal of an agent as it was left, with what it asks",
        &["attach", "deploy"],
        &[Step::Until("3. No")],
    ),
];

/// What somebody at a terminal does.
enum Step {
    Keys(&'static [u8]),
    /// Waits until a text is there.
    Until(&'static str),
}

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

/// An agent whose turn does not end while it is looked at.
const PLAN: &str = "#!/bin/sh
read -r line; tail -f /dev/null
";

/// An agent on a terminal that asks something, and calls for a person.
const DEPLOY: &str = "#!/bin/sh
printf '\\033[1mdeploy\\033[0m  build 41 is green, staging answers\\n\\n'
printf '\\033[33m●\\033[0m The old build is in the way. May I run this?\\n\\n'
printf '    \\033[1mrm -rf build && ./publish\\033[0m\\n\\n'
printf '  \\033[36m❯ 1. Yes\\033[0m\\n    2. Yes, and do not ask again\\n    3. No, and tell me what to do instead\\n'
printf '\\033]9;permission to run rm -rf build && ./publish\\a'
tail -f /dev/null
";

/// Draws every picture with this binary: the name of its file, and the SVG.
///
/// # Errors
/// A verb fails, or something is not seen in time.
pub fn draw(binary: &Path) -> Outcome<Vec<(String, String)>> {
    let stage = Stage::new(binary)?;
    stage.inhabit()?;
    let pictures = PICTURES.iter().map(|(name, title, words)| (name, stage.picture(title, words)));
    let mut drawn: Vec<_> = pictures.collect();
    stage.program("src/deploy", DEPLOY)?;
    stage.pinfold("src", &["new", "deploy", "--pty", "--mode", "once", "--", "./deploy"])?;
    drawn.extend(SCREENS.iter().map(|(name, title, words, steps)| (name, stage.screen(title, words, steps))));
    drawn.into_iter().map(|(name, picture)| Ok((format!("{name}.svg"), picture?))).collect()
}

/// A home of its own, in which nothing of the caller's environment counts.
struct Stage {
    binary: PathBuf,
    root: tempfile::TempDir,
}

impl Stage {
    fn new(binary: &Path) -> Outcome<Stage> {
        let root = tempfile::tempdir()?;
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

    /// What a verb shows on a terminal, below the line that somebody typed.
    fn picture(&self, title: &str, words: &[&str]) -> Outcome<String> {
        let mut command = self.command(Path::new("/bin/sh"), "src");
        command.args(["-c", "printf '\\033[1m$ pinfold %s\\033[0m\\n' \"$*\"; exec \"$0\" \"$@\""]);
        command.arg(&self.binary).args(words);
        let sitting = Sitting::begin(&command, Size::new(HIGH, WIDE))?;
        sitting.until_its_end(WITHIN)?;
        Ok(sitting.look(|terminal| svg(terminal, title)))
    }

    /// What is on the terminal when all of this was done.
    fn screen(&self, title: &str, words: &[&str], steps: &[Step]) -> Outcome<String> {
        let mut command = self.command(&self.binary, "src");
        command.args(words);
        let sitting = Sitting::begin(&command, Size::new(LINES, WIDE))?;
        for step in steps {
            match step {
                Step::Keys(keys) => sitting.keys(keys)?,
                Step::Until(text) => sitting.until(text, WITHIN)?,
            }
        }
        sitting.until_it_rests();
        Ok(sitting.look(|terminal| svg(terminal, title)))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        _ = self.pinfold("src", &["down"]);
    }
}

//! Runs the command lines of every page as they are written.

use crate::page::{Block, Page, pages, root};
use crate::program::folder;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Longer than any page takes on a busy machine: a page that waits forever is ended, and named.
const SECONDS: &str = "180";

/// A reader's machine, thrown away at the end.
struct Reader {
    temp: tempfile::TempDir,
}

impl Reader {
    fn new() -> Reader {
        let reader = Reader { temp: tempfile::tempdir().unwrap() };
        let made = "mkdir -p ~/src/api ~/bin && cd ~/src/api && git init -q -b main && echo 'hello' >README \
             && git add . && git -c user.name=me -c user.email=me@localhost commit -q -m first";
        let output = reader.shell(made);
        assert!(output.status.success(), "{output:?}");
        reader
    }

    fn home(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap()
    }

    fn shell(&self, script: &str) -> Output {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", SECONDS, "bash", "-c", script]);
        self.place(&mut command);
        command.output().unwrap()
    }

    /// Gives a command an environment with nothing of the tester's but programs.
    fn place(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env_clear().current_dir(self.home()).stdin(Stdio::null()).process_group(0);
        command.env("PATH", format!("{}:{path}", folder().display())).env("HOME", self.home());
        command.envs([("LANG", "C.UTF-8"), ("TERM", "dumb"), ("SHELL", "/bin/bash"), ("USER", "me")]);
        // The lock folder comes from the password file, whatever HOME says.
        command.env("PINFOLD_LOCKS", self.home().join("locks")).env("REPOSITORY", root());
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        _ = self.shell("pinfold down");
    }
}

/// The blocks of a page to run: not those marked as not run, and those that need programs only if wanted.
fn runnable(page: &Page, with_programs: bool) -> Vec<Block> {
    let blocks =
        page.blocks().into_iter().filter(|block| block.has_commands() && block.mark("not run").is_none());
    let blocks: Vec<Block> = blocks.collect();
    let needs = blocks.iter().any(|block| block.mark("needs").is_some());
    if needs == with_programs { blocks } else { Vec::new() }
}

/// One script for all blocks. The exit code of each line counts; a console block that shows an error expects one.
fn script(page: &Page, blocks: &[Block]) -> String {
    let mut script = "set -eE\ntrap 'echo \"failed at $where\" >&2' ERR\n".to_owned();
    for block in blocks {
        script.push_str(&format!("where={}:{}\n", page.name(), block.line));
        if let Some(first) = block.mark("first") {
            script.push_str(&format!("{first}\n"));
        }
        let shows_an_error =
            block.language == "console" && block.text.lines().any(|line| line.starts_with("error: "));
        match shows_an_error {
            true => script.push_str(&format!("if (set -e; {}); then false; fi\n", block.script().trim())),
            false => script.push_str(&block.script()),
        }
    }
    script
}

fn failure(page: &Page, blocks: &[Block]) -> Option<String> {
    let reader = Reader::new();
    for program in blocks.iter().filter_map(|block| block.mark("needs")).flat_map(str::split_whitespace) {
        let found = reader.shell(&format!("command -v {program}")).status.success();
        assert!(found, "{} needs {program}; `./test programs` installs it", page.name());
    }
    let output = reader.shell(&script(page, blocks));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (!output.status.success()).then(|| format!("{}: {}\n{out}{err}\n", page.name(), output.status))
}

/// Runs all pages, or those that `PAGE` names, and reports the output of each that fails.
fn run_all(with_programs: bool) {
    let wanted = std::env::var("PAGE").unwrap_or_default();
    let (mut failures, mut ran) = (Vec::new(), 0);
    for page in pages().iter().filter(|page| page.name().contains(&wanted)) {
        let blocks = runnable(page, with_programs);
        if !blocks.is_empty() {
            ran += blocks.len();
            failures.extend(failure(page, &blocks));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(ran > 0, "nothing was run");
    println!("{ran} blocks were run");
}

#[test]
fn every_command_line_works_as_it_is_written() {
    run_all(false);
}

#[test]
#[ignore = "needs curl, jq, python3, node and tmux, which `./test programs` installs; it runs this too"]
fn every_command_line_that_needs_other_programs_works_as_it_is_written() {
    run_all(true);
}

#[test]
fn whatever_is_not_run_says_why() {
    let reason = |block: &Block| block.mark("not run").map(str::to_owned);
    for page in pages() {
        for block in page.blocks().iter().filter(|block| block.has_commands()) {
            let words = reason(block).map(|reason| reason.split_whitespace().count());
            assert!(
                words.is_none_or(|words| words >= 3),
                "{}:{}: that is not a reason",
                page.name(),
                block.line
            );
        }
    }
}

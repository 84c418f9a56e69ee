//! Draws what a program shows on a terminal as SVG.
//!
//! `pinfold-pictures make PINFOLD FOLDER` draws the pictures of the documentation with a binary, into a folder.
//! `pinfold-pictures frame FILE [--columns N] [--rows N] [--keys TEXT] [--until TEXT] -- COMMAND...` draws anything: it types the keys,
//! waits until the text is on the screen, or for the end of the program, and writes FILE. `--keys` and `--until` may come several
//! times, and are done in their order; in keys `\e` is Escape, `\r` Return, `\t` Tab.

use pinfold_pictures::{Sitting, scenes, svg};
use pinfold_terminal::Size;
use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

const USAGE: &str = "pinfold-pictures make PINFOLD FOLDER
pinfold-pictures frame FILE [--columns N] [--rows N] [--keys TEXT] [--until TEXT] -- COMMAND...";

/// Longest wait for a text or for the end of the program.
const WITHIN: Duration = Duration::from_secs(60);

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["make", binary, folder] => make(Path::new(binary), Path::new(folder)),
        ["frame", file, ref rest @ ..] => frame(Path::new(file), rest),
        _ => Err(USAGE.into()),
    };
    if let Err(error) = done {
        _ = writeln!(std::io::stderr(), "error: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn make(binary: &Path, folder: &Path) -> Outcome {
    for (name, text) in scenes::draw(binary)? {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// What is done at the terminal before it is drawn.
enum Step {
    Keys(Vec<u8>),
    Until(String),
}

fn frame(file: &Path, words: &[&str]) -> Outcome {
    let (mut columns, mut rows, mut steps) = (80, 24, Vec::new());
    let mut words = words.iter();
    loop {
        let option = words.next().ok_or(USAGE)?;
        if *option == "--" {
            break;
        }
        let value = words.next().ok_or(USAGE)?;
        match *option {
            "--columns" => columns = value.parse()?,
            "--rows" => rows = value.parse()?,
            "--keys" => steps.push(Step::Keys(keys(value))),
            "--until" => steps.push(Step::Until((*value).to_owned())),
            _ => return Err(USAGE.into()),
        }
    }
    let program = words.next().ok_or(USAGE)?;
    let mut command = Command::new(program);
    command.args(words).envs(std::env::vars_os()).env("TERM", "xterm-256color");
    let sitting = Sitting::begin(&command, Size::new(rows, columns))?;
    for step in &steps {
        match step {
            Step::Keys(keys) => sitting.keys(keys)?,
            Step::Until(text) => sitting.until(text, WITHIN)?,
        }
    }
    if !matches!(steps.last(), Some(Step::Until(_))) {
        sitting.until_its_end(WITHIN)?;
    }
    let title = command.get_program().to_string_lossy().into_owned();
    Ok(std::fs::write(file, sitting.look(|terminal| svg(terminal, &title)))?)
}

fn keys(text: &str) -> Vec<u8> {
    text.replace("\\e", "\x1b").replace("\\r", "\r").replace("\\t", "\t").into_bytes()
}

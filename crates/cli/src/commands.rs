//! Commands that are probably mistakes: a line for a shell, a shell builtin, a folder.

use crate::output::Failure;
use pinfold_api::request::NewSession;
use pinfold_api::{ClientError, ErrorBody, ErrorKind};
use pinfold_core::quoted::quoted;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Commands that only a shell knows.
const BUILTINS: [&str; 22] = [
    ".", "alias", "bg", "cd", "eval", "exec", "export", "fg", "for", "if", "jobs", "la", "ll", "popd",
    "pushd", "set", "source", "ulimit", "umask", "unset", "until", "while",
];

/// The refusal as a failure, with a hint at what was probably meant.
pub(crate) fn better(error: ClientError, request: &NewSession) -> Failure {
    match error {
        ClientError::Refused(body) => hinted(*body, request).into(),
        ClientError::Down { .. }
        | ClientError::Broken(_)
        | ClientError::Mute(_)
        | ClientError::Stranger { .. }
        | ClientError::Garbled(_) => error.into(),
    }
}

/// The refusal with a better hint, where the command was meant for a shell or cannot be run.
pub(crate) fn hinted(body: ErrorBody, request: &NewSession) -> ErrorBody {
    let command = request.command.as_deref().unwrap_or_default();
    let (dir, agent) = (request.dir.as_deref(), request.agent.as_deref());
    // `run` keeps no session, so it has no `--force` that creates one as failed.
    let forced = body.hint.as_deref().is_some_and(|hint| hint.contains("--force"));
    let forced = if forced { "; `--force` creates the session all the same, as failed" } else { "" };
    let better = agent
        .and_then(nearly)
        .or_else(|| dir.and_then(|dir| no_directory(dir, forced)))
        .or_else(|| hint(command))
        .or_else(|| not_a_program(command, &body.message, forced));
    match better.filter(|_| body.kind == ErrorKind::BadConfig) {
        Some(hint) => body.hint(hint),
        None => body,
    }
}

/// A shipped agent whose name is nearly this one.
fn nearly(agent: &str) -> Option<String> {
    let config = pinfold_daemon::config::Config::default();
    let known: Vec<&str> = config.presets().map(|(name, _)| name).collect();
    let off = |name: &&str| strsim::osa_distance(agent, name);
    let near =
        known.iter().copied().min_by_key(off).filter(|near| off(near) <= 2 && off(near) * 2 < agent.len())?;
    (!known.contains(&agent)).then(|| format!("the nearest one is `{near}`; `pinfold agents` lists them"))
}

/// A hint for a directory that does not exist.
fn no_directory(dir: &str, forced: &str) -> Option<String> {
    let path = Path::new(dir);
    if path.is_file() {
        let around = path.parent().map(|dir| dir.display().to_string()).filter(|dir| !dir.is_empty());
        let around = around.unwrap_or_else(|| ".".to_owned());
        return Some(format!(
            "it is a file, not a directory: `--dir {}` is where it stands",
            quoted(&around)
        ));
    }
    let is_missing =
        matches!(path.symlink_metadata(), Err(error) if error.kind() == std::io::ErrorKind::NotFound);
    is_missing.then(|| format!("`mkdir -p {}` makes it{forced}", quoted(dir)))
}

/// A hint for a file that exists but is not executable.
fn not_executable(program: &str) -> Option<String> {
    let path = Path::new(program);
    let mode = path.metadata().ok().filter(std::fs::Metadata::is_file)?.permissions().mode();
    let program = quoted(program);
    (path.components().count() > 1 && mode & 0o111 == 0).then(|| {
        format!("`chmod +x {program}` makes it a program; a script is run by its shell: -- sh {program}")
    })
}

fn hint(command: &[String]) -> Option<String> {
    let program = command.first()?;
    let line = command.join(" ");
    if BUILTINS.contains(&program.as_str()) {
        return Some(format!("`{program}` is a word of the shell: -- sh -c {}", quoted(&line)));
    }
    if program.contains('=') && !program.contains('/') {
        let (name, _) = program.split_once('=')?;
        return Some(format!("`--env {name}=...` sets a variable, before the `--`"));
    }
    let shell = ["|", ">", "<", "&&", "||", ";", "&"];
    if program.contains(char::is_whitespace) && !Path::new(program).exists() {
        let words = program.split_whitespace().any(|word| shell.contains(&word));
        return Some(if command.len() == 1 && !words {
            format!("without the quotes it is a program and its words: -- {program}")
        } else {
            format!("a line for a shell is run by one: -- sh -c {}", quoted(&line))
        });
    }
    if let Some(rest) = program.strip_prefix("~/") {
        let home = std::env::var("HOME").unwrap_or_else(|_| "/home/YOU".to_owned());
        let words = std::iter::once(format!("{home}/{rest}")).chain(command[1..].iter().cloned());
        let words: Vec<String> = words.map(|word| quoted(&word).into_owned()).collect();
        return Some(format!("a shell replaces `~` only outside quotes: -- {}", words.join(" ")));
    }
    if Path::new(program).is_dir() {
        return Some(format!("`{program}` is a directory; `--dir {}` runs a program in it", quoted(program)));
    }
    not_executable(program)
}

/// A hint for a bare name that no program has: a shell may still know it.
fn not_a_program(command: &[String], message: &str, forced: &str) -> Option<String> {
    let program = command.first().filter(|program| !program.contains('/'))?;
    (message == format!("program `{program}` was not found")).then(|| {
        format!("`type {}` shows whether it is an alias or a function of your shell{forced}", quoted(program))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_for_a_shell_is_known() {
        let own_home = format!("{}/bin/run", std::env::var("HOME").unwrap_or_else(|_| "/home/YOU".into()));
        let unquoted = format!("a shell replaces `~` only outside quotes: -- {own_home} -x 'a b'");
        let rows: [(&[&str], Option<&str>); 9] = [
            (&["~/bin/run", "-x", "a b"], Some(&unquoted)),
            (&["sleep 100"], Some("without the quotes it is a program and its words: -- sleep 100")),
            (&["make && ./run"], Some("a line for a shell is run by one: -- sh -c 'make && ./run'")),
            (&["cd", "/tmp"], Some("`cd` is a word of the shell: -- sh -c 'cd /tmp'")),
            (&["ll"], Some("`ll` is a word of the shell: -- sh -c ll")),
            (&["KEY=x", "run"], Some("`--env KEY=...` sets a variable, before the `--`")),
            (&["/"], Some("`/` is a directory; `--dir /` runs a program in it")),
            (&["no-such-program"], None),
            (&[], None),
        ];
        for (command, expected) in rows {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(hint(&command).as_deref(), expected, "{command:?}");
        }
    }

    #[test]
    fn a_name_that_no_program_has_may_be_known_to_the_shell_only() {
        let hinted = |program: &str, message: &str| not_a_program(&[program.to_owned()], message, "; forced");
        let missing = "program `claude-yolo` was not found";
        let hint = "`type claude-yolo` shows whether it is an alias or a function of your shell; forced";
        assert_eq!(hinted("claude-yolo", missing).as_deref(), Some(hint));
        assert_eq!(hinted("./claude-yolo", "program `./claude-yolo` was not found"), None);
        assert_eq!(hinted("claude-yolo", "`claude-yolo`: its loader was not found"), None);
    }
}

//! Commands that are not what was meant: a line for a shell, a word of a shell, a folder.

use crate::output::Failure;
use pinfold_api::request::NewSession;
use pinfold_api::{ClientError, ErrorBody, ErrorKind};
use pinfold_core::quoted::quoted;
use std::path::Path;

/// What only a shell knows, as a command of its own.
const BUILTINS: [&str; 22] = [
    ".", "alias", "bg", "cd", "eval", "exec", "export", "fg", "for", "if", "jobs", "la", "ll", "popd",
    "pushd", "set", "source", "ulimit", "umask", "unset", "until", "while",
];

/// What was refused, with what was probably meant.
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

/// A refusal of a command that is one for a shell says so.
pub(crate) fn hinted(body: ErrorBody, request: &NewSession) -> ErrorBody {
    let command = request.command.as_deref().unwrap_or_default();
    match hint(command).filter(|_| body.kind == ErrorKind::BadConfig) {
        Some(hint) => body.hint(hint),
        None => body,
    }
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
    if Path::new(program).is_dir() {
        return Some(format!("`{program}` is a directory; `--dir {}` runs a program in it", quoted(program)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_for_a_shell_is_known() {
        let rows: [(&[&str], Option<&str>); 8] = [
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
}

//! A crontab line, where there is no systemd.

use super::{Service, run};
use crate::output::{Failure, Kind};
use crate::system_program::system_program;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// `up` returns when the daemon answers, so cron does not wait for anything. The mark is there to find the
/// line again.
pub(super) fn line(service: &Service) -> String {
    let words: Vec<String> = service.words(&["--quiet", "up"]).iter().map(|word| quoted(word)).collect();
    let set = |(name, path): &(&str, PathBuf)| format!("{name}={} ", quoted(path));
    let variables: String = service.variables.iter().map(set).collect();
    format!("@reboot {variables}{} {}\n", words.join(" "), mark(service))
}

fn mark(service: &Service) -> String {
    format!("# {}", service.name)
}

/// Quotes a word for sh in a crontab line, in which `%` would end the command.
fn quoted(word: &Path) -> String {
    let text = word.display().to_string();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@+".contains(letter);
    let quoted = if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) };
    quoted.replace('%', "\\%")
}

/// The user's crontab without our line. Earlier versions wrote a path with a line break into several lines.
fn others(table: &str, service: &Service) -> String {
    let mark = mark(service);
    table
        .replace(&line(service), "")
        .lines()
        .filter(|line| !(line.starts_with("@reboot ") && line.ends_with(&mark)))
        .fold(String::new(), |all, line| all + line + "\n")
}

/// The user's crontab; empty if there is none.
fn table() -> String {
    run("crontab", &["-l"]).unwrap_or_default()
}

fn put(table: &str, service: &Service) -> Result<(), Failure> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(Kind::Failed, format!("`crontab` cannot be used: {why}"))
            .hint(format!("have this run when the machine starts: {}", line(service).trim_end()))
    };
    let mut crontab = system_program("crontab".as_ref())
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    if let Some(mut stdin) = crontab.stdin.take() {
        stdin.write_all(table.as_bytes()).map_err(|error| failed(&error))?;
    }
    let status = crontab.wait().map_err(|error| failed(&error))?;
    if status.success() { Ok(()) } else { Err(failed(&status)) }
}

pub(super) fn install(service: &Service) -> Result<Vec<String>, Failure> {
    put(&(others(&table(), service) + &line(service)), service)?;
    Ok(vec!["a line of your crontab starts the daemon with the machine".to_owned()])
}

pub(super) fn uninstall(service: &Service) -> Result<bool, Failure> {
    let table = table();
    let others = others(&table, service);
    if others.len() == table.len() {
        return Ok(false);
    }
    put(&others, service)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::service;
    use super::*;

    #[test]
    fn the_line_is_found_again_among_others() {
        let ours = service(Some("/it's 100%"));
        let line = line(&ours);
        assert_eq!(line, "@reboot '/opt/my bin/pinfold' --home '/it'\\''s 100\\%' --quiet up # pinfold\n");
        let table = format!("0 * * * * true\n{line}@reboot other # pinfold-too\n");
        assert_eq!(others(&table, &ours), "0 * * * * true\n@reboot other # pinfold-too\n");
    }

    #[test]
    fn a_line_that_was_broken_by_a_path_is_removed_whole() {
        let ours = service(Some("/a\n@reboot touch evil #"));
        let table = format!("0 * * * * true\n{}1 * * * * true\n", line(&ours));
        assert_eq!(table.lines().count(), 4);
        assert_eq!(others(&table, &ours), "0 * * * * true\n1 * * * * true\n");
    }

    #[test]
    fn the_line_has_the_variables_that_lead_to_the_home() {
        let variables = vec![("HOME", "/h 1".into()), ("XDG_STATE_HOME", "/s%".into())];
        let line = line(&Service { variables, ..service(None) });
        let command = "'/opt/my bin/pinfold' --quiet up # pinfold\n";
        assert_eq!(line, format!("@reboot HOME='/h 1' XDG_STATE_HOME='/s\\%' {command}"));
    }
}

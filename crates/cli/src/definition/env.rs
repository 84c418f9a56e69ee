//! The variables given to a session: `--env K=V`, `--env K`, `--env-file F`.

use crate::global::Global;
use crate::output::{Failure, Kind, talk};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// More than any list of variables needs.
const LARGEST: u64 = 1 << 20;

/// The variables from files and `--env`. Later ones win, and `--env` wins over files.
pub(super) fn given(
    files: &[PathBuf],
    words: &[String],
    global: &Global,
) -> Result<Option<BTreeMap<String, String>>, Failure> {
    let mut all = BTreeMap::new();
    for file in files {
        all.extend(from_file(file, global)?);
    }
    for word in words {
        all.extend([variable(word)?]);
    }
    Ok(Some(all).filter(|all| !all.is_empty()))
}

/// `K=V` sets a variable; `K` takes it from our environment.
fn variable(word: &str) -> Result<(String, String), Failure> {
    let name = word.split('=').next().unwrap_or_default();
    if name.contains(char::is_whitespace) {
        // The part after a `=` may be a secret and is not repeated.
        return Err(Failure::new(Kind::Usage, format!("`{name}` is not the name of a variable"))
            .hint("NAME=VALUE, without spaces around the `=`, and without `export`"));
    }
    match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) => Err(Failure::new(Kind::Usage, format!("`{word}` has no variable name"))),
        None => match std::env::var(word) {
            Ok(value) => Ok((word.to_owned(), value)),
            Err(_) => Err(Failure::new(Kind::Usage, format!("the variable `{word}` is not set here"))
                .hint(format!("--env {word}=VALUE sets it"))),
        },
    }
}

/// The variables in a file. Warns if others can read it: a secret does not belong there.
fn from_file(path: &Path, global: &Global) -> Result<BTreeMap<String, String>, Failure> {
    let bad = |problem: &dyn std::fmt::Display| {
        Failure::new(Kind::BadConfig, format!("{}: {problem}", path.display()))
    };
    let file = File::open(path).map_err(|error| bad(&error))?;
    let facts = file.metadata().map_err(|error| bad(&error))?;
    if !facts.is_file() {
        return Err(bad(&"it is not a file"));
    }
    if facts.mode() & 0o177 != 0 && !global.quiet {
        let (path, mode) = (path.display(), facts.mode() & 0o777);
        talk(&format!("warning: {path} is open to others (mode {mode:04o}); `chmod 600` keeps it to you"));
    }
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| bad(&error))?;
    if text.len() as u64 > LARGEST {
        return Err(bad(&"it is larger than a mebibyte"));
    }
    parse(&text).map_err(|(line, failure)| bad(&format!("line {line}: {failure}")))
}

/// One variable per line, as with `--env`. Skips empty lines and those that begin with `#`. Nothing is unquoted.
fn parse(text: &str) -> Result<BTreeMap<String, String>, (usize, Failure)> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
    let meant = lines.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    meant.map(|(number, line)| variable(line).map_err(|failure| (number, failure))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given_here(words: &[String]) -> Result<Option<BTreeMap<String, String>>, Failure> {
        given(&[], words, &Global::default())
    }

    #[test]
    fn a_variable_is_set_taken_or_an_error() {
        let set = given_here(&["A=1=2".into(), "B=".into()]).unwrap().unwrap();
        assert_eq!((set["A"].as_str(), set["B"].as_str()), ("1=2", ""));
        assert_eq!(given_here(&[]).unwrap(), None);
        assert!(given_here(&["=x".into()]).is_err());
        for wrong in ["export KEY=sk-secret", "KEY = sk-secret", "bad line"] {
            let failure = given_here(&[wrong.into()]).unwrap_err();
            let message = failure.message();
            assert!(
                message.contains("is not the name of a variable") && !message.contains("secret"),
                "{message}"
            );
        }
        assert!(given_here(&["SURELY_NOT_SET_ANYWHERE".into()]).is_err());
    }

    #[test]
    fn a_file_has_a_variable_a_line_and_comments() {
        let all = parse("# comment\n\nA=1 2\n  # indented\nB=\"q\" # not a comment\r\nC=\n").unwrap();
        let expected = [("A", "1 2"), ("B", "\"q\" # not a comment"), ("C", "")];
        assert_eq!(all.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(), expected);
        assert_eq!(parse("A=1\n=x\n").unwrap_err().0, 2);
    }
}

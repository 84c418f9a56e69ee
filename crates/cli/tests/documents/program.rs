//! The program described by the documents.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

pub(crate) const PINFOLD: &str = env!("CARGO_BIN_EXE_pinfold");

/// The output of a verb that needs no home.
pub(crate) fn said(words: &[&str]) -> String {
    let output = Command::new(PINFOLD).args(words).env_remove("PINFOLD_HOME").output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The folder with both programs.
pub(crate) fn folder() -> &'static Path {
    let folder = Path::new(PINFOLD).parent().unwrap();
    assert!(folder.join("pinfold-shim").is_file(), "both programs are built together");
    folder
}

/// The verbs in their groups, each with its summary, as the program's help lists them.
pub(crate) fn groups() -> Vec<(String, Vec<(String, String)>)> {
    let help = said(&["--help"]);
    let mut groups: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for line in help.lines().take_while(|line| *line != "Options:") {
        let head = line.strip_suffix(':').filter(|head| !head.starts_with(' '));
        match (head, line.strip_prefix("  "), groups.last_mut()) {
            (Some(head), _, _) => groups.push((head.to_owned(), Vec::new())),
            (None, Some(row), Some((_, verbs))) => listed(row, verbs),
            (None, _, _) => {}
        }
    }
    assert!(groups.iter().map(|(_, verbs)| verbs.len()).sum::<usize>() > 30, "{groups:?}");
    groups
}

/// Parses a verb with its summary, or another line of the last summary.
fn listed(row: &str, verbs: &mut Vec<(String, String)>) {
    match (row.strip_prefix(' '), verbs.last_mut()) {
        (Some(more), Some((_, summary))) => summary.push_str(&format!(" {}", more.trim())),
        (_, _) => {
            let (verb, summary) = row.split_once(' ').unwrap();
            verbs.push((verb.to_owned(), summary.trim().to_owned()));
        }
    }
}

/// The help of each verb.
pub(crate) fn helps() -> BTreeMap<String, String> {
    let verbs = groups().into_iter().flat_map(|(_, verbs)| verbs);
    verbs.map(|(verb, _)| (verb.clone(), said(&["help", &verb]))).collect()
}

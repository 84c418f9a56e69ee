//! The keys of config.toml. Those of `[policy]`, with types and defaults, come from the daemon; what each is
//! for is written once, in the comments of `docs/config.md`, as are the other tables, which the daemon's own
//! test reads.

use super::{check, made_from};
use crate::page::root;
use pinfold_daemon::config::Settings;

/// A table of the block in `docs/config.md`: its heading, and each key with its value and comment.
struct Table {
    head: String,
    about: String,
    keys: Vec<(String, String, String)>,
}

fn tables() -> Vec<Table> {
    let page = std::fs::read_to_string(root().join("docs/config.md")).unwrap();
    let block = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let mut tables: Vec<Table> = Vec::new();
    for line in block.lines() {
        let (written, comment) = line.split_once(" # ").unwrap_or((line, ""));
        let (written, comment) = (written.trim(), comment.trim().to_owned());
        if let Some(head) = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            tables.push(Table { head: head.to_owned(), about: comment, keys: Vec::new() });
        } else if let (Some((key, value)), Some(table)) = (written.split_once(" = "), tables.last_mut()) {
            table.keys.push((key.to_owned(), value.trim().to_owned(), comment));
        } else if let (Some(more), Some(last)) =
            (line.trim().strip_prefix('#'), tables.last_mut().and_then(|table| table.keys.last_mut()))
        {
            last.2.push_str(more);
        }
    }
    tables
}

/// How a value is written, by the type that reads it.
fn kind(reads: &str) -> &'static str {
    match reads.split('<').next().unwrap_or(reads).trim() {
        "Count" => "number",
        "Span" | "Pace" => "duration",
        "Part" => "part of 1",
        "ByteSize" => "size",
        "Flag" => "true or false",
        "Word" => "word",
        _ => "value",
    }
}

/// A default value as it is written in a file.
fn written(reads: &str, debug: &str) -> String {
    match kind(reads) {
        "duration" => format!("\"{}\"", duration(debug)),
        "size" => format!("\"{}M\"", debug.parse::<u64>().unwrap() >> 20),
        "word" => format!("\"{}\"", debug.to_lowercase()),
        _ => debug.to_owned(),
    }
}

fn duration(debug: &str) -> String {
    let seconds = debug.strip_suffix('s').and_then(|number| number.parse::<u64>().ok());
    match seconds {
        Some(seconds) if seconds > 60 && seconds % 60 == 0 => format!("{}m", seconds / 60),
        Some(_) => debug.to_owned(),
        None if debug == "0ns" => "0s".to_owned(),
        None => debug.to_owned(),
    }
}

fn page() -> String {
    let tables = tables();
    let meaning = |table: &str, key: &str| {
        let table = tables.iter().find(|known| known.head == table).unwrap();
        let found = table.keys.iter().find(|(known, _, _)| known == key);
        found
            .map(|(_, _, comment)| comment.clone())
            .unwrap_or_else(|| panic!("docs/config.md does not say what `{key}` is"))
    };
    let mut page = "# Keys of config.toml\n\n".to_owned();
    page.push_str(&made_from("the tables of the daemon and the comments of docs/config.md"));
    page.push_str(
        "[config.md](../config.md) says where the file is, which value wins, and how it is read again.\n",
    );
    page.push_str("\n## `[policy]`\n\nFor all sessions; `[agents.NAME.policy]` and `[sessions.NAME.policy]` take the same keys.\n");
    page.push_str("\n| key | value | default | what for |\n|---|---|---|---|\n");
    for (key, reads, debug) in Settings::default().rows() {
        let meaning = meaning("policy", key).replace('|', "\\|");
        page.push_str(&format!("| `{key}` | {} | `{}` | {meaning} |\n", kind(reads), written(reads, &debug)));
    }
    for table in tables.iter().filter(|table| table.head != "policy" && !table.keys.is_empty()) {
        page.push_str(&format!("\n## `[{}]`\n\n", table.head));
        if !table.about.is_empty() {
            page.push_str(&format!("{}\n\n", table.about));
        }
        page.push_str("| key | as in | what for |\n|---|---|---|\n");
        for (key, value, comment) in &table.keys {
            page.push_str(&format!("| `{key}` | `{value}` | {} |\n", comment.replace('|', "\\|")));
        }
    }
    page
}

#[test]
fn the_page_of_keys_is_what_the_daemon_reads() {
    check("config.md", &page());
}

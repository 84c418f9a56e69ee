//! What is recognised by its form: ids, times, and numbers that the word before them explains.

use std::collections::BTreeMap;

/// The ids and runs seen so far, each with its number.
pub(super) type Known = BTreeMap<String, usize>;

/// Fields and words whose number differs in each run, with the placeholder to show.
const NUMBERS: [(&str, &str); 16] = [
    ("pid", "[pid]"),
    ("shim_pid", "[pid]"),
    ("ended", "[pid]"),
    ("kill", "[pid]"),
    ("-9", "[pid]"),
    ("-CONT", "[pid]"),
    ("pid_ns", "[number]"),
    ("user", "[user]"),
    ("start_ticks", "[ticks]"),
    ("uptime_ms", "[ms]"),
    ("left_ms", "[ms]"),
    ("took_ms", "[ms]"),
    ("bytes", "[bytes]"),
    ("disk_bytes", "[bytes]"),
    ("memory_bytes", "[bytes]"),
    ("process_resident_memory_bytes", "[bytes]"),
];

/// Words before a measured duration. A requested one comes after other words, and is shown.
const BEFORE_DURATION: [&str; 3] = ["after", "for", "in"];

/// What comes before a pid without a word of its own: lists of pids, file names, sentences of the demo.
const BEFORE_PID: [&str; 6] = ["[pid], ", "[pid] and ", ".new.", "pinfold-demo-", "the agents ", "daemon "];

/// The length of an id.
const ID: usize = 26;

/// What a text begins with, if there is a placeholder for it: its length and the placeholder.
pub(super) fn named(text: &str, before: &str, known: &mut Known) -> Option<(usize, String)> {
    if let Some(length) = id(text) {
        return Some((length, numbered("id", &text[..length], known)));
    }
    if let Some(length) = run(text) {
        return Some((length, numbered("run", &text[..length], known)));
    }
    if let Some(length) = like(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
        return Some((length, "[boot]".to_owned()));
    }
    // The part that tells the services of different homes apart.
    if let Some(length) = like(text, "xxxxxxxx").filter(|_| before.ends_with("pinfold-")) {
        return Some((length, "[home]".to_owned()));
    }
    // After `--since` it is an example, and the same in every run.
    if let Some(length) = moment(text).filter(|_| !before.ends_with("--since ")) {
        return Some((length, "[time]".to_owned()));
    }
    number(text, before)
}

fn numbered(kind: &str, word: &str, known: &mut Known) -> String {
    let next = 1 + known.keys().filter(|key| key.starts_with(kind)).count();
    let number = known.entry(format!("{kind} {word}")).or_insert(next);
    format!("[{kind} {number}]")
}

/// The length of an id of a session, a run or a message.
fn id(text: &str) -> Option<usize> {
    let word = text.get(..ID)?;
    let all = word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    let ends = !text[ID..].starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
    (all && ends && word.starts_with('0')).then_some(ID)
}

/// The length of the name of a run under `pinfold lock` or `pinfold run`: boot, namespace, pid, start, count.
fn run(text: &str) -> Option<usize> {
    let boot = like(text, "xxxxxxxxxxxxxxxx-")?;
    let rest = text[boot..].bytes().take_while(|byte| byte.is_ascii_hexdigit() || *byte == b'-').count();
    (text[boot..boot + rest].matches('-').count() == 3).then_some(boot + rest)
}

/// The length of a pattern of digits (0), hexadecimal digits (x) and other characters, if the text begins with it.
fn like(text: &str, pattern: &str) -> Option<usize> {
    let fits = |(byte, wanted): (u8, u8)| match wanted {
        b'0' => byte.is_ascii_digit(),
        b'x' => byte.is_ascii_hexdigit(),
        other => byte == other,
    };
    let all = text.len() >= pattern.len() && text.bytes().zip(pattern.bytes()).all(fits);
    all.then_some(pattern.len())
}

/// The length of a time: RFC 3339, or as shown to people.
fn moment(text: &str) -> Option<usize> {
    let forms = ["0000-00-00T00:00:00.000Z", "0000-00-00T00:00:00Z", "0000-00-00 00:00:00", "00:00:00"];
    forms.iter().find_map(|form| like(text, form))
}

/// A number explained by what comes before it, or by its unit.
fn number(text: &str, before: &str) -> Option<(usize, String)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return None;
    }
    if let Some(length) = of_the_demo(text, before) {
        return Some((length, "[measured]".to_owned()));
    }
    if BEFORE_PID.iter().any(|words| before.ends_with(words)) {
        return Some((length, "[pid]".to_owned()));
    }
    if let Some(length) = size(text, before) {
        return Some((length, "[size]".to_owned()));
    }
    if let Some(length) = ago(text) {
        return Some((length, "[duration]".to_owned()));
    }
    // The processes on a page are listed below its facts.
    if before.ends_with("\n              ") || before.ends_with("└─ ") {
        return Some((length, "[pid]".to_owned()));
    }
    if before.ends_with(" UTC, ")
        && let Some(length) = duration(text)
    {
        return Some((length, "[duration]".to_owned()));
    }
    let word = before.trim_end_matches([' ', '"', ':', '[', '\n']);
    let word = word.rsplit([' ', '"', '(', '\n', ',', '`']).next()?;
    if BEFORE_DURATION.contains(&word)
        && let Some(length) = duration(text)
    {
        return Some((length, "[duration]".to_owned()));
    }
    let name = NUMBERS.iter().find(|(field, _)| *field == word).map(|(_, name)| (*name).to_owned())?;
    Some((length, name))
}

/// The length of a number with its unit.
fn quantity(text: &str, units: &[&str]) -> Option<usize> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let unit = text[digits..].strip_prefix(' ').filter(|_| digits > 0)?;
    let letters = unit.bytes().take_while(u8::is_ascii_alphabetic).count();
    units.contains(&&unit[..letters]).then_some(digits + 1 + letters)
}

/// The length of a measured size: in parentheses, or of files. Limits are worded differently, and shown.
fn size(text: &str, before: &str) -> Option<usize> {
    let length = quantity(text, &["B", "KiB", "MiB", "GiB"])?;
    (before.ends_with('(') || before.ends_with("Memory: ") || text[length..].starts_with(" of files"))
        .then_some(length)
}

/// The length of a short duration in the past: `3s ago`, `2h5m ago`.
fn ago(text: &str) -> Option<usize> {
    let length = text.bytes().take_while(|byte| byte.is_ascii_digit() || b"smhd".contains(byte)).count();
    text[length..].starts_with(" ago").then_some(length)
}

/// The length of what only the demo measures: between two runs, until agents are adopted, how many processes ended.
fn of_the_demo(text: &str, before: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let count = text[digits..].starts_with(" processes ended").then_some(digits);
    let later = duration(text).filter(|length| text[*length..].starts_with(" later"));
    let adopted = duration(text).filter(|_| before.ends_with("has adopted both within "));
    count.or(later).or(adopted)
}

/// The length of a duration in words: `250 ms`, `1.5 s`, `2 h 5 min`.
fn duration(text: &str) -> Option<usize> {
    let one = |text: &str| quantity(text, &["ms", "s", "min", "h", "d"]);
    let first = one(text)?;
    let second = text[first..].strip_prefix(' ').and_then(one);
    Some(first + second.map_or(0, |length| length + 1))
}

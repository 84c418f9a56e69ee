//! The last line of a run, as one line of plain text: it is part of sentences for people.

/// This many letters say what happened; all of it is in the log.
const LONGEST: usize = 200;

/// The last of these lines that has text.
pub(crate) fn of(lines: &[String]) -> Option<String> {
    readable(lines).next()
}

/// The same, and then that line joined with the one before: on a narrow terminal they may be one.
pub(crate) fn whole(lines: &[String]) -> impl Iterator<Item = String> {
    let mut from_end = readable(lines);
    let last = from_end.next();
    let joined = from_end.next().zip(last.as_ref()).map(|(before, last)| format!("{before} {last}"));
    last.into_iter().chain(joined)
}

/// The texts of lines, in order and at full length, without terminal control sequences.
pub(crate) fn texts(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| uncut(line)).collect()
}

/// The lines that have text, the last one first.
fn readable(lines: &[String]) -> impl Iterator<Item = String> {
    lines.iter().rev().map(|line| plain(line)).filter(|line| !line.is_empty())
}

/// The text of a line: without terminal control sequences, and cut if it is long.
fn plain(line: &str) -> String {
    cut(uncut(line).trim_matches(is_frame))
}

fn uncut(line: &str) -> String {
    let mut text = String::new();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_sequence(&mut letters),
            '\u{9b}' => skip_until_final(&mut letters),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut letters),
            // What follows overwrites what was there.
            '\r' if !letters.as_str().trim().is_empty() => text.clear(),
            '\t' => text.push(' '),
            control if control.is_control() => {}
            other => text.push(other),
        }
    }
    text
}

/// What surrounds text: space, and the lines of a box.
fn is_frame(letter: char) -> bool {
    letter.is_whitespace() || ('\u{2500}'..='\u{257f}').contains(&letter)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn skip_sequence(letters: &mut std::str::Chars<'_>) {
    match letters.next() {
        Some('[') => skip_until_final(letters),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(letters),
        Some(' '..='/') => _ = letters.find(|letter| !(' '..='/').contains(letter)),
        Some(_) | None => {}
    }
}

fn skip_until_final(letters: &mut std::str::Chars<'_>) {
    _ = letters.find(|letter| ('@'..='~').contains(letter));
}

/// A string ends with BEL, ST, or ESC and a backslash.
fn skip_string(letters: &mut std::str::Chars<'_>) {
    if letters.find(|letter| ['\u{7}', '\u{9c}', '\u{1b}'].contains(letter)) == Some('\u{1b}') {
        letters.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_with_something_to_read_is_taken() {
        let lines = |all: &[&str]| of(&all.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(lines(&[]), None);
        assert_eq!(
            lines(&["one", "RuntimeError: boom", "", " \u{1b}[0m"]).as_deref(),
            Some("RuntimeError: boom")
        );
    }

    #[test]
    fn a_line_that_a_narrow_terminal_parted_is_whole_with_the_one_before() {
        let lines = ["│ bye │", "│ resume: │", "│ prog a-1 │", "╰───╯", ""].map(str::to_owned);
        assert_eq!(whole(&lines).collect::<Vec<_>>(), ["prog a-1", "resume: prog a-1"]);
        assert_eq!(whole(&lines[..1]).collect::<Vec<_>>(), ["bye"]);
        assert_eq!(whole(&[]).count(), 0);
    }

    #[test]
    fn nothing_is_left_that_a_terminal_would_obey() {
        let rows = [
            ("plain  text", "plain  text"),
            ("\u{1b}[1;31merror\u{1b}[0m: no", "error: no"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b", "ab"),
            ("\u{1b}(Bx\u{1b}Py\u{1b}\\z\u{9b}31mw\u{9d}t\u{9c}v", "xzwv"),
            ("10 %\r50 %\r100 %", "100 %"),
            ("done\r", "done"),
            ("a\tb\u{7}\u{8}\u{7f}", "a b"),
            ("cut in \u{1b}[3", "cut in"),
            ("│  in a box ─ so  │", "in a box ─ so"),
            ("╰────────╯", ""),
        ];
        for (line, expected) in rows {
            assert_eq!(plain(line), expected, "{line:?}");
        }
        let long = plain(&"é".repeat(1000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (LONGEST + 1, true));
    }
}

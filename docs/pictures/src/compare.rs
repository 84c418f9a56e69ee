//! Whether two pictures say the same: words are compared, numbers are not, because no two runs have the same
//! ones.

/// Returns the first line that differs between two pictures; `None` if they say the same.
#[must_use]
pub fn differs(one: &str, other: &str) -> Option<String> {
    let (ours, theirs) = (lines(one), lines(other));
    if ours.len() != theirs.len() {
        return Some(format!("{} lines, and {}", ours.len(), theirs.len()));
    }
    let different = ours.iter().zip(&theirs).find(|(one, other)| !is_alike(one, other));
    different.map(|(one, other)| format!("`{one}`, and `{other}`"))
}

/// Returns the text of each line; pieces with the same baseline are one line.
fn lines(picture: &str) -> Vec<String> {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for piece in picture.lines().filter(|line| line.starts_with("<text ")) {
        let feet = piece.split(" y=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let text =
            piece.split_once('>').and_then(|(_, rest)| rest.strip_suffix("</text>")).unwrap_or_default();
        match lines.last_mut().filter(|(at, _)| *at == feet) {
            Some((_, line)) => {
                line.push(' ');
                line.push_str(text);
            }
            None => lines.push((feet, text.to_owned())),
        }
    }
    lines.into_iter().map(|(_, line)| without_numbers(&line)).collect()
}

/// Treats each word that contains a digit, and the unit after it, as a number.
fn without_numbers(line: &str) -> String {
    const UNITS: [&str; 7] = ["ms", "s", "min", "h", "KiB", "MiB", "GiB"];
    let mut words: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        if word.contains(|letter: char| letter.is_ascii_digit()) {
            if words.last() != Some(&"0") {
                words.push("0");
            }
        } else if words.last() != Some(&"0") || !UNITS.contains(&word.trim_end_matches([';', ':', ',', ')']))
        {
            words.push(word);
        }
    }
    words.join(" ")
}

/// A cut line equals one that is cut elsewhere, as far as both go.
fn is_alike(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let (Some((one, _)), Some((other, _))) = (one.split_once('…'), other.split_once('…')) else {
        return false;
    };
    // The cut-off mark is a piece of its own, and stands apart.
    let (one, other) = (one.trim_end(), other.trim_end());
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(lines: &[&[&str]]) -> String {
        let line = |(row, pieces): (usize, &&[&str])| {
            pieces
                .iter()
                .map(|piece| format!("<text x=\"1\" y=\"{row}\" fill=\"a\">{piece}</text>\n"))
                .collect::<String>()
        };
        lines.iter().enumerate().map(line).collect()
    }

    #[test]
    fn numbers_may_differ_and_words_may_not() {
        let one = picture(&[&["api", "running for 3 s"], &["pid 4711, 12 MiB"]]);
        assert_eq!(
            differs(&one, &picture(&[&["api  running", "for 1 min 20 s"], &["pid 5, 980 KiB"]])),
            None
        );
        assert_eq!(
            differs(&one, &picture(&[&["api", "stopped for 3 s"], &["pid 1, 1 MiB"]])).unwrap(),
            "`api running for 0`, and `api stopped for 0`"
        );
        assert_eq!(differs(&one, &picture(&[&["api"]])).unwrap(), "2 lines, and 1");
    }

    #[test]
    fn a_line_may_be_cut_elsewhere() {
        let one = picture(&[&["is held by session `a", "…"]]);
        assert_eq!(differs(&one, &picture(&[&["is held by session `api", "…"]])), None);
        assert!(differs(&one, &picture(&[&["is held by session `x…"]])).is_some());
        assert!(differs(&one, &picture(&[&["is held by session `a"]])).is_some());
    }
}

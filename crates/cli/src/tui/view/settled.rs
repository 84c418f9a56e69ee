//! Sentences that stay true: `next run in 15 s` was right when it was told. What is said of the clock is turned into a
//! moment, so that nothing has to be asked or painted again while nothing happens.

/// A sentence with `in` and `for` a time turned into `at` and `since` a moment; `clock` says one, by milliseconds. What
/// stands between backticks is somebody else's, and stays as it is.
pub(super) fn settled(sentence: &str, told_at: u64, clock: impl Fn(u64) -> String) -> String {
    let own = |(at, part): (usize, &str)| match at % 2 {
        0 => moved(part, told_at, &clock),
        _ => part.to_owned(),
    };
    sentence.split('`').enumerate().map(own).collect::<Vec<_>>().join("`")
}

fn moved(sentence: &str, told_at: u64, clock: &impl Fn(u64) -> String) -> String {
    let mut words: Vec<&str> = sentence.split(' ').collect();
    let mut moments: Vec<String> = Vec::new();
    let mut at = 0;
    while at + 2 < words.len() {
        let Some((count, ms, end)) = time(&words[at + 1..]) else {
            at += 1;
            continue;
        };
        let moment = match words[at] {
            "in" => format!("at {}{end}", clock(told_at + ms)),
            "for" => format!("since {}{end}", clock(told_at.saturating_sub(ms))),
            _ => {
                at += 1;
                continue;
            }
        };
        moments.push(moment);
        words.splice(at..=at + count, ["\0"]);
        at += 1;
    }
    let mut moments = moments.into_iter();
    let put = |word: &str| if word == "\0" { moments.next().unwrap_or_default() } else { word.to_owned() };
    words.into_iter().map(put).collect::<Vec<_>>().join(" ")
}

/// A time at the front of these words: how many they are, its milliseconds, and the sign behind it.
fn time<'a>(words: &[&'a str]) -> Option<(usize, u64, &'a str)> {
    let (first, end) = part(words)?;
    match part(&words[2..]).filter(|_| end.is_empty()) {
        Some((second, end)) => Some((4, first + second, end)),
        None => Some((2, first, end)),
    }
}

/// `15 s`, in milliseconds, and the sign behind it.
fn part<'a>(words: &[&'a str]) -> Option<(u64, &'a str)> {
    let number: f64 = words.first()?.parse().ok()?;
    let unit = words.get(1)?;
    let bare = unit.trim_end_matches([';', ',', '.', ':', ')']);
    let scale = match bare {
        "ms" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    Some(((number * scale) as u64, &unit[bare.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_clock_is_said_of_a_moment() {
        let rows = [
            ("running for 3 min; a turn is under way", "running since 820; a turn is under way"),
            ("parks in 4 min 59 s unless it is needed", "parks at 1299 unless it is needed"),
            ("crashed 6 times in a row, next run in 1.5 s", "crashed 6 times in a row, next run at 1001"),
            ("held by pid 9 (claude, for 2 h 5 min)", "held by pid 9 (claude, since 0)"),
            ("waits in vain for 12 apples", "waits in vain for 12 apples"),
            (
                "exited with 1: `again in 3 s`; next run in 1 s",
                "exited with 1: `again in 3 s`; next run at 1001",
            ),
            ("", ""),
        ];
        for (told, settled_as) in rows {
            assert_eq!(settled(told, 1_000_000, |ms| (ms / 1000).to_string()), settled_as, "{told}");
        }
    }
}

//! Sentences that stay true. `next run in 15 s` was right when it was told; the time span is turned into a
//! time of day, so that nothing has to be requested or painted again while nothing happens.

/// Replaces `in` and `for` a time, and a time `ago`, span by `at` and `since` a time; `clock` formats a time in milliseconds.
/// Text between backticks is quoted from elsewhere and stays as it is.
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
        if let Some((count, moment)) = moment(&words[at..], told_at, clock) {
            moments.push(moment);
            words.splice(at..at + count, ["\0"]);
        }
        at += 1;
    }
    let mut moments = moments.into_iter();
    let put = |word: &str| if word == "\0" { moments.next().unwrap_or_default() } else { word.to_owned() };
    words.into_iter().map(put).collect::<Vec<_>>().join(" ")
}

/// What is said of the clock at the front of these words: how many they are, and the moment instead.
fn moment(words: &[&str], told_at: u64, clock: &impl Fn(u64) -> String) -> Option<(usize, String)> {
    let (before, after) = (|ms| clock(told_at.saturating_sub(ms)), |ms| clock(told_at + ms));
    match *words.first()? {
        "in" => time(&words[1..]).map(|(count, ms, end)| (count + 1, format!("at {}{end}", after(ms)))),
        "for" => time(&words[1..]).map(|(count, ms, end)| (count + 1, format!("since {}{end}", before(ms)))),
        _ => {
            let (count, ms, _) = time(words)?;
            let end = words.get(count)?.strip_prefix("ago")?;
            Some((count + 1, format!("at {}{end}", before(ms))))
        }
    }
}

/// A time span at the front of these words: the number of words, its milliseconds, and the punctuation after it.
fn time<'a>(words: &[&'a str]) -> Option<(usize, u64, &'a str)> {
    let (first, end) = part(words)?;
    match part(&words[2..]).filter(|_| end.is_empty()) {
        Some((second, end)) => Some((4, first + second, end)),
        None => Some((2, first, end)),
    }
}

/// `15 s`, in milliseconds, and the punctuation after it.
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
            ("its terminal rang 2 min 3 s ago: look; 5 s", "its terminal rang at 877: look; 5 s"),
            ("", ""),
        ];
        for (told, settled_as) in rows {
            assert_eq!(settled(told, 1_000_000, |ms| (ms / 1000).to_string()), settled_as, "{told}");
        }
    }
}

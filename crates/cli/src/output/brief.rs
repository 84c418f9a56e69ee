//! Shortens what columns show: a path below the home directory, and a reason beside its state.

use std::borrow::Cow;

/// A directory as people write it, with `~` for the home directory.
pub(crate) fn below_home<'a>(dir: &'a str, home: Option<&str>) -> Cow<'a, str> {
    match home.and_then(|home| dir.strip_prefix(home)) {
        Some("") => "~".into(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}").into(),
        Some(_) | None => dir.into(),
    }
}

/// A reason without the state and the run's time, which have columns of their own.
pub(crate) fn without_state(why: &str) -> &str {
    let begins = ["idle: ", "starting: ", "waiting: ", "blocked: ", "stopped: ", "failed: ", "archived: "];
    if let Some(rest) = begins.iter().find_map(|begin| why.strip_prefix(begin)) {
        return rest;
    }
    if why.starts_with("stopping") {
        return why.split_once(": ").map_or(why, |(_, rest)| rest);
    }
    match why.strip_prefix("running for ") {
        Some(rest) => rest.split_once("; ").map_or("", |(_, rest)| rest),
        None => why,
    }
}

/// A sentence in which directories stand as people write them.
pub(crate) fn names_home<'a>(sentence: &'a str, home: Option<&str>) -> Cow<'a, str> {
    match home.map(|home| format!("`{home}/")) {
        Some(begin) if sentence.contains(&begin) => sentence.replace(&begin, "`~/").into(),
        Some(_) | None => sentence.into(),
    }
}

/// Who holds its directory, which has its own column too.
pub(crate) fn without_dir<'a>(why: &'a str, dir: &str) -> &'a str {
    let rest = why.strip_prefix('`').and_then(|why| why.strip_prefix(dir)?.strip_prefix("` is "));
    rest.filter(|rest| rest.starts_with("held by ")).unwrap_or(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_does_not_repeat_what_has_a_column() {
        let rows = [
            ("running for 3 min", ""),
            ("running for 3 min; a consumer is connected", "a consumer is connected"),
            ("stopping for 2 s: a person stopped it", "a person stopped it"),
            ("stopped by a person; `start` runs it again", "stopped by a person; `start` runs it again"),
            ("held by a terminal for 1 s", "held by a terminal for 1 s"),
            ("failed: exited with 3", "exited with 3"),
        ];
        for (why, told) in rows {
            assert_eq!(without_state(why), told);
        }
    }

    #[test]
    fn a_directory_below_home_begins_with_a_tilde() {
        assert_eq!(below_home("/home/u/a", Some("/home/u")), "~/a");
        assert_eq!(below_home("/home/u", Some("/home/u")), "~");
        assert_eq!(below_home("/home/user", Some("/home/u")), "/home/user");
        assert_eq!(below_home("/home/u/a", None), "/home/u/a");
    }
}

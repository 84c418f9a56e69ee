//! Settings with names of their own: filters, hooks, and what Git LFS and credential helpers run.
//!
//! Git cannot be told to ignore them, so each one that the repository or a worktree sets is overridden by
//! its name with what the user's own configuration says. The user's Git LFS keeps working.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Matches the settings that git is asked for.
pub(super) const PATTERN: &str = r"^(filter|hook|lfs|credential)\.";

/// A setting that git was asked for; a setting without a value is true.
struct Setting<'a> {
    is_users: bool,
    name: &'a [u8],
    value: Option<&'a [u8]>,
}

/// The words for `-c` that override the settings of a repository, from git's list of all settings with their
/// scopes.
///
/// # Errors
/// The first name with `=` in it: git would split the word there.
pub(super) fn overriding(listed: &[u8]) -> Result<Vec<OsString>, Vec<u8>> {
    let mut users: BTreeMap<&[u8], Vec<Option<&[u8]>>> = BTreeMap::new();
    let (mut foreign, mut hooks) = (BTreeSet::new(), BTreeSet::new());
    for setting in settings(listed).filter(|setting| names_a_program(setting.name)) {
        if let Some(hook) = hook(setting.name) {
            hooks.insert(hook);
        } else if setting.is_users {
            users.entry(setting.name).or_default().push(setting.value);
        } else {
            foreign.insert(setting.name);
        }
    }
    let mut words = Vec::new();
    for name in foreign {
        // Of a list, the empty value removes what was before it.
        words.push(word(name, Some(b""))?);
        for value in users.get(name).into_iter().flatten() {
            words.push(word(name, *value)?);
        }
    }
    for hook in hooks {
        words.push(word(&[b"hook.", hook, b".enabled"].concat(), Some(b"false"))?);
    }
    Ok(words)
}

fn word(name: &[u8], value: Option<&[u8]>) -> Result<OsString, Vec<u8>> {
    if name.contains(&b'=') {
        return Err(name.to_owned());
    }
    let word = value.map_or_else(|| name.to_owned(), |value| [name, b"=", value].concat());
    Ok(OsString::from_vec(word))
}

/// Parses records of a scope and a setting: `scope NUL name LF value NUL`.
fn settings(listed: &[u8]) -> impl Iterator<Item = Setting<'_>> {
    let mut parts = listed.split(|byte| *byte == 0);
    std::iter::from_fn(move || {
        let (scope, setting) = (parts.next()?, parts.next()?);
        let end = setting.iter().position(|byte| *byte == b'\n');
        let (name, value) = match end {
            Some(end) => (&setting[..end], Some(&setting[end + 1..])),
            None => (setting, None),
        };
        Some(Setting { is_users: matches!(scope, b"system" | b"global"), name, value })
    })
}

/// Whether a setting can make git, or a program that git starts, run another program. Git LFS reads its
/// settings without regard to case.
fn names_a_program(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    match name.split_once('.') {
        Some(("filter", _)) => true,
        Some(("hook", rest)) => rest.contains('.'),
        Some(("credential", rest)) => rest == "helper" || rest.ends_with(".helper"),
        Some(("lfs", rest)) => {
            ["extension.", "customtransfer."].iter().any(|begin| rest.starts_with(begin))
                || rest.ends_with("standalonetransferagent")
        }
        Some(_) | None => false,
    }
}

/// The name of a configured hook.
fn hook(name: &[u8]) -> Option<&[u8]> {
    let rest = name.strip_prefix(b"hook.")?;
    let end = rest.iter().rposition(|byte| *byte == b'.')?;
    Some(&rest[..end])
}

/// The names of the filters among overriding words that would have written files, and do not with the user's
/// own settings either.
pub(super) fn filters(words: &[OsString]) -> Vec<String> {
    let mut values: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    for word in words.iter().map(|word| word.as_bytes()) {
        let end = word.iter().position(|byte| *byte == b'=').unwrap_or(word.len());
        values.insert(&word[..end], &word[end..]);
    }
    let left_out = values.into_iter().filter(|(_, value)| *value == b"=").filter_map(|(name, _)| {
        let name = name.strip_prefix(b"filter.")?;
        let filter = name.strip_suffix(b".smudge").or_else(|| name.strip_suffix(b".process"))?;
        Some(String::from_utf8_lossy(filter).into_owned())
    });
    left_out.collect::<BTreeSet<String>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overridden(listed: &str) -> Result<String, String> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let words = overriding(listed.as_bytes()).map_err(text)?;
        Ok(words.into_iter().map(|word| text(word.into_vec())).collect::<Vec<_>>().join(" | "))
    }

    #[test]
    fn only_what_a_repository_sets_is_overridden_and_by_what_the_user_says() {
        let lfs = "global\0filter.lfs.clean\ngit-lfs clean -- %f\0global\0filter.lfs.required\0";
        let rows = [
            ("", ""),
            (lfs, ""),
            ("system\0filter.a.clean\nx\0", ""),
            ("local\0filter.a.clean\nx\0", "filter.a.clean="),
            ("worktree\0filter.a b.process\nx\ny\0", "filter.a b.process="),
            ("local\0filter.a.required\0", "filter.a.required="),
            ("submodule\0filter.a.clean\nx\0", "filter.a.clean="),
            (
                &format!("{lfs}local\0filter.lfs.clean\nevil\0local\0filter.lfs.required\nfalse\0"),
                "filter.lfs.clean= | filter.lfs.clean=git-lfs clean -- %f | filter.lfs.required= | \
                 filter.lfs.required",
            ),
            (
                "global\0credential.helper\na\0global\0credential.helper\nb\0local\0credential.helper\n!c\0",
                "credential.helper= | credential.helper=a | credential.helper=b",
            ),
            ("local\0lfs.CustomTransfer.x.path\n/evil\0", "lfs.CustomTransfer.x.path="),
            ("local\0lfs.standalonetransferagent\nx\0", "lfs.standalonetransferagent="),
            ("local\0lfs.url\nhttps://x\0local\0credential.username\nme\0local\0hook.jobs\n2\0", ""),
        ];
        for (listed, expected) in rows {
            assert_eq!(overridden(listed).as_deref(), Ok(expected), "{listed:?}");
        }
    }

    #[test]
    fn a_hook_does_not_run_whoever_configured_it() {
        let listed = "global\0hook.a.b.command\nx\0local\0hook.c.event\npost-checkout\0";
        assert_eq!(overridden(listed).as_deref(), Ok("hook.a.b.enabled=false | hook.c.enabled=false"));
    }

    #[test]
    fn a_name_that_cannot_be_overridden_is_an_error() {
        let name = "filter.a=b.clean";
        assert_eq!(overridden(&format!("local\0{name}\nx\0")).unwrap_err(), name);
        assert_eq!(overridden(&format!("global\0{name}\nx\0")).as_deref(), Ok(""));
    }

    #[test]
    fn the_filters_that_write_files_are_named() {
        let words =
            ["filter.a.b.smudge=", "filter.c.clean=", "filter.d.process=", "filter.d.smudge=", "lfs.x="];
        assert_eq!(filters(&words.map(OsString::from)), ["a.b", "d"]);
    }
}

//! Names for a session without one: from its directory, then with its agent, then with a number.

/// The longest allowed name.
const LONGEST: usize = 64;
/// This many sessions of one directory and agent must be a mistake.
const MOST: usize = 1000;

/// The names to try, in order: `DIRNAME`, `DIRNAME-AGENT`, `DIRNAME-AGENT-2`, and so on.
pub(crate) fn made(dir: &str, agent: &str) -> impl Iterator<Item = String> {
    let dir = fitting(dir.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
    let both = fitting(&format!("{dir}-{agent}"));
    let numbered = {
        let both = both.clone();
        (2..=MOST).map(move |number| {
            let end = format!("-{number}");
            format!("{}{end}", &both[..both.len().min(LONGEST - end.len())])
        })
    };
    [dir, both].into_iter().chain(numbered)
}

/// A text with `-` for what a name may not contain; `session` if nothing is left, as for the root directory.
fn fitting(text: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let word: String = text.chars().map(|letter| if fits(letter) { letter } else { '-' }).collect();
    let word = word.trim_matches(['-', '.']);
    let word = &word[..word.len().min(LONGEST)];
    if word.is_empty() { "session".to_owned() } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_the_directory_then_of_the_agent_then_of_a_number() {
        let names = |dir: &str| made(dir, "claude").take(4).collect::<Vec<_>>().join(" ");
        assert_eq!(names("/home/u/src/api"), "api api-claude api-claude-2 api-claude-3");
        assert_eq!(
            names("/home/u/My Work (old)/"),
            "My-Work--old My-Work--old-claude My-Work--old-claude-2 My-Work--old-claude-3"
        );
        assert_eq!(names("/"), "session session-claude session-claude-2 session-claude-3");
        assert_eq!(names("/srv/会議"), "session session-claude session-claude-2 session-claude-3");
    }

    #[test]
    fn every_made_name_is_a_name() {
        let long = "x".repeat(200);
        for dir in ["/.hidden", "/-rf", &long, "/a b", "/é"] {
            for name in made(dir, "command").take(12) {
                assert!(name.parse::<pinfold_api::Name>().is_ok(), "{dir}: {name}");
            }
        }
    }
}

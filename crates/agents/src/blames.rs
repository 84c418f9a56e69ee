//! What the text of an error means, for agents with no code for it, and what the end of a turn says of the
//! account.

use crate::observation::{LimitReach, LimitStatus};
use crate::turn::{FailureKind, TurnFailure};
use crate::word::{AgentWord, How};

/// Phrases that agents and vendors use for a limit.
const LIMITS: [&str; 6] = [
    "rate limit",
    "rate_limit",
    "usage limit",
    "too many requests",
    "request rejected (429)",
    "exhausted your",
];

/// Returns the kind of failure that a text describes: by an HTTP status at its start, or by words for a
/// limit.
pub(crate) fn kind(text: &str) -> FailureKind {
    let status =
        text.split(|letter: char| !letter.is_ascii_digit()).next().and_then(|word| word.parse().ok());
    match status {
        Some(429) => FailureKind::Limit,
        Some(401 | 403) => FailureKind::Login,
        Some(503 | 529) => FailureKind::Overloaded,
        Some(500..600) => FailureKind::Server,
        Some(_) | None if says_limit(text) => FailureKind::Limit,
        Some(_) | None => FailureKind::Other,
    }
}

fn says_limit(text: &str) -> bool {
    let text = text.to_lowercase();
    LIMITS.iter().any(|words| text.contains(words))
}

/// Returns what the end of a turn says of the account. A limit is reported once, until a turn has gone well.
pub(crate) fn account(limited: &mut bool, how: &How) -> Option<AgentWord> {
    match how {
        How::Done => {
            *limited = false;
            None
        }
        How::Failed(TurnFailure { kind: FailureKind::Limit, .. }) => {
            let told = std::mem::replace(limited, true);
            let limit = LimitStatus { reach: LimitReach::Reached, until: None, window: None, used: None };
            (!told).then_some(AgentWord::Limit(limit))
        }
        How::Failed(TurnFailure { kind: FailureKind::Login, text }) => Some(AgentWord::Login(text.clone())),
        How::Failed(_) | How::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_or_the_words_for_a_limit_say_what_kind_of_failure_it_is() {
        let rows = [
            ("429 mock error", FailureKind::Limit),
            ("exceeded retry limit, last status: 429 Too Many Requests", FailureKind::Limit),
            ("You\u{2019}ve hit your usage limit.", FailureKind::Limit),
            ("401 Unauthorized", FailureKind::Login),
            ("500", FailureKind::Server),
            ("503", FailureKind::Overloaded),
            ("529 overloaded_error", FailureKind::Overloaded),
            ("404 mock error", FailureKind::Other),
            ("4290 lines were printed", FailureKind::Other),
            ("", FailureKind::Other),
        ];
        for (text, expected) in rows {
            assert_eq!(kind(text), expected, "{text}");
        }
    }
}

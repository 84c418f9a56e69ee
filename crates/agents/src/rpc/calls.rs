//! Our unanswered requests, and what each is for.

use super::id::Id;
use serde::{Deserialize, Serialize};

/// No more are kept: older ones will never be answered.
const MOST: usize = 64;

/// Our open requests, by the number of their word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Calls<P>(Vec<Call<P>>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Call<P> {
    number: u64,
    #[serde(rename = "for")]
    purpose: P,
}

impl<P> Default for Calls<P> {
    fn default() -> Calls<P> {
        Calls(Vec::new())
    }
}

impl<P> Calls<P> {
    /// Records a request that was said.
    pub(crate) fn said(&mut self, number: u64, purpose: P) {
        let surplus = (self.0.len() + 1).saturating_sub(MOST);
        self.0.drain(..surplus);
        self.0.push(Call { number, purpose });
    }

    /// Returns the request that an answer belongs to, and its purpose. Each is answered once.
    pub(crate) fn answered(&mut self, id: &Id) -> Option<(u64, P)> {
        let number = id.number()?;
        let at = self.0.iter().position(|call| call.number == number)?;
        let Call { number, purpose } = self.0.remove(at);
        Some((number, purpose))
    }

    /// Returns the oldest request with such a purpose.
    pub(crate) fn oldest(&self, is: impl Fn(&P) -> bool) -> Option<u64> {
        self.0.iter().find(|call| is(&call.purpose)).map(|call| call.number)
    }

    /// Forgets requests up to this one, because they will not be answered any more.
    pub(crate) fn forget_before(&mut self, number: u64) {
        self.0.retain(|call| call.number > number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_once_and_by_its_own_id() {
        let mut calls = Calls::default();
        calls.said(1, "initialize");
        calls.said(3, "prompt");
        assert_eq!(calls.answered(&Id::Number(2)), None);
        assert_eq!(calls.answered(&Id::Text("3".into())), Some((3, "prompt")));
        assert_eq!(calls.answered(&Id::Number(3)), None);
        assert_eq!(calls.answered(&Id::Number(1)), Some((1, "initialize")));
    }

    #[test]
    fn requests_that_are_never_answered_are_not_kept_without_end() {
        let mut calls = Calls::default();
        (1..=1000).for_each(|number| calls.said(number, ()));
        assert_eq!(calls.0.len(), MOST);
        assert_eq!(calls.answered(&Id::Number(1000)), Some((1000, ())));
        assert_eq!(calls.answered(&Id::Number(1)), None);
    }

    #[test]
    fn the_oldest_of_a_kind_is_known_until_a_later_one_is_answered() {
        let mut calls = Calls::default();
        (1..=4).for_each(|number| calls.said(number, number > 1));
        assert_eq!(calls.oldest(|prompt| *prompt), Some(2));
        calls.forget_before(3);
        assert_eq!((calls.oldest(|prompt| *prompt), calls.answered(&Id::Number(3))), (Some(4), None));
    }

    #[test]
    fn they_are_written_as_they_are_read() {
        let mut calls = Calls::default();
        calls.said(3, "prompt".to_owned());
        let text = serde_json::to_string(&calls).unwrap();
        assert_eq!(text, r#"[{"number":3,"for":"prompt"}]"#);
        assert_eq!(serde_json::from_str::<Calls<String>>(&text).unwrap(), calls);
    }
}

//! The agent's requests for things that pinfold does not offer. Each is refused in a handshake step of its
//! own, as soon as nothing else needs to be said.

use super::id::Id;
use crate::translate::RunView;
use crate::word::{AgentWord, Want};
use serde::{Deserialize, Serialize};

/// Steps from here on are refusals; a handshake has fewer steps.
const FIRST: u32 = 1000;
/// No more are kept waiting.
const MOST: usize = 64;

/// The requests to be refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Refusals {
    waiting: Vec<Refusal>,
    /// How many there have been.
    count: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Refusal {
    step: u32,
    id: Id,
}

impl Refusals {
    /// Adds a request that pinfold does not offer.
    pub(crate) fn add(&mut self, id: Id) {
        if self.waiting.len() < MOST && id.fits() {
            self.waiting.push(Refusal { step: FIRST.saturating_add(self.count), id });
            self.count = self.count.saturating_add(1);
        }
    }

    /// Records a handshake step that was said.
    pub(crate) fn said(&mut self, step: u32) {
        self.waiting.retain(|refusal| refusal.step != step);
    }

    /// Returns the request that this step refuses.
    pub(crate) fn at(&self, step: u32) -> Option<&Id> {
        self.waiting.iter().find(|refusal| refusal.step == step).map(|refusal| &refusal.id)
    }

    /// Asks for the next refusal if nothing else needs to be said, so as not to displace that.
    pub(crate) fn follow(&self, words: &mut Vec<AgentWord>, see: &RunView<'_>) {
        let wanted =
            see.ledger.want().is_some() || words.iter().any(|word| matches!(word, AgentWord::Want(_)));
        let first = self.waiting.first().filter(|_| !wanted);
        words.extend(first.map(|refusal| AgentWord::Want(Want::Handshake(refusal.step))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::RunLedger;
    use crate::setup::Setup;
    use pinfold_core::Wall;

    fn next(refusals: &Refusals, mut words: Vec<AgentWord>) -> Vec<AgentWord> {
        let (setup, ledger) = (Setup::default(), RunLedger::default());
        refusals.follow(&mut words, &RunView { setup: &setup, ledger: &ledger, at: Wall(0) });
        words
    }

    #[test]
    fn each_request_is_refused_once_and_in_its_turn() {
        let mut refusals = Refusals::default();
        refusals.add(Id::Number(0));
        refusals.add(Id::Text("x".into()));
        let want = |step| vec![AgentWord::Want(Want::Handshake(step))];
        assert_eq!(next(&refusals, Vec::new()), want(1000));
        assert_eq!(next(&refusals, want(2)), want(2), "the handshake goes first");
        assert_eq!(refusals.at(1000), Some(&Id::Number(0)));
        refusals.said(1000);
        assert_eq!((refusals.at(1000), next(&refusals, Vec::new())), (None, want(1001)));
        refusals.said(1001);
        assert_eq!(next(&refusals, Vec::new()), []);
        refusals.add(Id::Number(0));
        assert_eq!(next(&refusals, Vec::new()), want(1002), "a step is never used again");
    }

    #[test]
    fn requests_without_end_and_without_bound_are_not_kept() {
        let mut refusals = Refusals::default();
        refusals.add(Id::Text("x".repeat(2000)));
        (0..1000).for_each(|number| refusals.add(Id::Number(number)));
        assert_eq!((refusals.waiting.len(), refusals.at(1000)), (MOST, Some(&Id::Number(0))));
    }
}

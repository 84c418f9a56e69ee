//! The way back to whoever asked something of a session.

use super::why_not::WhyNot;
use pinfold_core::decision::Answer;
use tokio::sync::oneshot;

/// Whoever waits for the answer of a session. Dropped without one, they hear why nothing can be recorded.
pub(crate) struct Reply(oneshot::Sender<Result<Answer, WhyNot>>);

impl Reply {
    pub(crate) fn new() -> (Reply, oneshot::Receiver<Result<Answer, WhyNot>>) {
        let (sender, receiver) = oneshot::channel();
        (Reply(sender), receiver)
    }

    /// Answers; whoever has gone does not want to know.
    pub(crate) fn give(self, answer: Answer) {
        _ = self.0.send(Ok(answer));
    }

    pub(crate) fn refuse(self, why: WhyNot) {
        _ = self.0.send(Err(why));
    }
}

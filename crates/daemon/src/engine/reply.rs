//! The way back to whoever asked something of a session.

use super::why_not::WhyNot;
use pinfold_core::decision::Answer;
use tokio::sync::oneshot;

/// Whoever waits for the answer of a session. Dropped without one, they hear why nothing can be recorded.
pub(crate) struct Reply(Waits);

/// Where an answer goes.
enum Waits {
    For(oneshot::Sender<Result<Answer, WhyNot>>),
    Then(Box<dyn FnOnce(Result<Answer, WhyNot>) + Send>),
}

impl Reply {
    pub(crate) fn new() -> (Reply, oneshot::Receiver<Result<Answer, WhyNot>>) {
        let (sender, receiver) = oneshot::channel();
        (Reply(Waits::For(sender)), receiver)
    }

    /// Answers; whoever has gone does not want to know.
    pub(crate) fn give(self, answer: Answer) {
        self.tell(Ok(answer));
    }

    pub(crate) fn refuse(self, why: WhyNot) {
        self.tell(Err(why));
    }

    /// An answer that is passed on in other words. It is given by the loop: nothing in it may wait.
    pub(crate) fn then(then: impl FnOnce(Result<Answer, WhyNot>) + Send + 'static) -> Reply {
        Reply(Waits::Then(Box::new(then)))
    }

    fn tell(self, answer: Result<Answer, WhyNot>) {
        match self.0 {
            Waits::For(sender) => _ = sender.send(answer),
            Waits::Then(then) => then(answer),
        }
    }
}

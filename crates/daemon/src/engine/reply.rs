//! The way back to a client that asked something of a session.

use super::why_not::WhyNot;
use pinfold_core::decision::Answer;
use tokio::sync::oneshot;

/// The reply to a request. Dropped without an answer, it says why nothing can be recorded.
pub(crate) struct ReplyHandle(Waits);

/// Where an answer goes.
enum Waits {
    For(oneshot::Sender<Result<Answer, WhyNot>>),
    Then(Box<dyn FnOnce(Result<Answer, WhyNot>) + Send>),
}

impl ReplyHandle {
    pub(crate) fn new() -> (ReplyHandle, oneshot::Receiver<Result<Answer, WhyNot>>) {
        let (sender, receiver) = oneshot::channel();
        (ReplyHandle(Waits::For(sender)), receiver)
    }

    /// Sends the answer; a client that has gone does not want it.
    pub(crate) fn give(self, answer: Answer) {
        self.tell(Ok(answer));
    }

    pub(crate) fn refuse(self, why: WhyNot) {
        self.tell(Err(why));
    }

    /// A reply that passes the answer on in another form. The loop calls it, so it must not block.
    pub(crate) fn then(then: impl FnOnce(Result<Answer, WhyNot>) + Send + 'static) -> ReplyHandle {
        ReplyHandle(Waits::Then(Box::new(then)))
    }

    fn tell(self, answer: Result<Answer, WhyNot>) {
        match self.0 {
            Waits::For(sender) => _ = sender.send(answer),
            Waits::Then(then) => then(answer),
        }
    }
}

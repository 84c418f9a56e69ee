//! Whether the agent on a terminal wants a person: it rang, and nothing was typed since.
//!
//! What it prints right after ringing belongs to the ring, such as a dialog being drawn. What it prints later
//! shows that it goes on by itself, and then the ring no longer counts: better unknown than wrong.

use crate::protocol::ring::BellRing;
use pinfold_core::time::Wall;
use pinfold_terminal::Attention;
use std::time::{Duration, Instant};

/// What is printed this soon after a ring belongs to it.
const DRAWING: Duration = Duration::from_secs(2);
/// A bell this soon after a key is the reaction to the key.
const ANSWER: Duration = Duration::from_secs(1);
/// A repeated ring is not news sooner than this.
const NEWS: Duration = Duration::from_millis(250);

/// The bell of a terminal.
#[derive(Debug, Default)]
pub(super) struct Bell {
    ring: Option<BellRing>,
    rang: Option<Instant>,
    typed: Option<Instant>,
    untold: bool,
}

impl Bell {
    /// Something was printed; `attention` is the call that was found in it. The clocks are read only if
    /// needed.
    pub(super) fn printed(&mut self, attention: Option<Attention>, clocks: impl FnOnce() -> (Instant, Wall)) {
        if attention.is_none() && self.ring.is_none() {
            return;
        }
        let (now, at) = clocks();
        let since = |then: Option<Instant>| then.map(|then| now.saturating_duration_since(then));
        let text = match attention {
            None if since(self.rang).is_some_and(|long| long > DRAWING) => return self.over(),
            None => return,
            Some(Attention::Bell) if since(self.typed).is_some_and(|long| long < ANSWER) => return,
            Some(Attention::Bell) => None,
            Some(Attention::Notice(text)) => text,
        };
        let known = self.ring.as_ref().is_some_and(|ring| text.is_none() || ring.text == text);
        let soon = self.ring.is_some() && since(self.rang).is_some_and(|long| long < NEWS);
        self.rang = Some(now);
        if !known && !soon {
            self.ring = Some(BellRing { at, text });
            self.untold = true;
        }
    }

    /// A person typed, or a message was typed.
    pub(super) fn typed(&mut self, now: Instant) {
        self.typed = Some(now);
        self.over();
    }

    fn over(&mut self) {
        self.untold |= self.ring.take().is_some();
    }

    /// Makes a new daemon hear of a ring that still counts.
    pub(super) fn tell_again(&mut self) {
        self.untold |= self.ring.is_some();
    }

    /// Returns the news to report, if there is any.
    pub(super) fn news(&mut self) -> Option<Option<BellRing>> {
        std::mem::take(&mut self.untold).then(|| self.ring.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Desk {
        bell: Bell,
        began: Instant,
        now: Duration,
    }

    impl Desk {
        fn new() -> Desk {
            Desk { bell: Bell::default(), began: Instant::now(), now: Duration::from_secs(100) }
        }

        fn pass(&mut self, millis: u64) {
            self.now += Duration::from_millis(millis);
        }

        fn prints(&mut self, attention: Option<Attention>) -> Option<Option<Option<String>>> {
            let clocks = (self.began + self.now, Wall(self.now.as_millis() as i64));
            self.bell.printed(attention, || clocks);
            self.bell.news().map(|news| news.map(|ring| ring.text))
        }

        fn types(&mut self) -> Option<Option<BellRing>> {
            self.bell.typed(self.began + self.now);
            self.bell.news()
        }
    }

    fn notice(text: &str) -> Option<Attention> {
        Some(Attention::Notice(Some(text.to_owned())))
    }

    #[test]
    fn a_ring_counts_until_somebody_types() {
        let mut desk = Desk::new();
        assert_eq!(desk.prints(None), None);
        assert_eq!(desk.prints(Some(Attention::Bell)), Some(Some(None)));
        desk.pass(1_000);
        assert_eq!(desk.prints(None), None, "the dialog is drawn");
        desk.pass(3_600_000);
        assert_eq!(desk.types(), Some(None));
        assert_eq!(desk.types(), None);
    }

    #[test]
    fn an_agent_that_prints_on_is_not_waiting() {
        let mut desk = Desk::new();
        desk.prints(notice("look"));
        desk.pass(2_001);
        assert_eq!(desk.prints(None), Some(None));
    }

    #[test]
    fn a_bell_right_after_a_key_is_the_answer_to_it_and_a_notification_is_not() {
        let mut desk = Desk::new();
        desk.types();
        desk.pass(999);
        assert_eq!(desk.prints(Some(Attention::Bell)), None);
        assert_eq!(desk.prints(notice("done")), Some(Some(Some("done".to_owned()))));
        desk.types();
        desk.pass(1_000);
        assert_eq!(desk.prints(Some(Attention::Bell)), Some(Some(None)));
    }

    #[test]
    fn many_rings_are_one_and_another_text_is_news_after_a_moment() {
        let mut desk = Desk::new();
        assert!(desk.prints(notice("a")).is_some());
        for _ in 0..100 {
            desk.pass(1);
            assert_eq!(desk.prints(notice("b")), None);
            assert_eq!(desk.prints(Some(Attention::Bell)), None);
        }
        desk.pass(250);
        assert_eq!(desk.prints(notice("b")), Some(Some(Some("b".to_owned()))));
    }

    #[test]
    fn a_new_daemon_hears_of_a_ring_that_counts() {
        let mut desk = Desk::new();
        desk.bell.tell_again();
        assert_eq!(desk.bell.news(), None);
        desk.prints(notice("a"));
        desk.bell.tell_again();
        assert!(desk.bell.news().is_some_and(|ring| ring.is_some()));
    }
}

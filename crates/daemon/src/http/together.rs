//! Requests that many make at one moment and one fetches.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// How many answers are kept for later requests; one that comes too late fetches again.
const MOST: usize = 128;

/// Answers by key. A key names one moment, so an answer never gets old.
pub(crate) struct Together<K, V> {
    kept: Mutex<VecDeque<(K, Arc<OnceCell<V>>)>>,
}

impl<K, V> Default for Together<K, V> {
    fn default() -> Self {
        Together { kept: Mutex::default() }
    }
}

impl<K: Eq, V: Clone> Together<K, V> {
    /// The answer: another request's, or one fetched now. Failures are not kept.
    pub(crate) async fn get<E>(&self, key: K, fetch: impl Future<Output = Result<V, E>>) -> Result<V, E> {
        self.cell(key).get_or_try_init(|| fetch).await.cloned()
    }

    fn cell(&self, key: K) -> Arc<OnceCell<V>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cell)) = kept.iter().rev().find(|(known, _)| *known == key) {
            return Arc::clone(cell);
        }
        if kept.len() == MOST {
            kept.pop_front();
        }
        let cell = Arc::new(OnceCell::new());
        kept.push_back((key, Arc::clone(&cell)));
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test(flavor = "current_thread")]
    async fn what_two_ask_for_at_once_is_fetched_once() {
        let (together, fetched) = (Together::default(), Cell::new(0));
        let fetch = || async {
            tokio::task::yield_now().await;
            fetched.set(fetched.get() + 1);
            Ok::<_, ()>(fetched.get())
        };
        let both = tokio::join!(together.get(1, fetch()), together.get(1, fetch()));
        assert_eq!((both, fetched.get()), ((Ok(1), Ok(1)), 1));
        assert_eq!(together.get(2, fetch()).await, Ok(2), "another moment is another answer");
        assert_eq!(together.get(1, fetch()).await, Ok(1));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_could_not_be_fetched_is_tried_by_the_next() {
        let together = Together::<u8, u8>::default();
        assert_eq!(together.get(1, async { Err("busy") }).await, Err("busy"));
        assert_eq!(together.get(1, async { Ok::<_, &str>(7) }).await, Ok(7));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn only_the_latest_answers_are_kept() {
        let together = Together::default();
        for key in 0..=MOST {
            together.get(key, async { Ok::<_, ()>("first") }).await.unwrap();
        }
        assert_eq!(together.kept.lock().unwrap().len(), MOST);
        assert_eq!(together.get(0, async { Ok::<_, ()>("again") }).await, Ok("again"));
        assert_eq!(together.get(MOST, async { Ok::<_, ()>("again") }).await, Ok("first"));
    }
}

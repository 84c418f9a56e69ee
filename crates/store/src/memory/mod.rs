//! The back-end that ends with its process: for tests, for the simulation, and for `pinfold run`.
//!
//! It keeps the same promises as a file except one: nothing of it is left afterwards. `tables` has the rows
//! and can undo a change; `apply` turns steps into rows by the rules of `sessions`, `messages`, `runs` and
//! `events`; `query` and `lists` read.

mod apply;
mod contradiction;
mod events;
mod lists;
mod messages;
mod query;
mod runs;
mod sessions;
mod tables;

use crate::batch::Batch;
use crate::broken::BrokenSessions;
use crate::commit_error::CommitError;
use crate::journal::Journal;
use crate::open::{OpenError, Opened};
use crate::position::StorePosition;
use crate::query::Query;
use crate::ticket::{Committed, Outcome, Promise};
use crate::trouble::{Listener, Trouble};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tables::Tables;

/// How much of the past is kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// Everything.
    All,
    /// This many of the newest events, and of each session this many of the newest runs and finished messages.
    Newest(usize),
}

/// A store in memory. A thread that commits while no other does writes for all that come meanwhile.
#[derive(Debug)]
pub(crate) struct MemoryJournal {
    tables: Arc<Mutex<Tables>>,
    queue: Mutex<Queue>,
    history: History,
}

/// Batches that wait, and what the writing thread must know.
#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<(Batch, Promise)>,
    /// Whether a thread is writing and will take what waits.
    taken: bool,
    broken: BrokenSessions,
}

impl MemoryJournal {
    pub(crate) fn new(history: History) -> MemoryJournal {
        MemoryJournal { tables: Arc::default(), queue: Mutex::default(), history }
    }

    /// Returns the next batch; if there is none, the next thread that commits will write.
    fn next(&self) -> Option<(Batch, Promise)> {
        let mut queue = locked(&self.queue);
        let next = queue.jobs.pop_front();
        queue.taken = next.is_some();
        next
    }

    fn write(&self, batch: &Batch) -> Outcome {
        let mut queue = locked(&self.queue);
        let done = self.apply(batch, &queue.broken);
        match &done {
            Ok(_) => queue.broken.succeeded(batch),
            Err(_) => queue.broken.failed(batch),
        }
        done.map_err(Arc::new)
    }

    /// Applies all or nothing: no reader sees the tables in between.
    fn apply(&self, batch: &Batch, broken: &BrokenSessions) -> Result<Committed, CommitError> {
        let mut tables = locked(&self.tables);
        let mut committed = Committed::default();
        batch.parts.iter().for_each(|part| messages::add_part(&mut tables, part));
        for step in &batch.steps {
            let done =
                broken.refuse(batch, step).and_then(|()| apply::apply(&mut tables, step, &mut committed));
            if let Err(error) = done {
                tables.take_back();
                return Err(error);
            }
        }
        tables.keep();
        if !batch.is_empty() && committed.seqs.is_empty() {
            tables.steps += 1;
        }
        if let History::Newest(most) = self.history {
            apply::forget(&mut tables, batch, most);
        }
        Ok(committed)
    }
}

impl Journal for MemoryJournal {
    fn commit(&self, batch: Batch, promise: Promise) {
        {
            let mut queue = locked(&self.queue);
            queue.jobs.push_back((batch, promise));
            if std::mem::replace(&mut queue.taken, true) {
                return;
            }
        }
        while let Some((batch, promise)) = self.next() {
            let outcome = self.write(&batch);
            promise.keep(outcome);
        }
    }

    fn position(&self) -> StorePosition {
        let tables = locked(&self.tables);
        let generation = tables.generation.unwrap_or(0);
        StorePosition { generation, seq: tables.newest, steps: tables.steps, sum: 0 }
    }

    fn trouble(&self) -> Trouble {
        Trouble::None
    }

    fn on_trouble(&self, _never_called: Listener) {}

    fn give_up(&self) {}

    fn opened(&self) -> Opened {
        Opened { created: true, ..Opened::default() }
    }

    fn reader(&self) -> Result<Box<dyn Query>, OpenError> {
        Ok(Box::new(query::MemoryReader::new(Arc::clone(&self.tables))))
    }
}

/// Locks even after a panic: a thread that panicked leaves complete changes, because each is undone or kept.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AuditEvent, Backend, EventQuery, Store};
    use pinfold_core::Wall;
    use std::sync::mpsc::channel;

    #[test]
    fn a_batch_is_answered_before_commit_returns() {
        let store = crate::open(&Backend::Memory(History::All)).unwrap();
        let (sender, told) = channel();
        store.commit_then(Batch::new(), move |outcome| sender.send(outcome.is_ok()).unwrap());
        assert_eq!(told.try_recv(), Ok(true));
    }

    #[test]
    fn no_more_of_the_past_is_kept_than_was_asked_for() {
        let store = crate::open(&Backend::Memory(History::Newest(3))).unwrap();
        let event = || AuditEvent {
            at: Wall(1),
            session: None,
            run: None,
            kind: "test".into(),
            why: String::new(),
            data: serde_json::Map::new(),
        };
        for seq in 1..=50 {
            let mut batch = Batch::new();
            batch.event(event());
            assert_eq!(store.commit(batch).wait().unwrap().seqs, seq..seq + 1);
        }
        let events = store.reader().unwrap().events(&EventQuery::default()).unwrap();
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [48, 49, 50]);
    }

    #[test]
    fn what_a_callback_commits_is_written_after_it() {
        let store = crate::open(&Backend::Memory(History::All)).unwrap();
        let (sender, told) = channel();
        let again: Store = store.clone();
        store.commit_then(Batch::new(), move |_| {
            let inner = sender.clone();
            again.commit_then(Batch::new(), move |_| inner.send("second").unwrap());
            sender.send("first").unwrap();
        });
        assert_eq!(told.try_iter().collect::<Vec<_>>(), ["first", "second"]);
    }
}

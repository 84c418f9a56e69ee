//! Audit records as they come. One task reads each of them from the database, however many clients follow; a
//! client that begins, or has fallen behind, reads for itself.

use super::HttpContext;
use super::paging::PART;
use super::ring::{Fetched, RowRing};
use pinfold_store::{EventQuery, ListPage, StoredEvent};
use std::sync::Arc;
use tokio::sync::watch;

/// The latest audit records.
pub(crate) type Latest = RowRing<StoredEvent>;

/// One following client.
pub(crate) struct Following<'a> {
    context: &'a HttpContext,
    query: EventQuery,
    news: watch::Receiver<u64>,
}

impl<'a> Following<'a> {
    /// Follows the results of a query, after the number it names.
    pub(crate) fn begin(context: &'a HttpContext, query: EventQuery) -> Following<'a> {
        let (news, fetched) = context.events.join();
        if fetched == Fetched::NotYet {
            tokio::spawn(fetch(context.clone()));
        }
        Following { context, query, news }
    }

    /// Waits for the next records; `None` if the database cannot be read.
    pub(crate) async fn next(&mut self) -> Option<Vec<Arc<StoredEvent>>> {
        loop {
            self.news.borrow_and_update();
            let (rows, reached, more) = match self.context.events.after(self.query.after) {
                Some(rows) => taken(rows, self.query.after),
                None => self.read().await?,
            };
            self.query.after = reached;
            let meant: Vec<_> = rows.into_iter().filter(|row| self.is_meant(row)).collect();
            if !meant.is_empty() {
                return Some(meant);
            }
            if !more {
                self.news.changed().await.ok()?;
            }
        }
    }

    /// Reads from the database: the records, up to which number, and whether there are more.
    async fn read(&self) -> Option<(Vec<Arc<StoredEvent>>, u64, bool)> {
        let (query, durable) = (self.query.clone(), *self.context.last_event.borrow());
        let part = self.context.read(move |reader| reader.event_part(&query, query.after, u64::MAX, PART));
        let ListPage { rows, next } = part.await.ok()?;
        let last = rows.last().map_or(self.query.after, |last| last.seq);
        // What was not found up to the end is not looked for again.
        let reached = if next.is_some() { last } else { last.max(durable) };
        Some((rows.into_iter().map(Arc::new).collect(), reached, next.is_some()))
    }

    fn is_meant(&self, row: &StoredEvent) -> bool {
        self.query.session.is_none_or(|session| row.session == Some(session))
            && self.query.since.is_none_or(|since| row.at >= since)
    }
}

/// The records of the ring after a number, and up to which number.
fn taken(rows: Vec<(u64, Arc<StoredEvent>)>, after: u64) -> (Vec<Arc<StoredEvent>>, u64, bool) {
    let reached = rows.last().map_or(after, |(seq, _)| *seq);
    (rows.into_iter().map(|(_, row)| row).collect(), reached, false)
}

/// Reads every record once it is durable, until no client follows or the daemon ends.
async fn fetch(context: HttpContext) -> Option<()> {
    let mut durable = context.last_event.clone();
    let mut after = *durable.borrow_and_update();
    context.events.begin(after);
    loop {
        tokio::select! {
            changed = durable.changed() => changed.ok()?,
            () = context.events.unread() => if context.events.end_if_unread() {
                return Some(());
            } else {
                continue;
            },
        }
        loop {
            let query = EventQuery { after, ..EventQuery::default() };
            let read =
                context.read(move |reader| reader.event_part(&query, query.after, u64::MAX, PART)).await;
            let Ok(ListPage { rows, next }) = read else {
                // Each client finds out for itself what is wrong.
                after = *durable.borrow_and_update();
                context.events.begin(after);
                break;
            };
            for row in rows {
                after = row.seq;
                context.events.push(row.seq, row);
            }
            if next.is_none() {
                break;
            }
        }
    }
}

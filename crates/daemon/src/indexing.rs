//! Keeps the full-text index up to date with the database: a thread of its own, in steps of milliseconds with
//! rests between them.
//!
//! Only a search waits for it. A new message does not even wake it: it looks by itself once a minute, and at
//! every search.

use pinfold_store::search::{Follower, IndexError, Stepped};
use pinfold_store::{Reader, Store};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// The interval between looks without a search: being told of each message would slow each of them.
const EVERY: Duration = Duration::from_secs(60);
/// The delay of the first look without a search: a starting daemon has sessions to start, which need both
/// cores.
const AT_FIRST: Duration = Duration::from_secs(10);
/// Rests this many times as long as it worked, so that a home in which nothing is searched costs under 3 ms of a
/// core per second, even after the start of a thousand sessions.
const REST: u32 = 400;
/// The same once there was a search: it takes under a tenth of one core while none waits.
const REST_IF_SEARCHED: u32 = 12;

/// Shared by the thread and the searches.
#[derive(Debug)]
pub(crate) struct Indexing {
    pub(crate) path: PathBuf,
    asked: Mutex<Asked>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Asked {
    /// How many searches have begun,
    begun: u64,
    /// how many of them no longer have to wait,
    served: u64,
    /// and how many wait now.
    waiting: u64,
    /// The index is damaged and has to be rebuilt.
    distrusted: bool,
    over: bool,
}

impl Indexing {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until everything durable by now is in the index, or the time is up. Blocks.
    pub(crate) fn catch_up(&self, within: Duration) {
        let mut asked = self.lock();
        asked.begun += 1;
        asked.waiting += 1;
        let mine = asked.begun;
        self.changed.notify_all();
        let waits = |asked: &mut Asked| asked.served < mine && !asked.over;
        let (mut asked, _) =
            self.changed.wait_timeout_while(asked, within, waits).unwrap_or_else(PoisonError::into_inner);
        asked.waiting -= 1;
    }

    /// Rebuilds the index: a search found it damaged.
    pub(crate) fn distrust(&self) {
        let mut asked = self.lock();
        asked.distrusted = true;
        asked.begun += 1;
        self.changed.notify_all();
    }

    /// Waits for a search, the timeout, or the end of the daemon; returns which searches a look that begins
    /// now will serve.
    fn wanted(&self, within: Duration) -> Option<u64> {
        let rests = |asked: &mut Asked| asked.begun == asked.served && !asked.over;
        let waited = self.changed.wait_timeout_while(self.lock(), within, rests);
        let (asked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!asked.over).then_some(asked.begun)
    }

    fn serve(&self, begun: u64) {
        self.lock().served = begun;
        self.changed.notify_all();
    }

    /// Rests after work, unless a search waits; returns whether to go on.
    fn rest(&self, worked: Duration) -> bool {
        let rests = |asked: &mut Asked| asked.waiting == 0 && !asked.over;
        let asked = self.lock();
        let times = if asked.begun > 0 { REST_IF_SEARCHED } else { REST };
        let waited = self.changed.wait_timeout_while(asked, worked * times, rests);
        let (asked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !asked.over
    }
}

/// The thread, which ends with the daemon.
pub(crate) struct Indexer {
    shared: Arc<Indexing>,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    /// Starts the thread. Without a reader or a thread, searches read everything.
    pub(crate) fn begin(store: &Store, path: PathBuf) -> Indexer {
        let shared = Arc::new(Indexing { path, asked: Mutex::default(), changed: Condvar::new() });
        let own = Arc::clone(&shared);
        let thread = store.reader().ok().and_then(|reader| {
            std::thread::Builder::new().name("search".into()).spawn(move || keep(&own, &reader)).ok()
        });
        Indexer { shared, thread }
    }

    pub(crate) fn shared(&self) -> Arc<Indexing> {
        Arc::clone(&self.shared)
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
        // It reads the store, which can be closed only when there is no reader.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

fn keep(shared: &Indexing, reader: &Reader) {
    let (mut follower, mut within) = (None, AT_FIRST);
    while let Some(begun) = shared.wanted(within) {
        match look(shared, reader, &mut follower, &shared.path) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                warn!("the full-text index is not up to date: {}", crate::error_chain::chain(&error));
                follower = None;
                shared.lock().distrusted |= matches!(error, IndexError::Unusable(_));
            }
        }
        shared.serve(begun);
        within = EVERY;
    }
}

/// Indexes everything there is; returns whether the daemon goes on.
fn look(
    shared: &Indexing,
    reader: &Reader,
    kept: &mut Option<Follower>,
    path: &Path,
) -> Result<bool, IndexError> {
    let is_another = kept.as_ref().is_some_and(|follower| !follower.is_in_place());
    if std::mem::take(&mut shared.lock().distrusted) || is_another {
        *kept = None;
        warn!("the full-text index is damaged or gone, and is being rebuilt");
        *kept = Some(Follower::anew(path, &**reader)?);
    }
    let follower = match kept {
        Some(follower) => follower,
        None => kept.insert(Follower::open(path, &**reader)?),
    };
    let (begun, mut steps) = (Instant::now(), 0_u32);
    loop {
        let step = Instant::now();
        if follower.step(&**reader)? == Stepped::UpToDate {
            break;
        }
        steps += 1;
        if !shared.rest(step.elapsed()) {
            return Ok(false);
        }
    }
    if steps > 1000 {
        info!("the index of full text was made in {steps} steps and {} s", begun.elapsed().as_secs());
    }
    Ok(true)
}

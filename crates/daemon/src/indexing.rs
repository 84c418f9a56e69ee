//! Keeps the index of full text up to the database: a thread of its own, in steps of milliseconds with rests between them.
//!
//! Nobody waits for it but a search. A message's way does not even wake it: it looks by itself once a minute, and whenever
//! something is sought.

use pinfold_store::search::{Follower, IndexError, Stepped};
use pinfold_store::{Reader, Store};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Between two looks that nobody asked for: to be told of each message would cost each of them.
const EVERY: Duration = Duration::from_secs(60);
/// Before the first look that nobody asked for: a daemon that begins has sessions to start, and both cores are theirs.
const AT_FIRST: Duration = Duration::from_secs(10);
/// Rest for so many times the work, so that it takes under a tenth of one core while nobody waits.
const REST: u32 = 12;

/// What the thread and those who seek share.
#[derive(Debug)]
pub(crate) struct Indexing {
    pub(crate) path: PathBuf,
    asked: Mutex<Asked>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Asked {
    /// So many searches have begun,
    begun: u64,
    /// so many of them need not wait any more,
    served: u64,
    /// and so many wait now.
    waiting: u64,
    /// The index is damaged, and to be begun anew.
    distrusted: bool,
    over: bool,
}

impl Indexing {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until everything that is durable now is in the index, or the time is up. Blocks.
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

    /// Has the index begun anew: whoever sought in it found it damaged.
    pub(crate) fn distrust(&self) {
        let mut asked = self.lock();
        asked.distrusted = true;
        asked.begun += 1;
        self.changed.notify_all();
    }

    /// Until somebody asks, the time is up, or the daemon ends: the searches that are served by a look that begins now.
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

    /// Rests after work, unless somebody waits; whether to go on.
    fn rest(&self, worked: Duration) -> bool {
        let rests = |asked: &mut Asked| asked.waiting == 0 && !asked.over;
        let waited = self.changed.wait_timeout_while(self.lock(), worked * REST, rests);
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
    /// Begins. Where there is no reader or no thread, searches read everything.
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
        // It reads the store, which is closed when nobody does.
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

/// Takes in everything there is; whether the daemon goes on.
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

//! The daemon's store: how it is opened, what must exist before, and who is told of its troubles.

use crate::crash;
use crate::define::home::Home;
use crate::engine::Engine;
use crate::engine::input::{Handle, LoopInput};
use crate::life::StartError;
use pinfold_core::EventKind;
use pinfold_shim::client::ShimConnection;
use pinfold_shim::{Command, Report};
use pinfold_store::{CheckPace, HeldUp, Opened, Steps, Store, StoreOptions, Trouble};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A live shim answers within this time.
const ANSWER: Duration = Duration::from_millis(300);

/// The options with which the store of a home is opened.
pub(crate) fn options(home: &Home) -> StoreOptions {
    let (witness, reserve) = (Some(home.witness()), Some(home.reserve()));
    let (sessions, steps) = (Some(home.sessions()), Steps(crash::point));
    StoreOptions { witness, reserve, when_held_up: HeldUp::Wait, sessions, steps, ..StoreOptions::default() }
}

/// Opens the store of a home. A missing one is not created if sessions have left files: then it was lost.
pub(crate) fn open(home: &Home) -> Result<Store, StartError> {
    let (database, folder) = (home.database(), home.sessions());
    // With a witness or a log the store itself knows more, and reports it.
    let lost =
        is_empty(&database) && is_empty(&home.witness()) && is_empty(&database.with_extension("db-wal"));
    let count = if lost { std::fs::read_dir(&folder).map_or(0, Iterator::count) } else { 0 };
    if count > 0 {
        return Err(StartError::Missing { database, folder, count });
    }
    Ok(Store::open(&database, &options(home))?)
}

fn is_empty(file: &Path) -> bool {
    !std::fs::metadata(file).is_ok_and(|found| found.len() > 0)
}

/// The generation of this daemon. A database without a witness may be an old copy, and shims obey no
/// generation older than what they have seen: then it is above theirs.
pub(crate) fn next_generation(home: &Home, opened: Opened, stored: u64) -> u64 {
    let seen = if opened.witnessed { highest_seen(&home.runtime.join("shims")) } else { 0 };
    stored.max(seen) + 1
}

/// The highest generation that a shim of this home has seen: each refuses a lower one, and says which it
/// obeys.
fn highest_seen(sockets: &Path) -> u64 {
    let entries = std::fs::read_dir(sockets).into_iter().flatten().flatten();
    let seen = entries.filter_map(|entry| {
        let mut link = ShimConnection::connect(&entry.path()).ok()?;
        link.send(&Command::Hello { generation: 0 }).ok()?;
        match link.receive(Some(Instant::now() + ANSWER)) {
            Ok(Some(Report::Refused { generation })) => Some(generation),
            Ok(_) | Err(_) => None,
        }
    });
    seen.max().unwrap_or(0)
}

/// Tells the loop what keeps the store from being written, and logs what opening it did.
pub(crate) fn watch(engine: &Engine, handle: &Handle) {
    let told = handle.clone();
    engine.store.on_trouble(move |trouble| told.tell(LoopInput::Trouble(trouble.clone())));
    // Troubles of its first batch came before there was a listener.
    let met = engine.store.trouble();
    if met != Trouble::None {
        handle.tell(LoopInput::Trouble(met));
    }
    if engine.store.opened().witnessed {
        let why = "the database has no note of how far it was: from here on there is one";
        engine.tell_of_store(EventKind::WitnessMade, why);
    }
}

/// A check of the whole store that runs beside the daemon, and ends with it.
pub(crate) struct StoreCheck {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StoreCheck {
    /// Starts the check; tells the loop what is wrong.
    pub(crate) fn begin(store: &Store, handle: &Handle) -> StoreCheck {
        let stop = Arc::<AtomicBool>::default();
        let (pace, handle) = (CheckPace::beside(Arc::clone(&stop)), handle.clone());
        // If it cannot be started, every row is still checked when it is read.
        let thread = store.reader().ok().and_then(|mut reader| {
            let look = move || {
                let findings =
                    reader.check(&pace).unwrap_or_else(|error| vec![crate::error_chain::chain(&error)]);
                handle.tell(LoopInput::Checked(findings));
            };
            std::thread::Builder::new().name("check".into()).spawn(look).ok()
        });
        StoreCheck { stop, thread }
    }
}

impl Drop for StoreCheck {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // It reads the store, which can be closed only when there is no reader.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

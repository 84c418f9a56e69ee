//! The daemon's store: how it is opened, what must be there before, and who hears of its troubles.

use crate::crash;
use crate::define::home::Home;
use crate::engine::Engine;
use crate::engine::input::{Handle, Input};
use crate::life::StartError;
use pinfold_core::EventKind;
use pinfold_shim::client::Link;
use pinfold_shim::{Command, Report};
use pinfold_store::{CheckPace, HeldUp, Opened, Steps, Store, StoreOptions, Trouble};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A shim that lives answers within this.
const ANSWER: Duration = Duration::from_millis(300);

/// How the store of a home is opened.
pub(crate) fn options(home: &Home) -> StoreOptions {
    let (witness, reserve) = (Some(home.witness()), Some(home.reserve()));
    let (sessions, steps) = (Some(home.sessions()), Steps(crash::point));
    StoreOptions { witness, reserve, when_held_up: HeldUp::Wait, sessions, steps, ..StoreOptions::default() }
}

/// Opens the store of a home. One that is missing is not made anew where sessions have left files: then it was lost.
pub(crate) fn open(home: &Home) -> Result<Store, StartError> {
    let (database, folder) = (home.database(), home.sessions());
    // With a witness or a log the store itself knows more, and says it.
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

/// The generation of this daemon. A database without a witness may be an old copy, and shims obey none that is older
/// than what they have seen: then it is above theirs.
pub(crate) fn next_generation(home: &Home, opened: Opened, stored: u64) -> u64 {
    let seen = if opened.witnessed { highest_seen(&home.runtime.join("shims")) } else { 0 };
    stored.max(seen) + 1
}

/// The highest generation that a shim of this home has seen: each refuses a lower one, and says which it obeys.
fn highest_seen(sockets: &Path) -> u64 {
    let entries = std::fs::read_dir(sockets).into_iter().flatten().flatten();
    let seen = entries.filter_map(|entry| {
        let mut link = Link::connect(&entry.path()).ok()?;
        link.send(&Command::Hello { generation: 0 }).ok()?;
        match link.receive(Some(Instant::now() + ANSWER)) {
            Ok(Some(Report::Refused { generation })) => Some(generation),
            Ok(_) | Err(_) => None,
        }
    });
    seen.max().unwrap_or(0)
}

/// Lets the loop hear what keeps the store from being written, and says what opening it did.
pub(crate) fn watch(engine: &Engine, handle: &Handle) {
    let told = handle.clone();
    engine.store.on_trouble(move |trouble| told.tell(Input::Trouble(trouble.clone())));
    // What its first batch met was said before anybody listened.
    let met = engine.store.trouble();
    if met != Trouble::None {
        handle.tell(Input::Trouble(met));
    }
    if engine.store.opened().witnessed {
        let why = "the database has no note of how far it was: from here on there is one";
        engine.tell_of_store(EventKind::WitnessMade, why);
    }
}

/// A look at the whole store that goes on beside the daemon, and ends with it.
pub(crate) struct Look {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Look {
    /// Begins to look; what is wrong is told to the loop.
    pub(crate) fn begin(store: &Store, handle: &Handle) -> Look {
        let stop = Arc::<AtomicBool>::default();
        let (pace, handle) = (CheckPace::beside(Arc::clone(&stop)), handle.clone());
        // Where it cannot be started, there are the checks that every row gets when it is read.
        let thread = store.reader().ok().and_then(|mut reader| {
            let look = move || {
                let findings =
                    reader.check(&pace).unwrap_or_else(|error| vec![crate::error_chain::chain(&error)]);
                handle.tell(Input::Checked(findings));
            };
            std::thread::Builder::new().name("check".into()).spawn(look).ok()
        });
        Look { stop, thread }
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // It reads the store, which is closed when nobody does.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

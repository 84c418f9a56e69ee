//! The thread that reads: each run when it is due, many at one wake-up; reports only what is new.

use super::Without;
use super::meter::{Meter, MeterBuffers, MeterReading, Subject};
use super::pace::{Load, PaceStretch};
use pinfold_core::rules::memory::Reading;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tracing::warn;

/// A run to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunWatch {
    /// Its processes.
    pub subject: Subject,
    /// Its limit in bytes: the closer it comes, the sooner it is read again.
    pub limit: u64,
    /// How often it is to be read.
    pub sample: Duration,
}

/// Reads runs on a thread of its own until it is dropped; the thread starts with the first run.
///
/// A reading is reported when it differs from the last one, and every time while it is not below the limit.
pub struct Watcher<K> {
    orders: Sender<Order<K>>,
}

enum Order<K> {
    Watch(K, RunWatch),
    Confirm(K),
    Forget(K),
}

impl<K: Copy + Ord + Send + 'static> Watcher<K> {
    /// Makes a watcher that reports its readings through a function.
    pub fn new(without: Without, tell: impl FnMut(K, MeterReading) + Send + 'static) -> Watcher<K> {
        let (orders, taken) = channel();
        let (runs, scratch, begun) = (BTreeMap::new(), MeterBuffers::default(), Instant::now());
        let watching = Watching { without, tell, runs, scratch, begun, count: 0 };
        let thread = std::thread::Builder::new().name("memory".into());
        if let Err(error) = thread.spawn(move || watching.run(&taken)) {
            warn!("no thread to watch memory: {error}; runs are not drained");
        }
        Watcher { orders }
    }

    /// Begins to watch a run.
    pub fn watch(&self, key: K, watch: RunWatch) {
        self.order(Order::Watch(key, watch));
    }

    /// Reads a run exactly, at once; the answer comes as a reading from `Source::Shares`.
    pub fn confirm(&self, key: K) {
        self.order(Order::Confirm(key));
    }

    /// Stops watching a run.
    pub fn forget(&self, key: K) {
        self.order(Order::Forget(key));
    }

    fn order(&self, order: Order<K>) {
        _ = self.orders.send(order);
    }
}

struct Watching<K, F> {
    without: Without,
    tell: F,
    runs: BTreeMap<K, Watched>,
    scratch: MeterBuffers,
    begun: Instant,
    count: u32,
}

struct Watched {
    meter: Meter,
    watch: RunWatch,
    /// What a reading of it costs, as a running mean.
    cost: Duration,
    told: Option<Reading>,
    latest: Reading,
    due: Instant,
}

impl Watched {
    fn load(&self) -> Load {
        // From half the limit on it is read as often as its owner wants.
        let near = matches!(self.latest, Reading::Bytes(bytes) if bytes >= self.watch.limit / 2);
        Load { sample: self.watch.sample, cost: self.cost, near }
    }

    fn over(&self) -> bool {
        matches!(self.latest, Reading::Bytes(bytes) if bytes >= self.watch.limit)
    }

    fn note_cost(&mut self, cost: Duration) {
        self.cost = if self.cost.is_zero() { cost } else { (self.cost * (MEAN_OF - 1) + cost) / MEAN_OF };
    }
}

impl<K: Copy + Ord, F: FnMut(K, MeterReading)> Watching<K, F> {
    fn run(mut self, orders: &Receiver<Order<K>>) {
        loop {
            let order = match self.runs.values().map(|run| run.due).min() {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => orders.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match order {
                Ok(Order::Watch(key, watch)) => self.watch(key, watch),
                Ok(Order::Confirm(key)) => self.confirm(key),
                Ok(Order::Forget(key)) => _ = self.runs.remove(&key),
                Err(RecvTimeoutError::Timeout) => self.read_due(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn watch(&mut self, key: K, watch: RunWatch) {
        let meter = Meter::new(watch.subject, self.without);
        let slot = slot(watch.sample);
        // Runs that begin together are not read together.
        self.count = self.count.wrapping_add(1);
        let due = self.on_slot(Instant::now() + slot * (self.count % SLOTS), slot);
        let latest = Reading::Unknown;
        self.runs.insert(key, Watched { meter, watch, cost: Duration::ZERO, told: None, latest, due });
    }

    fn read_due(&mut self) {
        let now = Instant::now();
        let stretch = PaceStretch::of(self.runs.values().map(Watched::load));
        let begun = self.begun;
        for (key, run) in self.runs.iter_mut().filter(|(_, run)| run.due <= now) {
            let before = processor_time();
            let read = run.meter.read(&mut self.scratch);
            run.note_cost(processor_time().saturating_sub(before));
            run.latest = read.reading;
            let interval = stretch.interval(run.load());
            let slot = slot(interval);
            run.due = next_slot(begun, now + interval.saturating_sub(slot), slot).max(now + slot);
            if run.told != Some(read.reading) || run.over() {
                run.told = Some(read.reading);
                (self.tell)(*key, read);
            }
        }
    }

    fn confirm(&mut self, key: K) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        let before = processor_time();
        let read = run.meter.confirm(run.watch.limit, &mut self.scratch);
        // Part of the cost of watching this run: one that has to be confirmed each time is read rarely.
        run.cost += processor_time().saturating_sub(before) / MEAN_OF;
        run.told = Some(read.reading);
        (self.tell)(key, read);
    }

    fn on_slot(&self, at: Instant, slot: Duration) -> Instant {
        next_slot(self.begun, at, slot)
    }
}

/// About how many readings the running mean of their cost covers.
const MEAN_OF: u32 = 8;
/// How many slots the interval between two readings has; everything due in one is read at one wake-up.
const SLOTS: u32 = 5;

fn slot(interval: Duration) -> Duration {
    (interval / SLOTS).clamp(Duration::from_millis(10), Duration::from_secs(1))
}

/// The first start of a slot that is not before a moment.
fn next_slot(begun: Instant, at: Instant, slot: Duration) -> Instant {
    let since = at.saturating_duration_since(begun).as_nanos();
    let slots = since.div_ceil(slot.as_nanos().max(1));
    begun + slot * u32::try_from(slots).unwrap_or(u32::MAX)
}

/// The CPU time this thread has used.
fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Duration = Duration::from_millis(10);

    fn own() -> Subject {
        Subject { agent: std::process::id(), shim: None }
    }

    #[test]
    fn a_run_over_its_limit_is_told_each_time_and_one_below_it_only_when_it_changes() {
        let (sender, readings) = channel();
        let watcher = Watcher::new(Without::default(), move |key: u8, read| _ = sender.send((key, read)));
        watcher.watch(1, RunWatch { subject: own(), limit: 1, sample: SAMPLE });
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let still = Subject { agent: child.id(), shim: None };
        watcher.watch(2, RunWatch { subject: still, limit: u64::MAX, sample: SAMPLE });
        let mut seen = [0, 0];
        while seen[0] < 10 {
            let (key, _) = readings.recv().unwrap();
            seen[usize::from(key) - 1] += 1;
        }
        // Its first readings come while the program starts and may grow a little; later ones are not
        // reported.
        assert!((1..10).contains(&seen[1]), "{seen:?}");
        watcher.confirm(2);
        let exact = readings.iter().find(|(key, _)| *key == 2).unwrap().1;
        assert_eq!(exact.source, pinfold_core::rules::memory::ReadingSource::Shares);
        child.kill().unwrap();
        child.wait().unwrap();
        drop(watcher);
        // The thread ends, and with it the channel.
        assert!(readings.iter().count() < 1000);
    }

    #[test]
    fn slots_do_not_go_back() {
        let begun = Instant::now();
        let slot = Duration::from_millis(10);
        assert_eq!(next_slot(begun, begun, slot), begun);
        assert_eq!(next_slot(begun, begun + Duration::from_millis(11), slot), begun + slot * 2);
        assert_eq!(next_slot(begun, begun + Duration::from_millis(20), slot), begun + slot * 2);
    }
}

//! What the daemon counts and measures since its start.

use pinfold_api::object::{Metric, Sample};
use pinfold_api::word::MetricKind;
use pinfold_core::Verdict;
use pinfold_core::usage::{Figures, Money};
use pinfold_store::{Committed, Tally};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// All counters. Gauges are read where they are.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    runs: [AtomicU64; VERDICTS.len()],
    pub(crate) restarts: MetricCounter,
    pub(crate) refused_starts: MetricCounter,
    pub(crate) respawn: Histogram,
    pub(crate) commit: Histogram,
    pub(crate) fold: Histogram,
    /// Locks of runs, and locks held over HTTP.
    pub(crate) of_runs: Waits,
    pub(crate) of_holds: Waits,
    /// Events, runs and messages that retention deleted, and how long each of its steps took.
    forgotten: [MetricCounter; OF_PAST.len()],
    pruning: Histogram,
    /// Tokens read, written and cached, and billionths of a dollar.
    spent: [AtomicU64; 4],
    /// Holds being waited for, and holds held.
    pub(crate) waiting: MetricGauge,
    pub(crate) held: MetricGauge,
}

/// How long locks were waited for, and how often in vain.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) seconds: Histogram,
    pub(crate) busy: MetricCounter,
}

const OF_PAST: [&str; 3] = ["events", "runs", "messages"];

const VERDICTS: [Verdict; 7] = [
    Verdict::Clean,
    Verdict::Drained,
    Verdict::Contended,
    Verdict::Hopeless,
    Verdict::Limited,
    Verdict::OutOfMemory,
    Verdict::Crash,
];

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct MetricCounter(AtomicU64);

impl MetricCounter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// How many of something exist now.
#[derive(Debug, Default)]
pub(crate) struct MetricGauge(AtomicU64);

impl MetricGauge {
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn enter(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// From a tenth of a millisecond, which a commit takes, to a minute, as long as a person waits for a lock.
const BOUNDS: [(u64, &str); 15] = [
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (5_000_000, "5"),
    (10_000_000, "10"),
    (60_000_000, "60"),
];

/// How long something took, each time.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// How many took longer than the previous bound and at most this one; the last bucket exceeds all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.iter().position(|(bound, _)| micros <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn samples(&self, name: &str, labels: &[(&str, &str)]) -> Vec<Sample> {
        let mut count = 0;
        let bounds = BOUNDS.iter().map(|(_, bound)| *bound).chain(["+Inf"]);
        let mut all: Vec<Sample> = bounds
            .zip(&self.buckets)
            .map(|(bound, bucket)| {
                count += bucket.load(Ordering::Relaxed);
                let labels = [labels, &[("le", bound)]].concat();
                sample(&format!("{name}_bucket"), &labels, count as f64)
            })
            .collect();
        let seconds = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        all.push(sample(&format!("{name}_sum"), labels, seconds));
        all.push(sample(&format!("{name}_count"), labels, count as f64));
        all
    }
}

impl Metrics {
    pub(crate) fn run_ended(&self, verdict: Verdict) {
        if let Some(at) = VERDICTS.iter().position(|known| *known == verdict) {
            self.runs[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Everything counted since the daemon started.
    pub(crate) fn counted(&self) -> Vec<Metric> {
        let runs = VERDICTS.iter().zip(&self.runs).map(|(verdict, count)| {
            let count = count.load(Ordering::Relaxed) as f64;
            sample("pinfold_runs_total", &[("verdict", verdict.word())], count)
        });
        let restarts = self.restarts.0.load(Ordering::Relaxed) as f64;
        let refused = self.refused_starts.0.load(Ordering::Relaxed) as f64;
        let of_runs = [
            metric(
                "pinfold_runs_total",
                MetricKind::Counter,
                "Runs that ended since the daemon started, by verdict.",
                runs.collect(),
            ),
            metric(
                "pinfold_restarts_total",
                MetricKind::Counter,
                "Runs after a session's first that were started since the daemon started.",
                vec![sample("pinfold_restarts_total", &[], restarts)],
            ),
            metric(
                "pinfold_start_failed_total",
                MetricKind::Counter,
                "Starts that were refused before anything was executed, since the daemon started.",
                vec![sample("pinfold_start_failed_total", &[], refused)],
            ),
            metric(
                "pinfold_respawn_seconds",
                MetricKind::Histogram,
                "Time from the decision to run a session again to the exec of its agent, since the daemon started.",
                self.respawn.samples("pinfold_respawn_seconds", &[]),
            ),
            metric(
                "pinfold_commit_seconds",
                MetricKind::Histogram,
                "Time from a decision until it is durable, since the daemon started.",
                self.commit.samples("pinfold_commit_seconds", &[]),
            ),
            metric(
                "pinfold_fold_seconds",
                MetricKind::Histogram,
                "Time from when an agent with a protocol printed something until it was understood, since the daemon started.",
                self.fold.samples("pinfold_fold_seconds", &[]),
            ),
        ];
        of_runs.into_iter().chain(self.waits()).chain(self.retention()).chain(self.usage()).collect()
    }

    /// Adds what a turn cost.
    pub(crate) fn spent(&self, figures: Figures) {
        let Figures { input, output, cached, cost } = figures;
        for (count, more) in self.spent.iter().zip([input, output, cached, cost.map(|cost| cost.0)]) {
            count.fetch_add(more.unwrap_or(0), Ordering::Relaxed);
        }
    }

    /// What turns cost, as agents reported it.
    fn usage(&self) -> [Metric; 2] {
        let [input, output, cached, cost] = &self.spent;
        let tokens = [("input", input), ("output", output), ("cached", cached)].map(|(of, count)| {
            sample("pinfold_tokens_total", &[("of", of)], count.load(Ordering::Relaxed) as f64)
        });
        let cost = Money(cost.load(Ordering::Relaxed)).usd();
        [
            metric(
                "pinfold_tokens_total",
                MetricKind::Counter,
                "Tokens that agents reported since the daemon started; the cached ones are among those of the input.",
                tokens.into(),
            ),
            metric(
                "pinfold_cost_usd_total",
                MetricKind::Counter,
                "What agents reported as their cost since the daemon started, in US dollars.",
                vec![sample("pinfold_cost_usd_total", &[], cost)],
            ),
        ]
    }

    /// A step of retention is durable.
    pub(crate) fn pruned(&self, committed: &Committed, took: Duration) {
        let Tally { events, runs, messages, by_size: _ } = committed.pruned;
        for (count, rows) in self.forgotten.iter().zip([events, runs, messages]) {
            count.0.fetch_add(rows, Ordering::Relaxed);
        }
        self.pruning.took(took);
    }

    fn retention(&self) -> [Metric; 2] {
        let rows = OF_PAST.iter().zip(&self.forgotten).map(|(of, count)| {
            sample("pinfold_pruned_rows_total", &[("of", of)], count.0.load(Ordering::Relaxed) as f64)
        });
        [
            metric(
                "pinfold_pruned_rows_total",
                MetricKind::Counter,
                "Rows that [retention] removed from the database, since the daemon started.",
                rows.collect(),
            ),
            metric(
                "pinfold_prune_seconds",
                MetricKind::Histogram,
                "Time that each step of [retention] took until it was durable, since the daemon started.",
                self.pruning.samples("pinfold_prune_seconds", &[]),
            ),
        ]
    }

    /// How long locks were waited for, and how often in vain.
    fn waits(&self) -> [Metric; 2] {
        let waits = [("run", &self.of_runs), ("hold", &self.of_holds)];
        let seconds = waits
            .iter()
            .flat_map(|(of, waits)| waits.seconds.samples("pinfold_lock_wait_seconds", &[("for", of)]));
        let busy = waits.iter().map(|(of, waits)| {
            let count = waits.busy.0.load(Ordering::Relaxed) as f64;
            sample("pinfold_lock_busy_total", &[("for", of)], count)
        });
        [
            metric(
                "pinfold_lock_wait_seconds",
                MetricKind::Histogram,
                "Time that was waited for locks, granted or not, since the daemon started.",
                seconds.collect(),
            ),
            metric(
                "pinfold_lock_busy_total",
                MetricKind::Counter,
                "Locks that were refused because another process has them, since the daemon started.",
                busy.collect(),
            ),
        ]
    }
}

pub(crate) fn metric(name: &str, kind: MetricKind, help: &str, samples: Vec<Sample>) -> Metric {
    Metric { name: name.into(), kind, help: help.into(), samples }
}

pub(crate) fn sample(name: &str, labels: &[(&str, &str)], value: f64) -> Sample {
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Sample { name: name.into(), labels, value }
}

/// The metrics in the text format of Prometheus (version 0.0.4).
pub(crate) fn text(metrics: &[Metric]) -> String {
    let mut text = String::new();
    for Metric { name, kind, help, samples } in metrics {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        for Sample { name, labels, value } in samples {
            let labels: Vec<String> =
                labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            text.push_str(&format!("{name}{labels} {value}\n"));
        }
    }
    text
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_a_bound_belongs_to_its_bucket() {
        let histogram = Histogram::default();
        for micros in [100, 101, 60_000_000, 60_000_001] {
            histogram.took(Duration::from_micros(micros));
        }
        let samples = histogram.samples("x", &[]);
        let value = |bound: &str| {
            samples.iter().find(|one| one.labels.get("le").is_some_and(|le| le == bound)).unwrap().value
        };
        assert!((value("0.0001") - 1.0).abs() < 1e-9);
        assert!((value("0.00025") - 2.0).abs() < 1e-9);
        assert!((value("60") - 3.0).abs() < 1e-9);
        assert!((value("+Inf") - 4.0).abs() < 1e-9);
        let sum = samples.iter().find(|one| one.name == "x_sum").unwrap().value;
        assert!((sum - 120.000_202).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn what_would_end_a_label_or_a_line_is_escaped() {
        let odd = metric("m", MetricKind::Gauge, "a\\b\nc", vec![sample("m", &[("l", "q\"b\\n\n")], 0.5)]);
        let expected = "# HELP m a\\\\b\\nc\n# TYPE m gauge\nm{l=\"q\\\"b\\\\n\\n\"} 0.5\n";
        assert_eq!(text(&[odd]), expected);
    }
}

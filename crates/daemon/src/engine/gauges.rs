//! Counts what is decided, and reads the gauges.

use super::Engine;
use crate::metrics::{metric, sample};
use pinfold_api::object::{Metric, Sample};
use pinfold_api::word::MetricKind;
use pinfold_core::{Change, Decision, Record, State};
use pinfold_store::SessionId;

impl Engine {
    /// Counts the runs that a decision reports.
    pub(super) fn count(&mut self, id: SessionId, decision: &Decision) {
        for change in &decision.changes {
            let Change::Record(record) = change else { continue };
            if let Record::RunExited(exited) = record {
                self.metrics.run_ended(exited.verdict);
            }
            if let Record::MessageDone { .. } = record {
                self.account_works(id);
            }
            if let Record::StartFailed { .. } = record {
                self.metrics.refused_starts.add();
            }
            let Record::RunStarted { run, .. } = record else { continue };
            let Some(tracked) = self.sessions.get_mut(&id) else { continue };
            let due = tracked.live(*run).and_then(|run| run.due.take());
            if tracked.session.runs().count > 1 {
                self.metrics.restarts.add();
                due.inspect(|since| self.metrics.respawn.took(since.elapsed()));
            }
        }
    }

    /// All counters and gauges.
    pub(super) fn measured(&self) -> Vec<Metric> {
        let mut all = vec![self.sessions_by_state()];
        all.extend(self.metrics.counted());
        all.push(self.waiters());
        all.push(metric(
            "pinfold_http_holds",
            MetricKind::Gauge,
            "Locks that clients hold over HTTP.",
            vec![sample("pinfold_http_holds", &[], self.metrics.held.now() as f64)],
        ));
        all.push(self.messages_by_state());
        all.extend(self.memory());
        all
    }

    fn sessions_by_state(&self) -> Metric {
        let in_state = |state: State| {
            self.sessions.values().filter(|tracked| tracked.session.state() == state).count() as f64
        };
        let samples = super::session::STATES.iter();
        let samples =
            samples.map(|state| sample("pinfold_sessions", &[("state", state.word())], in_state(*state)));
        metric("pinfold_sessions", MetricKind::Gauge, "Sessions, by state.", samples.collect())
    }

    fn messages_by_state(&self) -> Metric {
        use pinfold_store::MessageState::{Delivered, Done, Failed, Queued};
        let mut counts = [(Queued, 0_u64), (Delivered, 0), (Done, 0), (Failed, 0)];
        for inbox in self.sessions.values().map(|tracked| tracked.session.inbox()) {
            let (done, failed) = inbox.settled();
            let now = [inbox.queued() as u64, u64::from(inbox.in_flight().is_some()), done, failed];
            counts.iter_mut().zip(now).for_each(|((_, count), more)| *count += more);
        }
        let samples =
            counts.map(|(state, count)| sample("pinfold_messages", &[("state", state.word())], count as f64));
        metric("pinfold_messages", MetricKind::Gauge, "Messages of all sessions, by state.", samples.into())
    }

    fn waiters(&self) -> Metric {
        let runs = self.sessions.values().filter(|tracked| tracked.waiting.is_some()).count() as f64;
        let holds = self.metrics.waiting.now() as f64;
        let samples = [("run", runs), ("hold", holds)];
        let samples = samples.map(|(of, count)| sample("pinfold_lock_waiters", &[("for", of)], count));
        metric("pinfold_lock_waiters", MetricKind::Gauge, "Locks that are waited for now.", samples.into())
    }

    fn memory(&self) -> [Metric; 3] {
        let of_sessions = |name: &str, read: fn(&pinfold_core::Session) -> Option<u64>| -> Vec<Sample> {
            let known = self.names.iter().filter_map(|(session, id)| {
                let bytes = read(&self.sessions.get(id)?.session)?;
                Some(sample(name, &[("session", session)], bytes as f64))
            });
            known.collect()
        };
        let used = "pinfold_session_memory_bytes";
        let limit = "pinfold_session_memory_limit_bytes";
        let daemon = "process_resident_memory_bytes";
        [
            metric(
                used,
                MetricKind::Gauge,
                "Memory of a session's run, where it has a limit.",
                of_sessions(used, |s| s.memory_bytes()),
            ),
            metric(
                limit,
                MetricKind::Gauge,
                "Memory limit of a session.",
                of_sessions(limit, |s| s.spec().memory_limit),
            ),
            metric(
                daemon,
                MetricKind::Gauge,
                "Resident memory of the daemon.",
                vec![sample(daemon, &[], resident() as f64)],
            ),
        ]
    }
}

/// The daemon's resident memory in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

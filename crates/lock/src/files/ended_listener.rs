//! Reports every process that a grant ends to a listener.

use crate::files::fence::Fence;
use crate::files::record::{LockRecord, RunName};
use crate::process::ProcessSeen;
use pinfold_kernel::proc;
use std::fmt;
use std::sync::OnceLock;

/// Processes of a run whose holder is dead, about to be ended so that the lock can be granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurvivorsEnded {
    /// The lock that the run held.
    pub resource: String,
    /// The fence of that grant.
    pub fence: Fence,
    /// The session the lock was held for.
    pub session: Option<String>,
    /// The run that held the lock.
    pub run: Option<RunName>,
    /// The processes about to be ended.
    pub processes: Vec<ProcessSeen>,
}

type Listener = Box<dyn Fn(&SurvivorsEnded) + Send + Sync>;

/// The listener, if there is one.
#[derive(Default)]
pub(super) struct EndedListener(OnceLock<Listener>);

impl fmt::Debug for EndedListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Told").field(&self.0.get().is_some()).finish()
    }
}

impl EndedListener {
    /// Sets the listener, unless there already is one.
    pub(super) fn set(&self, listener: Listener) {
        let _ = self.0.set(listener);
    }

    pub(super) fn tell(&self, record: &LockRecord, pids: &[u32]) {
        let Some(listener) = self.0.get() else { return };
        let processes = pids.iter().map(|pid| ProcessSeen { pid: *pid, command: proc::command(*pid) });
        listener(&SurvivorsEnded {
            resource: record.resource.clone(),
            fence: record.fence,
            session: record.session.clone(),
            run: record.run.clone(),
            processes: processes.collect(),
        });
    }
}

//! Tells whoever wants to know of every process that a grant ends.

use crate::fence::Fence;
use crate::folder::Folder;
use crate::lookup::ProcessSeen;
use crate::record::{Record, Run};
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
    /// The session it was held for.
    pub session: Option<String>,
    /// The run.
    pub run: Option<Run>,
    /// Who is ended.
    pub processes: Vec<ProcessSeen>,
}

type Listener = Box<dyn Fn(&SurvivorsEnded) + Send + Sync>;

/// Whoever hears of it, if anybody does.
#[derive(Default)]
pub(crate) struct Told(OnceLock<Listener>);

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Told").field(&self.0.get().is_some()).finish()
    }
}

impl Folder {
    /// Has `listener` hear of the processes that grants of this folder end, each time before they are ended.
    ///
    /// The first listener stays; it is called by whichever thread acquires.
    pub fn tell_of_ended(&self, listener: impl Fn(&SurvivorsEnded) + Send + Sync + 'static) {
        let _ = self.told().0.set(Box::new(listener));
    }

    pub(crate) fn tell_ended(&self, record: &Record, pids: &[u32]) {
        let Some(listener) = self.told().0.get() else { return };
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

//! Whether a run is in the control group that was made for it. Checked when a client asks for one session:
//! the kernel knows, and no start has to wait for it.

use crate::memory::Without;
use pinfold_api::object::Session;
use pinfold_kernel::cgroup::{self, Hierarchy};
use pinfold_shim::groups;
use std::path::Path;

/// Adds where the run of a session is; in its sentence only if it could be better.
pub(crate) fn tell(session: &mut Session) {
    let Some(pid) = session.pid else { return };
    let Some(group) = cgroup::folder_of(Some(pid), Hierarchy::Second) else { return };
    let contained = is_of_a_run(&group);
    session.contained = Some(contained);
    if !contained && !Without::from_environment().cgroup && groups::probe().group.is_some() {
        session.why.push_str(
            "; it is not in a control group of its own, so what it starts may outlive a shim that is killed",
        );
    }
}

/// Also true for a group that something of the run made inside its own.
fn is_of_a_run(group: &Path) -> bool {
    group.iter().any(|part| part.to_str().is_some_and(|part| part.starts_with(groups::PREFIX)))
}

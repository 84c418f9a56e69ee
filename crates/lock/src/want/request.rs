//! What an acquirer says about itself.

use crate::files::record::{RunName, Survivors};
use crate::judge::identity::Identity;
use std::path::PathBuf;

/// What an acquirer says about itself; everything is optional.
///
/// ```
/// use pinfold_lock::Request;
/// let request = Request { reason: Some("nightly build".into()), ..Request::default() };
/// # let _ = request;
/// ```
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What the lock is wanted for; shown to people.
    pub reason: Option<String>,
    /// The session it is wanted for.
    pub session: Option<String>,
    /// The command that runs under it; if empty, the caller's own command line.
    pub command: String,
    /// The holder, if it is more than the calling process: a run. A second acquire by the same run fails at
    /// once; its processes carry its name in [`crate::RUN_VARIABLE`].
    pub run: Option<RunName>,
    /// Runs inside which the caller itself was started; asking for something that one of them holds fails at once.
    pub inside: Vec<RunName>,
    /// The first process of the run, if it is not the caller.
    pub agent: Option<Identity>,
    /// The control group that contains only the run's processes. It proves survivors only if its name ends in
    /// `-` and the [`crate::process::word`] of the holder: a path that another run may have had is not a proof.
    pub cgroup: Option<PathBuf>,
    /// What the next acquirer does about processes of the run that outlive the flock.
    pub survivors: Survivors,
}

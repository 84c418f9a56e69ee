//! What an acquirer says about itself.

use crate::files::record::{Run, Survivors};
use crate::judge::identity::Identity;
use std::path::PathBuf;

/// What an acquirer says about itself; all of it may be left out.
///
/// ```
/// use pinfold_lock::Request;
/// let request = Request { reason: Some("nightly build".into()), ..Request::default() };
/// # let _ = request;
/// ```
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What the lock is wanted for, for people.
    pub reason: Option<String>,
    /// The session it is wanted for.
    pub session: Option<String>,
    /// The command that is run under it; the caller's own command line when empty.
    pub command: String,
    /// Who the holder is when it is more than the calling process: a run. Two acquires by one run exclude
    /// each other at once; its processes carry its name in [`crate::RUN_VARIABLE`].
    pub run: Option<Run>,
    /// Runs inside which the caller itself was started; asking for what one of them holds fails at once.
    pub inside: Vec<Run>,
    /// The first process of the run, when it is another than the caller.
    pub agent: Option<Identity>,
    /// The control group that has the run's processes and no others. It proves survivors only if its name ends in `-`
    /// and the [`crate::process::word`] of the holder: a path that another run may have had is no proof.
    pub cgroup: Option<PathBuf>,
    /// What the next acquirer does about processes of the run that outlive the flock.
    pub survivors: Survivors,
}

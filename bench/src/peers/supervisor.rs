//! What every supervisor is asked to do here.

use super::site::Site;
use std::process::Command;

/// One way to keep the children of a site alive.
pub(crate) trait Supervisor {
    /// Prepares the configuration; nothing runs afterwards.
    fn prepare(&mut self, site: &Site);
    /// Starts it; returns at once.
    fn start(&mut self, site: &Site);
    /// Ends it with all children.
    fn stop(&mut self, site: &Site) {
        site.end_all();
    }
    /// Returns its processes, the topmost first.
    fn processes(&self, site: &Site) -> Vec<u32>;
    /// Returns the command that shows the status of all children.
    fn status(&self, site: &Site) -> Option<Command>;
    /// Returns the command that shows everything about one of them, if there is one.
    fn page(&self, _site: &Site) -> Option<Command> {
        None
    }
    /// Returns how many exits by a signal it has on record.
    fn known_exits(&self, site: &Site) -> Option<usize>;
}

//! What every supervisor is asked to do here.

use super::site::Site;
use std::process::Command;

/// One way to keep the children of a site alive.
pub(crate) trait Supervisor {
    /// Writes down what is to be kept; nothing runs afterwards.
    fn prepare(&mut self, site: &Site);
    /// Starts it; returns at once.
    fn start(&mut self, site: &Site);
    /// Ends it with all children.
    fn stop(&mut self, site: &Site) {
        site.end_all();
    }
    /// Its processes, the one above all others first.
    fn processes(&self, site: &Site) -> Vec<u32>;
    /// The command that tells how all children are.
    fn status(&self, site: &Site) -> Option<Command>;
    /// The command that tells everything about one of them, where there is such a page.
    fn page(&self, _site: &Site) -> Option<Command> {
        None
    }
    /// How many exits with a signal it has on record.
    fn known_exits(&self, site: &Site) -> Option<usize>;
}

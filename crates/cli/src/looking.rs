//! Tells the daemon that a person looked at what a session did, which its field `seen` says.

use pinfold_api::{Client, endpoint};

/// Tells it. What was looked at is on the screen already, so a daemon that does not know of this is not an error.
pub(crate) fn looked(client: &Client, session: &str) {
    _ = client.ask(&endpoint::Look::call(session));
}

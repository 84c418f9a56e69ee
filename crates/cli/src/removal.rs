//! Deletes a session: one at rest is archived first, a live one is refused.

use pinfold_api::object::{Removed, Session};
use pinfold_api::query::AlsoRemoved;
use pinfold_api::word::State;
use pinfold_api::{Client, ClientError, ErrorKind, endpoint};

/// Deletes one session.
pub(crate) fn removed(client: &Client, session: &str, also: AlsoRemoved) -> Result<Removed, ClientError> {
    let refused = match client.ask(&endpoint::Remove::call(session, &also)) {
        Err(ClientError::Refused(body)) if body.kind == ErrorKind::Failed => body,
        answer => return answer,
    };
    let found = client.ask(&endpoint::Show::call(session))?;
    if !rests(&found.state) {
        return Err(ClientError::Refused(refused));
    }
    // By its id: its name is free once it is archived.
    client.ask(&endpoint::Archive::call(&found.id))?;
    client.ask(&endpoint::Remove::call(&found.id, &also))
}

/// Archives a session at rest; returns whether there was anything to do. A live one is refused with the same
/// words as its removal.
pub(crate) fn put_away(client: &Client, found: &Session) -> Result<bool, ClientError> {
    if found.state == State::Archived {
        return Ok(false);
    }
    if rests(&found.state) {
        return client.ask(&endpoint::Archive::call(&found.id)).map(|_| true);
    }
    client.ask(&endpoint::Remove::call(&found.id, &AlsoRemoved::default())).map(|_: Removed| true)
}

/// Whether nothing of a session runs, or will run by itself.
fn rests(state: &State) -> bool {
    match state {
        State::Stopped | State::Failed | State::Idle => true,
        State::Starting
        | State::Running
        | State::Stopping
        | State::Backoff
        | State::Blocked
        | State::Held
        | State::Archived
        | State::Damaged
        | State::Unknown
        | State::Other(_) => false,
    }
}

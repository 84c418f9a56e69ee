//! Creates a session; one without a name gets the first free one.

use super::names::made;
use crate::output::Kind;
use pinfold_api::object::Session;
use pinfold_api::request::NewSession;
use pinfold_api::{Client, ClientError, ErrorBody, ErrorKind, endpoint};

/// Creates the session, under exactly the requested name if it is `named`.
pub(crate) fn create(client: &Client, request: &mut NewSession, named: bool) -> Result<Session, ClientError> {
    if named {
        return client.ask(&endpoint::New::call(request));
    }
    let dir = request.dir.clone().or_else(|| request.caller_dir.clone()).unwrap_or_default();
    let agent = request.agent.clone().unwrap_or_else(|| "command".to_owned());
    let mut taken = None;
    for name in made(&dir, &agent) {
        request.name = name;
        match client.ask(&endpoint::New::call(request)) {
            Err(ClientError::Refused(body)) if body.kind == ErrorKind::Exists => taken = Some(body),
            answer => return answer,
        }
    }
    Err(ClientError::Refused(
        taken.unwrap_or_else(|| Box::new(ErrorBody::new(Kind::Exists, "no name is free"))),
    ))
}

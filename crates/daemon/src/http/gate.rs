//! The one door to every handler: who asks is known by the socket, and what it may is looked up before anything is done.

use super::Context;
use super::answer::Failure;
use crate::caller::{Act, Caller, Pass, Wanted};
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use pinfold_api::{ErrorBody, ErrorKind};
use std::convert::Infallible;
use std::sync::Arc;

/// What stands before one route.
#[derive(Clone)]
pub(super) struct Gate {
    pub(super) context: Context,
    pub(super) act: Act,
    pub(super) path: &'static str,
}

/// Lets a request through to its handler, or refuses it.
pub(super) async fn gate(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    match gate.admit(&mut parts).await {
        Ok(pass) => {
            parts.extensions.insert(pass);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refused) => Failure::from(refused).into_response(),
    }
}

impl Gate {
    async fn admit(&self, parts: &mut Parts) -> Result<Pass, ErrorBody> {
        let Some(caller) = parts.extensions.get::<Arc<Caller>>().cloned() else {
            return Err(ErrorBody::new(ErrorKind::NotPermitted, "who asks is not known"));
        };
        if caller.standing.is_person() || self.act == Act::Ping {
            return Ok(Pass::of_person(caller));
        }
        let wanted = Wanted { act: self.act, verb: self.verb(), session: session_in(parts).await };
        self.context.handle.look(move |fleet| fleet.admit(&caller, &wanted)).await?
    }

    /// What people call it: the last word of the address, where that is a verb.
    fn verb(&self) -> &'static str {
        let last = self.path.rsplit('/').find(|word| !word.starts_with('{')).unwrap_or_default();
        match (last, self.act) {
            ("hold", _) => "lock",
            ("sessions" | "messages" | "table", act) => act.word().unwrap_or(last),
            (verb, _) => verb,
        }
    }
}

async fn session_in(parts: &mut Parts) -> Option<String> {
    let named = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    named.iter().find(|(key, _)| *key == "session").map(|(_, name)| name.to_owned())
}

/// What a handler works with: everything, in the name of who asks.
impl FromRequestParts<Context> for Context {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &Context) -> Result<Context, Infallible> {
        let pass = parts.extensions.get::<Pass>().cloned().unwrap_or_default();
        let handle = state.handle.of(pass.by.clone());
        Ok(Context { handle, pass, ..state.clone() })
    }
}

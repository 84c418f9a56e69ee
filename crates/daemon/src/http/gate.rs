//! The gate in front of every handler: the socket identifies the caller, and what it may do is looked up
//! before anything is done.

use super::HttpContext;
use super::admission::{AdmissionRequest, admit};
use super::api_error::ApiError;
use crate::caller::{Act, Caller, Pass};
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_kernel::peer::Other;
use std::convert::Infallible;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::OnceCell;

/// How often, and how far apart, we try to identify the caller: nothing tells when a descriptor is free.
const TRIES: usize = 100;
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// The gate of one route.
#[derive(Clone)]
pub(super) struct RouteGate {
    pub(super) context: HttpContext,
    pub(super) act: Act,
    pub(super) path: &'static str,
}

/// Passes a request on to its handler, or refuses it.
pub(super) async fn gate(State(gate): State<RouteGate>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    match gate.admit(&mut parts).await {
        Ok(pass) => {
            parts.extensions.insert(pass);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refused) => ApiError::from(refused).into_response(),
    }
}

/// The process that made a connection: identified once, at the first request that not every caller may make.
/// A ping is for all.
#[derive(Clone)]
pub(super) struct Asker(Arc<Asking>);

struct Asking {
    other: Other,
    stream: Arc<UnixStream>,
    placed: OnceCell<Arc<Caller>>,
}

impl Asker {
    pub(super) fn new(other: Other, stream: Arc<UnixStream>) -> Asker {
        Asker(Arc::new(Asking { other, stream, placed: OnceCell::new() }))
    }

    async fn caller(&self) -> Result<Arc<Caller>, ErrorBody> {
        let Asking { other, stream, placed } = &*self.0;
        placed.get_or_try_init(|| place(*other, stream)).await.cloned()
    }
}

/// When no descriptor is left to look with, some come back soon.
async fn place(other: Other, stream: &UnixStream) -> Result<Arc<Caller>, ErrorBody> {
    for _ in 0..TRIES {
        if let Ok(caller) = Caller::of(other, stream.as_fd()) {
            return Ok(Arc::new(caller));
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
    Err(ErrorBody::new(ErrorKind::Unavailable, "the daemon has no descriptor left to see who asks"))
}

impl RouteGate {
    async fn admit(&self, parts: &mut Parts) -> Result<Pass, ErrorBody> {
        if self.act == Act::Ping {
            return Ok(Pass::default());
        }
        let Some(asker) = parts.extensions.get::<Asker>().cloned() else {
            return Err(ErrorBody::new(ErrorKind::NotPermitted, "the caller is not known"));
        };
        let caller = asker.caller().await?;
        if caller.standing.is_person() {
            return Ok(Pass::of_person(caller));
        }
        let wanted = AdmissionRequest { act: self.act, verb: self.verb(), session: session_in(parts).await };
        self.context.handle.view(move |view| admit(view, &caller, &wanted)).await?
    }

    /// The name people know it by: the last word of the address, if that is a verb.
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

/// The context of a handler, in the name of the caller.
impl FromRequestParts<HttpContext> for HttpContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &HttpContext) -> Result<HttpContext, Infallible> {
        let pass = parts.extensions.get::<Pass>().cloned().unwrap_or_default();
        let handle = state.handle.of(pass.by.clone());
        Ok(HttpContext { handle, pass, ..state.clone() })
    }
}

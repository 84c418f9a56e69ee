//! The one door to every handler: who asks is known by the socket, and what it may is looked up before anything is done.

use super::Context;
use super::admission::{Wanted, admit};
use super::answer::Failure;
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

/// How often, and how long apart, it is tried to see who asks: nothing says when a descriptor is free.
const TRIES: usize = 100;
const TRY_AGAIN: Duration = Duration::from_millis(50);

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

/// Whoever made a connection: placed once, when something is asked for that not everybody may. A sign of life is for all.
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

impl Gate {
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
        let wanted = Wanted { act: self.act, verb: self.verb(), session: session_in(parts).await };
        self.context.handle.view(move |view| admit(view, &caller, &wanted)).await?
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

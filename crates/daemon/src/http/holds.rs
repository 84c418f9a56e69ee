//! Holds: a `key:` lock for as long as a connection is open, so that programs in any language can hold one.
//!
//! The lock is the daemon's own; the kernel tells by the connection whether the client is there. A hold that
//! exceeds its limit is revoked: its fence is passed first, so that nothing written under it counts.

use super::HttpContext;
use super::api_error::ApiError;
use super::extract::JsonBody;
use super::hold_limits::{self, HoldPlace};
use super::server::ConnectionPeer;
use super::streaming;
use crate::engine::input::Handle;
use crate::error_chain::chain;
use crate::metrics::Metrics;
use crate::objects;
use crate::ports::locks::lost_in;
use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use pinfold_api::object::{HoldLine, Lock, Revoked};
use pinfold_api::request::Hold;
use pinfold_api::{ErrorBody, ErrorKind, units};
use pinfold_core::{EventKind, words};
use pinfold_lock::{AcquireError, Cancel, Guard, Request, Resource, ResourceKind, RunName, process};
use pinfold_store::AuditEvent;
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

pub(crate) async fn hold(
    context: HttpContext,
    peer: ConnectionPeer,
    JsonBody(wanted): JsonBody<Hold>,
) -> Result<Response, ApiError> {
    let resource = key(&wanted.resource)?;
    let wait = span("wait", wanted.wait.as_deref())?.unwrap_or_default();
    let asked = span("max_hold", wanted.max_hold.as_deref())?;
    let policy = context.handle.view(|view| view.hold_limit()).await?;
    let limit = Limit::of(asked, policy);
    let place = context.holds.enter(hold_limits::HoldClient::of(peer, context.pass.by.as_deref()))?;
    let client = Client { peer, reason: wanted.reason, resource };
    let waiting = Waiting::begin(&context.metrics);
    let acquired = client.acquire(&context, wait).await;
    drop(waiting);
    let guard = match acquired? {
        Ok(guard) => guard,
        Err(refused) => return Err(client.refused(&context, refused)),
    };
    let held = Held::new(guard, peer, &context, place);
    // A client that is told of the lock can find it in the events.
    held.acquired().await?;
    let (sender, receiver) = mpsc::channel(2);
    _ = sender.try_send(line(&HoldLine::Granted(Box::new(held.object.clone()))));
    tokio::spawn(keep(held, limit, sender, context.handle.clone()));
    Ok(streaming::lines(receiver))
}

/// Holds the lock until the client has gone, the limit is reached or the daemon ends.
async fn keep(held: Held, limit: Option<Limit>, sender: mpsc::Sender<Bytes>, handle: Handle) {
    let over = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit.span).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = sender.closed() => held.release("the connection was closed"),
        () = handle.ended() => held.release("the daemon ends"),
        () = over => {
            let why = limit.map(|limit| limit.why()).unwrap_or_default();
            let revoked = Revoked { fence: held.object.fence.unwrap_or_default(), why: why.clone() };
            held.revoke(&why);
            // Sent after the fact. A client that does not read loses only this line.
            _ = sender.try_send(line(&HoldLine::Revoked(revoked)));
        }
    }
}

/// How long a hold may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    span: Duration,
    whose: Whose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Asked,
    Policy,
}

impl Limit {
    /// The smaller of what the client asked for and what the configuration allows; zero means no limit.
    fn of(asked: Option<Duration>, policy: Duration) -> Option<Limit> {
        let some = |span: Duration, whose| (span > Duration::ZERO).then_some(Limit { span, whose });
        let asked = asked.and_then(|span| some(span, Whose::Asked));
        let policy = some(policy, Whose::Policy);
        asked.into_iter().chain(policy).min_by_key(|limit| limit.span)
    }

    fn why(self) -> String {
        let span = words::duration(self.span);
        match self.whose {
            Whose::Asked => format!("it was held for its max_hold of {span}"),
            Whose::Policy => format!("it was held for the hold_limit of {span}"),
        }
    }
}

fn key(text: &str) -> Result<Resource, ApiError> {
    let bad = |message: String| {
        let body = ErrorBody::new(ErrorKind::Usage, message);
        ApiError::bad_value(body.hint("\"resource\":\"key:ANY\" names what is held"))
    };
    match Resource::parse(text.as_ref()) {
        Ok(key @ Resource::Key(_)) => Ok(key),
        Ok(Resource::Session(_) | Resource::Vendor(_) | Resource::Directory(_)) => {
            Err(bad(format!("`{text}` cannot be held over HTTP: only `key:` resources can")))
        }
        Err(error) if text.is_empty() => Err(bad(format!("`resource` is missing: {error}"))),
        Err(error) => Err(bad(error.to_string())),
    }
}

fn span(field: &str, text: Option<&str>) -> Result<Option<Duration>, ApiError> {
    let bad = |error: units::NotAQuantity| ErrorBody::new(ErrorKind::Usage, format!("`{field}`: {error}"));
    text.map(units::duration).transpose().map_err(|error| ApiError::bad_value(bad(error)))
}

fn line(line: &HoldLine) -> Bytes {
    // Structs of strings and numbers: serde_json cannot fail on them.
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

/// A client that wants a hold.
struct Client {
    peer: ConnectionPeer,
    reason: Option<String>,
    resource: Resource,
}

impl Client {
    /// Waits on a thread of its own, woken by the kernel; dropping the future ends the wait.
    async fn acquire(
        &self,
        context: &HttpContext,
        wait: Duration,
    ) -> Result<Result<Guard, AcquireError>, ErrorBody> {
        let failed = |error: io::Error| ErrorBody::new(ErrorKind::Failed, error.to_string());
        let cancel = CancelOnDrop(Cancel::new().map_err(failed)?);
        let (folders, resource, token) = (context.folders.clone(), self.resource.clone(), cancel.0.clone());
        let (peer, reason) = (self.peer, self.reason.clone());
        let (sender, receiver) = oneshot::channel();
        let work = move || {
            let deadline = Instant::now().checked_add(wait);
            let request = request(peer, reason);
            let folder = folders.of(&resource);
            // If the client has gone, dropping the granted lock gives it back.
            _ = sender.send(folder.acquire_cancellable(&resource, &request, deadline, &token));
        };
        std::thread::Builder::new().name("hold".into()).stack_size(128 << 10).spawn(work).map_err(failed)?;
        tokio::select! {
            answer = context.handle.answer(receiver) => answer.map_err(ErrorBody::from),
            () = context.handle.ended() => Err(context.handle.going_down().into()),
        }
    }

    fn refused(&self, context: &HttpContext, error: AcquireError) -> ApiError {
        match error {
            AcquireError::Busy(busy) => {
                let mut body = ErrorBody::new(ErrorKind::Busy, busy.to_string());
                body.holder = busy.lock.as_ref().map(|lock| json!(objects::holder(&lock.holder)));
                let facts = json!({ "resource": self.resource.to_string(), "holder": body.holder, "client": client(self.peer) });
                context.metrics.of_holds.busy.add();
                if context.holds.is_news(&self.resource) {
                    context.handle.note(note(EventKind::LockBusy, &body.message, facts));
                }
                body.hint("\"wait\":\"10s\" waits for it; `pinfold locks` lists all").into()
            }
            AcquireError::AlreadyYours { .. } => ErrorBody::new(ErrorKind::Busy, error.to_string()).into(),
            AcquireError::Directory(_)
            | AcquireError::Folder(_)
            | AcquireError::NotAFile { .. }
            | AcquireError::File { .. }
            | AcquireError::Cancelled { .. }
            | AcquireError::Restless { .. }
            | AcquireError::Identity(_) => ErrorBody::new(ErrorKind::Failed, chain(&error)).into(),
        }
    }
}

/// A wait under way, counted until it is dropped.
struct Waiting<'a> {
    metrics: &'a Metrics,
    begun: Instant,
}

impl Waiting<'_> {
    fn begin(metrics: &Metrics) -> Waiting<'_> {
        metrics.waiting.enter();
        Waiting { metrics, begun: Instant::now() }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.metrics.waiting.leave();
        self.metrics.of_holds.seconds.took(self.begun.elapsed());
    }
}

struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The daemon holds the lock for its client, which is named as the process to look at, and to end.
fn request(peer: ConnectionPeer, reason: Option<String>) -> Request {
    let agent = peer.pid.and_then(|pid| process::identify(pid).ok());
    let command = peer.pid.map(pinfold_kernel::proc::command).unwrap_or_default();
    // A run id of its own: two holds of one daemon are two holders.
    let run = process::own().ok().map(|own| RunName::fresh(&own));
    Request { reason, command, run, agent, ..Request::default() }
}

/// A granted hold. However it ends, the lock is released and an event records it.
struct Held {
    guard: Option<Guard>,
    object: Lock,
    peer: ConnectionPeer,
    since: Instant,
    handle: Handle,
    metrics: Arc<Metrics>,
    _place: HoldPlace,
}

impl Held {
    fn new(guard: Guard, peer: ConnectionPeer, context: &HttpContext, place: HoldPlace) -> Held {
        let object = objects::granted(guard.record(), ResourceKind::Key);
        let (handle, metrics) = (context.handle.clone(), Arc::clone(&context.metrics));
        metrics.held.enter();
        Held { guard: Some(guard), object, peer, since: Instant::now(), handle, metrics, _place: place }
    }

    /// Returns when the event is durable.
    async fn acquired(&self) -> Result<(), ErrorBody> {
        let written =
            self.handle.note(note(EventKind::LockAcquired, "a client holds it over HTTP", self.facts()));
        Ok(self.handle.answer(written).await?)
    }

    fn release(mut self, why: &str) {
        self.end(why);
    }

    /// Passes the fence, releases the lock, and records why.
    fn revoke(mut self, why: &str) {
        let mut facts = self.facts();
        facts["reason"] = json!("hold_limit");
        self.handle.note(note(EventKind::HealthWarn, why, facts));
        if let Some(guard) = &mut self.guard {
            let next =
                Request { reason: Some("the hold before it was revoked".into()), ..Request::default() };
            if let Err(trouble) = guard.new_fence(&next) {
                warn!("a revoked fence was not passed over: {}", chain(&trouble));
            }
        }
        self.end(&format!("revoked: {why}"));
    }

    fn end(&mut self, why: &str) {
        let Some(guard) = self.guard.take() else { return };
        lost_in(&guard.release());
        self.metrics.held.leave();
        let mut facts = self.facts();
        facts["held_ms"] = json!(u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.handle.note(note(EventKind::LockReleased, why, facts));
    }

    fn facts(&self) -> Value {
        json!({
            "resource": self.object.resource,
            "fence": self.object.fence,
            "reason": self.object.reason,
            "client": client(self.peer),
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end("the client went away before it was told");
    }
}

fn client(peer: ConnectionPeer) -> Value {
    json!({ "pid": peer.pid, "user": peer.user })
}

fn note(kind: EventKind, why: &str, facts: Value) -> AuditEvent {
    let data = if let Value::Object(data) = facts { data } else { Map::new() };
    AuditEvent { at: crate::clock::wall(), session: None, run: None, kind, why: why.into(), data }
}

impl<S: Send + Sync> FromRequestParts<S> for ConnectionPeer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<ConnectionPeer, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or(ConnectionPeer { pid: None, user: u32::MAX }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_limit_counts_and_zero_is_none() {
        let s = Duration::from_secs;
        let rows = [
            (None, s(0), None),
            (Some(s(0)), s(0), None),
            (Some(s(5)), s(0), Some((s(5), Whose::Asked))),
            (None, s(7), Some((s(7), Whose::Policy))),
            (Some(s(0)), s(7), Some((s(7), Whose::Policy))),
            (Some(s(5)), s(7), Some((s(5), Whose::Asked))),
            (Some(s(9)), s(7), Some((s(7), Whose::Policy))),
        ];
        for (asked, policy, expected) in rows {
            let limit = Limit::of(asked, policy).map(|limit| (limit.span, limit.whose));
            assert_eq!(limit, expected, "{asked:?} {policy:?}");
        }
    }
}

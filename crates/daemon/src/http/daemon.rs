//! The daemon itself.

use super::Context;
use super::answer::{Answered, Failure, Said};
use crate::input::{Agents, Input};
use crate::memory::capabilities;
use crate::view;
use axum::Json;
use axum::extract::State;
use pinfold_api::object::{Ping, Status, WentDown};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use tokio::sync::{OnceCell, oneshot};

/// A sign of life of the loop, also before every session was looked at.
pub(crate) async fn ping(State(context): State<Context>) -> Answered<Ping> {
    let (reply, receiver) = oneshot::channel();
    context.handle.tell(Input::Ping { reply });
    Ok(Json(context.handle.answer(receiver).await?))
}

pub(crate) async fn status(State(context): State<Context>) -> Answered<Status> {
    let disk = context.disk.used(Instant::now()).await;
    let abilities = abilities(&context).await?;
    Ok(Json(context.handle.look(move |fleet| view::status(fleet, disk, abilities)).await?))
}

/// What this machine lets us do, tried once: it changes nothing that lives.
async fn abilities(context: &Context) -> Result<BTreeMap<String, Value>, Failure> {
    static TRIED: OnceCell<BTreeMap<String, Value>> = OnceCell::const_new();
    let without = context.handle.look(|fleet| fleet.memory.without).await?;
    let all = TRIED.get_or_init(|| async move {
        tokio::task::spawn_blocking(move || capabilities(without)).await.unwrap_or_default()
    });
    Ok(all.await.clone())
}

/// How to go down.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Down {
    /// Leave the agents running under their shims.
    keep: bool,
}

pub(crate) async fn down(State(context): State<Context>, Said(down): Said<Down>) -> Answered<WentDown> {
    let agents = if down.keep { Agents::Kept } else { Agents::Stopped };
    let (sender, receiver) = oneshot::channel();
    context.handle.tell(Input::Down { agents, reply: Some(sender) });
    let left = context.handle.answer(receiver).await?;
    Ok(Json(WentDown { left }))
}

/// A verb wrote something down: it becomes an event before this returns.
pub(crate) async fn audit(State(context): State<Context>) -> Answered<Value> {
    context.handle.tell(Input::Audited);
    context.handle.look(|_| ()).await?;
    Ok(Json(json!({})))
}

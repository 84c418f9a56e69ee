//! The addresses of the API. One call makes a route and its description, so none is without the other.

use super::answer::Largest;
use super::gate::Gate;
use super::openapi::{self, Operation};
use super::{
    Context, answer, archive, attach, events, feed, gate, holds, locks, logs, messages, metrics,
    session_stream, sessions, status,
};
use crate::caller::Act;
use crate::show::list::Filter;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Extension, Router};
use pinfold_api::feed::FeedEvent;
use pinfold_api::object::{
    AttachLine, Backup, Event, HoldLine, Lock, LogLine, Message, Metric, Ping, Purged, Removed, Row, Sent,
    Session, Status, WentDown,
};
use pinfold_api::request::{Attach, Hold, NewMessage, NewSession, Purge, Stop};
use serde_json::Value;
use std::sync::Arc;

/// Routes and their descriptions.
struct Api {
    context: Context,
    router: Router<Context>,
    operations: Vec<Operation>,
}

impl Api {
    /// One address: what it wants of whom it asks, its description, its handler. The gate stands before all of them.
    fn add<H, T>(mut self, act: Act, operation: Operation, handler: H) -> Api
    where
        H: Handler<T, Context>,
        T: 'static,
    {
        let method = match operation.method {
            "get" => MethodFilter::GET,
            "delete" => MethodFilter::DELETE,
            _ => MethodFilter::POST,
        };
        let largest = operation.largest_body;
        let route: MethodRouter<Context> = on(method, handler);
        let route: MethodRouter<Context> = route.layer(DefaultBodyLimit::max(largest));
        let route = route.layer(Extension(Largest(largest)));
        let gate = Gate { context: self.context.clone(), act, path: operation.path };
        let route = route.layer(from_fn_with_state(gate, gate::gate));
        self.router = self.router.route(operation.path, route);
        self.operations.push(operation);
        self
    }
}

fn get(path: &'static str, summary: &'static str) -> Operation {
    Operation::new("get", path, summary)
}

fn post(path: &'static str, summary: &'static str) -> Operation {
    Operation::new("post", path, summary)
}

pub(crate) fn router(context: Context) -> Router {
    let api = Api { context: context.clone(), router: Router::new(), operations: Vec::new() };
    let api = of_locks(of_archive(of_messages(of_output(of_sessions(of_lists(of_daemon(api)))))));
    let described = get("/v1/openapi.json", "This description of the API").answers::<Value>();
    let mut operations = api.operations;
    operations.push(described);
    let operations: Arc<[Operation]> = operations.into();
    let document = move || async move { axum::Json(openapi::document(&operations)) };
    let router = api.router.route("/v1/openapi.json", on(MethodFilter::GET, document));
    router
        .fallback(answer::no_such_place)
        .method_not_allowed_fallback(answer::no_such_method)
        .with_state(context)
}

fn of_daemon(api: Api) -> Api {
    api.add(
        Act::Ping,
        get("/v1/ping", "A sign of life, within 5 s; while it starts, how far that has come")
            .answers::<Ping>(),
        status::ping,
    )
    .add(Act::Status, get("/v1/status", "The daemon").answers::<Status>(), status::status)
    .add(Act::Metrics, get("/metrics", "Metrics, as Prometheus reads them").answers_text(), metrics::text)
    .add(Act::Metrics, get("/v1/metrics", "Metrics").answers::<Vec<Metric>>(), metrics::objects)
    .add(
        Act::Down,
        post("/v1/daemon/down", "End the daemon; returns when it has nothing left to do")
            .takes::<status::Down>()
            .answers::<WentDown>(),
        status::down,
    )
    .add(
        Act::Backup,
        post("/v1/daemon/backup", "Copy the database to a new file")
            .takes::<status::Copy>()
            .answers::<Backup>(),
        status::backup,
    )
    .add(
        Act::Down,
        post("/v1/daemon/audit", "Take what verbs wrote down into the events").answers::<Value>(),
        status::audit,
    )
    .add(
        Act::List,
        get("/v1/feed", "All sessions, then every change of one: server-sent events `snapshot`, `session`, `removed`, `live`")
            .asks::<feed::Which>()
            .streams_events::<FeedEvent>(),
        feed::feed,
    )
    .add(
        Act::List,
        get("/v1/events", "Audit records: server-sent events, or an array with follow=false")
            .asks::<events::Which>()
            .streams_events::<Event>(),
        events::events,
    )
}

fn of_lists(api: Api) -> Api {
    api.add(
        Act::List,
        get("/v1/sessions", "The sessions").asks::<Filter>().answers::<Vec<Session>>(),
        sessions::list,
    )
    .add(
        Act::List,
        get("/v1/table", "The sessions as `pinfold ls` shows them, a row each")
            .asks::<Filter>()
            .answers::<Vec<Row<'_>>>(),
        sessions::table,
    )
}

fn of_sessions(api: Api) -> Api {
    let act = |what, summary| post(what, summary).answers::<Session>();
    api.add(
        Act::New,
        post("/v1/sessions", "Create a session; returns after the first attempt to start it")
            .takes::<NewSession>()
            .answers::<Session>(),
        sessions::create,
    )
    .add(Act::Read, get("/v1/sessions/{session}", "One session").answers::<Session>(), sessions::show)
    .add(
        Act::Remove,
        Operation::new("delete", "/v1/sessions/{session}", "Delete an archived session for good")
            .answers::<Removed>(),
        archive::remove,
    )
    .add(
        Act::Set,
        act("/v1/sessions/{session}/set", "Change a session, from its next run on").takes::<NewSession>(),
        sessions::set,
    )
    .add(Act::Steer, act("/v1/sessions/{session}/start", "Start it; returns when it runs"), sessions::start)
    .add(
        Act::Steer,
        act("/v1/sessions/{session}/stop", "Stop it; returns when nothing of it lives").takes::<Stop>(),
        sessions::stop,
    )
    .add(
        Act::Steer,
        act("/v1/sessions/{session}/restart", "End its run and start another"),
        sessions::restart,
    )
    .add(
        Act::Steer,
        act("/v1/sessions/{session}/archive", "Stop it and put it away, with its history"),
        archive::archive,
    )
    .add(
        Act::Restore,
        act("/v1/sessions/{session}/restore", "Bring it back from the archive"),
        archive::restore,
    )
    .add(
        Act::Read,
        get("/v1/sessions/{session}/wait", "Wait until it is in one of several states")
            .asks::<sessions::Wait>()
            .answers::<Session>(),
        sessions::wait,
    )
}

/// What its agents print, and its terminal.
fn of_output(api: Api) -> Api {
    api.add(
        Act::Read,
        get("/v1/sessions/{session}/logs", "What its agents printed, one object a line")
            .asks::<logs::Which>()
            .streams_lines::<LogLine>(),
        logs::logs,
    )
    .add(
        Act::Read,
        get("/v1/sessions/{session}/stream", "Its state, messages and output as they come; a consumer")
            .asks::<session_stream::Which>()
            .streams_events::<Value>(),
        session_stream::stream,
    )
    .add(
        Act::Attach,
        post("/v1/sessions/{session}/attach", "Attach: counted while it is read; says where its terminal is")
            .takes::<Attach>()
            .streams_lines::<AttachLine>(),
        attach::attach,
    )
}

fn of_archive(api: Api) -> Api {
    api.add(
        Act::Purge,
        post("/v1/purge", "Archive every session that nobody uses; returns when they are")
            .takes::<Purge>()
            .answers::<Purged>(),
        archive::purge,
    )
    .add(
        Act::Purge,
        post("/v1/restore", "Bring every archived session back whose name is free").answers::<Vec<Session>>(),
        archive::restore_all,
    )
}

fn of_messages(api: Api) -> Api {
    let one = "/v1/sessions/{session}/messages/{message}";
    api.add(
        Act::Read,
        get("/v1/sessions/{session}/messages", "Its messages")
            .asks::<messages::Which>()
            .answers::<Vec<Message>>(),
        messages::list,
    )
    .add(
        Act::Send,
        post("/v1/sessions/{session}/messages", "Send a message; with wait, returns its answer")
            .asks::<messages::Patience>()
            .takes::<NewMessage>()
            .up_to(messages::LARGEST_BODY)
            .answers::<Sent>(),
        messages::send,
    )
    .add(Act::Read, get(one, "One message").asks::<messages::Patience>().answers::<Message>(), messages::show)
    .add(
        Act::Steer,
        post("/v1/sessions/{session}/messages/{message}/cancel", "Cancel it before its turn")
            .answers::<Message>(),
        messages::cancel,
    )
    .add(
        Act::Steer,
        post("/v1/sessions/{session}/messages/{message}/retry", "Try a failed one again").answers::<Sent>(),
        messages::retry,
    )
    .add(
        Act::Steer,
        post("/v1/sessions/{session}/interrupt", "End the turn under way, keep the run").answers::<Session>(),
        messages::interrupt,
    )
    .add(
        Act::Answer,
        post("/v1/sessions/{session}/answer", "Answer a permission request")
            .takes::<messages::Permission>()
            .answers::<Session>(),
        messages::answer,
    )
}

fn of_locks(api: Api) -> Api {
    api.add(
        Act::List,
        get("/v1/locks", "Every lock that is held now").asks::<locks::Which>().answers::<Vec<Lock>>(),
        locks::list,
    )
    .add(
        Act::Hold,
        post("/v1/locks/hold", "Hold a `key:` lock for as long as the connection is open")
            .takes::<Hold>()
            .streams_lines::<HoldLine>(),
        holds::hold,
    )
}

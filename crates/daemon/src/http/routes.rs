//! Serves every address of the API: each has a handler, a row in the permission table, and a limit on its
//! body.

use super::extract::Largest;
use super::gate::RouteGate;
use super::handler_arguments::HandlerArguments;
use super::{
    HttpContext, api_error, apply, archive, attach, configured, declared, events, feed, gate, holds, locks,
    logs, look, messages, metrics, openapi, rename, screen, search, session_list, session_stream, sessions,
    status, usage,
};
use crate::caller::Act;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Extension, Router};
use pinfold_api::endpoint::{self, Address, AnswerPermission, Endpoint, Method};

/// Larger bodies come only by mistake or malice.
const LARGEST_BODY: usize = 2 << 20;

pub(crate) fn router(context: HttpContext) -> Router {
    let api = Api { context: context.clone(), router: Router::new() };
    let api = Address::ALL.iter().fold(api, |api, address| serve(api, *address));
    api.router
        .fallback(api_error::no_such_place)
        .method_not_allowed_fallback(api_error::no_such_method)
        .with_state(context)
}

/// One address: the act it needs permission for, and its handler. A new address stops the build here until it
/// is served.
fn serve(api: Api, address: Address) -> Api {
    match address {
        Address::Ping => api.add::<endpoint::Ping, _, _>(Act::Ping, status::ping),
        Address::Status => api.add::<endpoint::Status, _, _>(Act::Status, status::status),
        Address::MetricsText => api.add::<endpoint::MetricsText, _, _>(Act::Metrics, metrics::text),
        Address::Metrics => api.add::<endpoint::Metrics, _, _>(Act::Metrics, metrics::objects),
        Address::Down => api.add::<endpoint::Down, _, _>(Act::Down, status::down),
        Address::Backup => api.add::<endpoint::Backup, _, _>(Act::Backup, status::backup),
        Address::TakeAudit => api.add::<endpoint::TakeAudit, _, _>(Act::Down, status::audit),
        Address::Feed => api.add::<endpoint::Feed, _, _>(Act::List, feed::feed),
        Address::ListEvents => api.add::<endpoint::ListEvents, _, _>(Act::List, events::events),
        // Every caller may read the description.
        Address::OpenApi => api.add_open::<endpoint::OpenApi, _, _>(openapi::show),
        Address::Sessions => api.add::<endpoint::Sessions, _, _>(Act::List, session_list::list),
        Address::Table => api.add::<endpoint::Table, _, _>(Act::List, session_list::table),
        Address::New => api.add::<endpoint::New, _, _>(Act::New, sessions::create),
        Address::Show => api.add::<endpoint::Show, _, _>(Act::Read, sessions::show),
        Address::Look => api.add::<endpoint::Look, _, _>(Act::Read, look::look),
        Address::Remove => api.add::<endpoint::Remove, _, _>(Act::Remove, archive::remove),
        Address::Set => api.add::<endpoint::Set, _, _>(Act::Set, sessions::set),
        Address::Definition => api.add::<endpoint::Definition, _, _>(Act::Read, declared::definition),
        Address::Differs => api.add::<endpoint::Differs, _, _>(Act::Set, declared::differs),
        Address::Rename => api.add::<endpoint::Rename, _, _>(Act::Set, rename::rename),
        Address::Start => api.add::<endpoint::Start, _, _>(Act::Steer, sessions::start),
        Address::Stop => api.add::<endpoint::Stop, _, _>(Act::Steer, sessions::stop),
        Address::Restart => api.add::<endpoint::Restart, _, _>(Act::Steer, sessions::restart),
        Address::Archive => api.add::<endpoint::Archive, _, _>(Act::Steer, archive::archive),
        Address::Restore => api.add::<endpoint::Restore, _, _>(Act::Restore, archive::restore),
        Address::Wait => api.add::<endpoint::Wait, _, _>(Act::Read, sessions::wait),
        Address::Apply => api.add::<endpoint::Apply, _, _>(Act::Apply, apply::apply),
        Address::Purge => api.add::<endpoint::Purge, _, _>(Act::Purge, archive::purge),
        Address::RestoreAll => api.add::<endpoint::RestoreAll, _, _>(Act::Purge, archive::restore_all),
        Address::Reload => api.add::<endpoint::Reload, _, _>(Act::Reload, configured::reload),
        Address::Search => api.add::<endpoint::Search, _, _>(Act::List, search::search),
        Address::Usage => api.add::<endpoint::Usage, _, _>(Act::Metrics, usage::usage),
        Address::Accounts => api.add::<endpoint::Accounts, _, _>(Act::Metrics, usage::accounts),
        Address::ResumeAccount => api.add::<endpoint::ResumeAccount, _, _>(Act::Answer, usage::resume),
        Address::Logs => api.add::<endpoint::Logs, _, _>(Act::Read, logs::logs),
        Address::Stream => api.add::<endpoint::Stream, _, _>(Act::Read, session_stream::stream),
        Address::Attach => api.add::<endpoint::Attach, _, _>(Act::Attach, attach::attach),
        Address::Screen => api.add::<endpoint::Screen, _, _>(Act::Attach, screen::screen),
        Address::Messages => api.add::<endpoint::Messages, _, _>(Act::Read, messages::list),
        Address::Send => api.add::<endpoint::Send, _, _>(Act::Send, messages::send),
        Address::ShowMessage => api.add::<endpoint::ShowMessage, _, _>(Act::Read, messages::show),
        Address::CancelMessage => api.add::<endpoint::CancelMessage, _, _>(Act::Steer, messages::cancel),
        Address::RetryMessage => api.add::<endpoint::RetryMessage, _, _>(Act::Steer, messages::retry),
        Address::Interrupt => api.add::<endpoint::Interrupt, _, _>(Act::Steer, messages::interrupt),
        Address::AnswerPermission => api.add::<AnswerPermission, _, _>(Act::Answer, messages::answer),
        Address::Locks => api.add::<endpoint::Locks, _, _>(Act::List, locks::list),
        Address::Hold => api.add::<endpoint::Hold, _, _>(Act::Hold, holds::hold),
    }
}

/// The routes, as they are added.
struct Api {
    context: HttpContext,
    router: Router<HttpContext>,
}

impl Api {
    /// An address behind the gate, which checks permissions.
    fn add<E, H, T>(self, act: Act, handler: H) -> Api
    where
        E: Endpoint,
        H: Handler<T, HttpContext>,
        T: HandlerArguments<E> + 'static,
    {
        let gate = RouteGate { context: self.context.clone(), act, path: E::DESCRIPTION.path };
        let route = route::<E, H, T>(handler).layer(from_fn_with_state(gate, gate::gate));
        Api { router: self.router.route(E::DESCRIPTION.path, as_described::<E>(route)), ..self }
    }

    /// An address without a gate.
    fn add_open<E, H, T>(self, handler: H) -> Api
    where
        E: Endpoint,
        H: Handler<T, HttpContext>,
        T: HandlerArguments<E> + 'static,
    {
        let route = as_described::<E>(route::<E, H, T>(handler));
        Api { router: self.router.route(E::DESCRIPTION.path, route), ..self }
    }
}

/// In a debug build, a status that the endpoint does not declare aborts the request, and so fails the test.
fn as_described<E: Endpoint>(route: MethodRouter<HttpContext>) -> MethodRouter<HttpContext> {
    if !cfg!(debug_assertions) {
        return route;
    }
    route.layer(map_response(async |answer: Response| {
        let (of, status) = (E::DESCRIPTION, answer.status().as_u16());
        let told = status == 200 || status == 405 || of.statuses().contains(&status);
        assert!(told, "{} {} was answered with {status}", of.method.word(), of.path);
        answer
    }))
}

/// A handler that reads what the endpoint declares, with the limit of its body.
fn route<E, H, T>(handler: H) -> MethodRouter<HttpContext>
where
    E: Endpoint,
    H: Handler<T, HttpContext>,
    T: HandlerArguments<E> + 'static,
{
    let method = match E::DESCRIPTION.method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Delete => MethodFilter::DELETE,
    };
    let path = E::DESCRIPTION.path;
    let largest = match () {
        () if path == endpoint::Send::DESCRIPTION.path => messages::LARGEST_BODY,
        () if path == endpoint::Apply::DESCRIPTION.path => apply::LARGEST_BODY,
        () => LARGEST_BODY,
    };
    let route: MethodRouter<HttpContext> = on(method, handler).layer(DefaultBodyLimit::max(largest));
    route.layer(Extension(Largest(largest)))
}

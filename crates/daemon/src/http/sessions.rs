//! Sessions: show, create, change, and requests to them. A request returns once the state is reached.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use super::beside::{tell_outsider, tell_silence};
use super::configured;
use super::extract::{JsonBody, SessionInPath, UrlQuery};
use super::reach::{a_moment, in_the_way, not_done, reach};
use super::refusal::refusal;
use super::{kin, nearest, vendor_session};
use crate::clock::NowSource;
use crate::define::definition::{COMMAND, Definition};
use crate::define::preset::Preset;
use crate::define::setting::{CannotSet, Conversation};
use crate::engine::input::{Create, Define, DefineOutcome, LoopInput, VariablesChange};
use crate::engine::session::STATES;
use crate::engine::{EngineView, SessionRef, SessionSnapshot, WhyNot};
use crate::show;
use axum::Json;
use pinfold_api::object::Session;
use pinfold_api::query::Wait;
use pinfold_api::request::{NewSession, Stop};
use pinfold_api::word::State;
use pinfold_api::{ErrorBody, ErrorKind, Name, units};
use pinfold_core::decision::Answer;
use pinfold_core::event::Ask;
use pinfold_core::life::CannotStart;
use pinfold_core::session::Runs;
use pinfold_core::{Event, Refusal, State as CoreState};
use pinfold_store::{Facts, SessionId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Refuses a word that is not a state.
pub(super) fn known_states<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<(), ApiError> {
    let Some(unknown) = words.find(|word| !STATES.iter().any(|state| state.word() == *word)) else {
        return Ok(());
    };
    let known: Vec<&str> = STATES.iter().map(|state| state.word()).collect();
    let body = ErrorBody::new(ErrorKind::Usage, format!("there is no state `{unknown}`"));
    Err(ApiError::bad_value(body.hint(format!("the states are {}", known.join(", ")))))
}

pub(crate) async fn show(context: HttpContext, SessionInPath(session): SessionInPath) -> Answered<Session> {
    let id = find(&context, session).await?;
    let mut view = context.handle.session(id, |known| known.copy()).await?;
    tell_silence(&context, id, &mut view).await?;
    let mut session = show::session::session(&view, NowSource::new().now());
    tell_outsider(&context, id, &mut session).await;
    show::contained::tell(&mut session);
    let session = tokio::task::spawn_blocking(move || {
        show::processes::tell(&mut session);
        session
    });
    let failed = |error: tokio::task::JoinError| ErrorBody::new(ErrorKind::Failed, error.to_string());
    Ok(Json(session.await.map_err(failed)?))
}

pub(crate) async fn create(
    context: HttpContext,
    JsonBody(request): JsonBody<NewSession>,
) -> Answered<Session> {
    let Creatable { name, definition, broken } = creatable(&context, &request).await?;
    let definition = with_given_kept(&context, definition).await?;
    let (sender, receiver) = oneshot::channel();
    let create = Create { name, definition, broken, by: context.handle.by(), reply: sender };
    context.handle.tell(LoopInput::Create(Box::new(create)));
    let id = context.handle.answer(receiver).await??;
    // Returns after the first attempt to start.
    let mut seen = watcher(&context, id).await?;
    _ = seen.wait_for(|seen| seen.state != CoreState::Starting).await;
    object(&context, id).await
}

/// A new session that was checked.
pub(super) struct Creatable {
    pub(super) name: Name,
    pub(super) definition: Definition,
    /// Why it cannot run, if it is created by force.
    pub(super) broken: Option<CannotStart>,
}

/// Checks a request for a new session, and writes nothing.
pub(super) async fn creatable(context: &HttpContext, request: &NewSession) -> Result<Creatable, ApiError> {
    let name: Name =
        request.name.parse().map_err(|error: pinfold_api::NotAName| bad_value(error.to_string()))?;
    configured::up_to_date(context).await?;
    let (wanted, agent) = (name.clone(), request.agent.clone().unwrap_or_else(|| COMMAND.into()));
    let read = move |view: EngineView<'_>| view.is_free(wanted.as_str()).map(|()| view.preset(&agent));
    let preset = context.handle.view(read).await??;
    let definition = Definition::new(request, preset.as_ref())?;
    let definition = match context.pass.own() {
        Some(own) => kin::as_child(context, own, request, definition).await?,
        None => with_parent(context, definition, None).await?,
    };
    let install = preset.as_ref().and_then(|preset| preset.install.clone());
    let (definition, broken) = settle(definition, preset).await?;
    if let Some(own) = context.pass.own() {
        kin::is_inside(context, own, &definition).await?;
    }
    if let Some(cause) = broken.as_ref().filter(|_| request.force != Some(true)) {
        let body = ErrorBody::new(ErrorKind::BadConfig, cause.to_string());
        return Err(body.hint(show::bad_definition::remedy(cause, install.as_deref())).into());
    }
    vendor_session::is_free(context, &definition).await?;
    Ok(Creatable { name, definition, broken })
}

/// A change is made again if another one came first, so many times.
const MOST_CHANGES_AT_ONCE: usize = 100;

pub(crate) async fn set(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
    JsonBody(request): JsonBody<NewSession>,
) -> Answered<Session> {
    let id = find(&context, session.clone()).await?;
    for _ in 0..MOST_CHANGES_AT_ONCE {
        if define(&context, id, &request).await? == DefineOutcome::Done {
            return object(&context, id).await;
        }
    }
    let body =
        ErrorBody::new(ErrorKind::Busy, format!("session `{session}` is changed by others all the time"));
    Err(body.hint("try again").into())
}

/// Changes a session, unless somebody else changes it meanwhile.
async fn define(
    context: &HttpContext,
    id: SessionId,
    request: &NewSession,
) -> Result<DefineOutcome, ApiError> {
    let (base, definition) = changed(context, id, request).await?;
    let given =
        if definition.env.unkept().is_some() { VariablesChange::Changed } else { VariablesChange::AsBefore };
    let definition = with_given_kept(context, definition).await?;
    let (reply, receiver) = oneshot::channel();
    let define = Box::new(Define { base: Some(base), definition, given, by: context.handle.by() });
    context.handle.tell(LoopInput::Define { id, define, reply });
    Ok(context.handle.answer(receiver).await?)
}

/// The latest definition of a session, and what it would be with this request.
pub(super) async fn changed(
    context: &HttpContext,
    id: SessionId,
    request: &NewSession,
) -> Result<(Arc<Definition>, Definition), ApiError> {
    if let Some(own) = context.pass.own() {
        kin::may_set(context, own, id, request).await?;
    }
    configured::up_to_date(context).await?;
    let Changeable { name, definition: before, conversation } = changeable(context, id).await?;
    let mut definition = Definition::clone(&before);
    let agent = request.agent.clone().unwrap_or_else(|| before.agent.clone());
    let preset = context.handle.view(move |view| view.preset(&agent)).await?;
    definition.set(request, preset.as_ref(), conversation).map_err(|why| cannot_set(&name, why))?;
    if let Some(own) = context.pass.own() {
        kin::is_within(context, own, id, (&before, &definition)).await?;
    }
    if request.parent.is_some() {
        definition = with_parent(context, definition, Some(id)).await?;
    }
    if let (Some(preset), Some(_)) = (&preset, &request.vendor_session) {
        definition.check_vendor_session(preset)?;
    }
    let (definition, broken) = settle(definition, preset).await?;
    if request.vendor_session.is_some() && definition.vendor_lock() != before.vendor_lock() {
        vendor_session::is_free(context, &definition).await?;
    }
    if let (Some(own), Some(_)) = (context.pass.own(), &request.dir) {
        kin::is_inside(context, own, &definition).await?;
    }
    match broken.filter(|_| request.force != Some(true)) {
        Some(cause) => {
            let body = ErrorBody::new(ErrorKind::BadConfig, cause.to_string());
            Err(body.hint("`--force` sets it all the same").into())
        }
        None => Ok((before, definition)),
    }
}

fn cannot_set(name: &str, why: CannotSet) -> ApiError {
    match why {
        CannotSet::Bad(bad) => bad.into(),
        CannotSet::OtherStore { from, to } => show::bad_definition::other_store(name, &from, &to).into(),
        CannotSet::OtherVendor { from, to } => show::bad_definition::other_vendor(name, &from, &to).into(),
    }
}

/// A session that can be changed.
struct Changeable {
    name: String,
    definition: Arc<Definition>,
    conversation: Conversation,
}

/// The latest definition of a session, if it can be changed: an archived one has no next run.
async fn changeable(context: &HttpContext, id: SessionId) -> Result<Changeable, ApiError> {
    let read = |known: SessionRef<'_>| {
        let definition = Arc::clone(known.latest_definition());
        let conversation = Conversation::of(known.core(), &definition);
        (known.state(), Changeable { name: known.name().to_owned(), definition, conversation })
    };
    let (state, changeable) = context.handle.session(id, read).await?;
    match state {
        CoreState::Archived => Err(refusal(&changeable.name, Refusal::Archived)),
        CoreState::Idle
        | CoreState::Starting
        | CoreState::Running
        | CoreState::Stopping
        | CoreState::Backoff
        | CoreState::Blocked
        | CoreState::Held
        | CoreState::Stopped
        | CoreState::Failed => Ok(changeable),
    }
}

pub(crate) async fn start(context: HttpContext, SessionInPath(session): SessionInPath) -> Answered<Session> {
    run_again(&context, session, Ask::Start).await
}

pub(crate) async fn restart(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
) -> Answered<Session> {
    run_again(&context, session, Ask::Restart).await
}

/// Returns when a run decided after the request is running, or cannot run.
async fn run_again(context: &HttpContext, session: String, ask: Ask) -> Answered<Session> {
    let id = find(context, session).await?;
    let mut seen = watcher(context, id).await?;
    let before = seen.borrow_and_update().runs;
    match ask_of(context, id, ask).await? {
        Answer::Already => return object(context, id).await,
        Answer::UnderWay | Answer::Done | Answer::Joined | Answer::Queued { .. } | Answer::Refused(_) => {}
    }
    let done = if ask == Ask::Restart { "restarted" } else { "started" };
    let over = |seen: &SessionSnapshot| at_an_end(seen.state) || called_off_since(seen, before);
    reach(context, id, &mut seen, done, |seen| started_since(seen, before) || over(seen)).await?;
    let now = *seen.borrow();
    if started_since(&now, before) {
        return object(context, id).await;
    }
    let Json(object) = object(context, id).await?;
    Err(ApiError::conflict(not_started(&object)))
}

fn started_since(seen: &SessionSnapshot, before: Runs) -> bool {
    seen.runs.seen > before.seen
}

/// A run was decided on, and was no longer needed before it was started.
fn called_off_since(seen: &SessionSnapshot, before: Runs) -> bool {
    seen.state == CoreState::Idle && seen.runs.last > before.last
}

/// States from which a start does not go on by itself.
fn at_an_end(state: CoreState) -> bool {
    match state {
        CoreState::Blocked
        | CoreState::Failed
        | CoreState::Stopped
        | CoreState::Archived
        | CoreState::Backoff => true,
        CoreState::Idle
        | CoreState::Starting
        | CoreState::Running
        | CoreState::Stopping
        | CoreState::Held => false,
    }
}

fn not_started(session: &Session) -> ErrorBody {
    let kind = if session.state == State::Blocked { ErrorKind::Busy } else { ErrorKind::Failed };
    let mut body =
        ErrorBody::new(kind, format!("session `{}` was not started: {}", session.name, session.why));
    body.holder.clone_from(&session.holder);
    body
}

pub(crate) async fn stop(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
    JsonBody(stop): JsonBody<Stop>,
) -> Answered<Session> {
    let grace = stop.timeout.as_deref().map(units::duration).transpose();
    let grace = grace.map_err(|error| bad_value(error.to_string()))?;
    let stopped = |state| matches!(state, CoreState::Stopped | CoreState::Archived);
    let Json(mut session) = until(&context, session, Ask::Stop { grace }, "stopped", stopped).await?;
    if let Ok(id) = session.id.parse() {
        tell_outsider(&context, id, &mut session).await;
    }
    Ok(Json(session))
}

/// Sends the request and returns when the state is reached.
pub(crate) async fn until(
    context: &HttpContext,
    session: String,
    ask: Ask,
    done: &str,
    reached: impl Fn(CoreState) -> bool,
) -> Answered<Session> {
    let id = find(context, session).await?;
    let mut seen = watcher(context, id).await?;
    ask_of(context, id, ask).await?;
    let asked = seen.borrow_and_update().runs.last;
    // It was reached for a moment if another run was started since.
    reach(context, id, &mut seen, done, |seen| reached(seen.state) || seen.runs.last > asked).await?;
    object(context, id).await
}

pub(crate) async fn wait(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
    UrlQuery(wait): UrlQuery<Wait>,
) -> Answered<Session> {
    let id = find(&context, session.clone()).await?;
    let wanted: Vec<String> = wait.r#for.split(',').map(str::to_owned).collect();
    known_states(wanted.iter().map(String::as_str))?;
    let timeout = wait.timeout.as_deref().map(units::duration).transpose();
    let timeout = timeout.map_err(|error| bad_value(error.to_string()))?;
    let reached = reaches(&context, id, &wanted);
    let Ok(reached) = tokio::time::timeout(timeout.unwrap_or(Duration::MAX), reached).await else {
        let message = format!("session `{session}` did not become {} in time", wait.r#for);
        return Err(ErrorBody::new(ErrorKind::Timeout, message).into());
    };
    reached?;
    object(&context, id).await
}

/// Waits until a session is in one of these states with nothing decided since: what was stored before a
/// reboot may not be true now.
async fn reaches(context: &HttpContext, id: SessionId, wanted: &[String]) -> Result<(), ApiError> {
    let mut seen = watcher(context, id).await?;
    let is_wanted = |seen: &SessionSnapshot| wanted.iter().any(|word| word == seen.state.word());
    // If the sender is gone, so is the session: the next request says so.
    while seen.wait_for(is_wanted).await.is_ok() {
        let now = context.handle.session(id, |known| known.snapshot()).await?;
        if is_wanted(&now) || seen.changed().await.is_err() {
            break;
        }
    }
    Ok(())
}

pub(super) fn bad_value(message: String) -> ApiError {
    ApiError::bad_value(ErrorBody::new(ErrorKind::Usage, message))
}

/// Finds the parent by its name and stores its id, which stays valid.
async fn with_parent(
    context: &HttpContext,
    mut definition: Definition,
    own: Option<SessionId>,
) -> Result<Definition, ApiError> {
    let Some(parent) = definition.parent.take() else { return Ok(definition) };
    let (id, name) = context.handle.view(move |view| view.find_parent(&parent, own)).await??;
    (definition.parent, definition.parent_id) = (Some(name), Some(id));
    Ok(definition)
}

/// Looks for the directory and the program off the loop, since a file system may be slow.
async fn settle(
    mut definition: Definition,
    preset: Option<Preset>,
) -> Result<(Definition, Option<CannotStart>), ErrorBody> {
    let settled = tokio::task::spawn_blocking(move || {
        let broken = definition.settle(preset.as_ref()).err();
        (definition, broken)
    });
    settled.await.map_err(|error| ErrorBody::new(ErrorKind::Failed, error.to_string()))
}

/// Writes given values to disk before a record names them. If no record follows, they are deleted at the next
/// start.
pub(super) async fn with_given_kept(
    context: &HttpContext,
    mut definition: Definition,
) -> Result<Definition, ErrorBody> {
    let Some(given) = definition.env.unkept().cloned() else { return Ok(definition) };
    let values = context.values.clone();
    let kept = tokio::task::spawn_blocking(move || values.keep(&given)).await;
    let file = kept.map_err(std::io::Error::other).and_then(|kept| kept).map_err(|error| {
        ErrorBody::new(ErrorKind::Failed, format!("the values of --env cannot be kept: {error}"))
    })?;
    crate::crash::point("given.kept");
    definition.env.kept_in(file);
    Ok(definition)
}

pub(crate) async fn find(context: &HttpContext, session: String) -> Result<SessionId, ApiError> {
    let wanted = session.clone();
    match context.handle.view(move |view| view.find(&session)).await? {
        Ok(id) => Ok(id),
        Err(why) => Err(nearest::nearest(context, why, wanted).await),
    }
}

pub(crate) async fn watcher(
    context: &HttpContext,
    id: SessionId,
) -> Result<watch::Receiver<SessionSnapshot>, ApiError> {
    Ok(context.handle.session(id, |known| known.watch()).await?)
}

pub(crate) async fn object(context: &HttpContext, id: SessionId) -> Answered<Session> {
    Ok(Json(object_of(context, id).await?))
}

pub(crate) async fn object_of(context: &HttpContext, id: SessionId) -> Result<Session, WhyNot> {
    let view = context.handle.session(id, |known| known.copy()).await?;
    Ok(show::session::session(&view, NowSource::new().now()))
}

pub(crate) async fn ask_of(context: &HttpContext, id: SessionId, ask: Ask) -> Result<Answer, ApiError> {
    let mut answer = context.handle.ask(id, Event::Asked(ask), Facts::default()).await?;
    // A shim that does not answer keeps a run from ending; a start would find its lock held.
    if let (Answer::Refused(Refusal::ShimMute), Some(done)) = (&answer, ending(ask)) {
        a_moment(&mut watcher(context, id).await?, |seen| !seen.unended).await;
        if let Some((name, by)) = in_the_way(context, id).await? {
            return Err(not_done(&name, done, &by));
        }
        answer = context.handle.ask(id, Event::Asked(ask), Facts::default()).await?;
    }
    let Answer::Refused(refused) = answer else { return Ok(answer) };
    let name = context.handle.view(move |view| view.session(id).map(|known| known.name().to_owned())).await?;
    Err(refusal(&name.unwrap_or_default(), refused))
}

/// The word for what a session was to be when asked to end its run.
fn ending(ask: Ask) -> Option<&'static str> {
    match ask {
        Ask::Stop { .. } => Some("stopped"),
        Ask::Archive | Ask::Purge { .. } => Some("archived"),
        Ask::Start
        | Ask::Restart
        | Ask::Interrupt
        | Ask::Restore
        | Ask::Attach { .. }
        | Ask::Takeover { .. } => None,
    }
}

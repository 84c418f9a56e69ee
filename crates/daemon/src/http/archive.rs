//! Archive, restore, purge and rm. A request returns once the state is reached.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use super::extract::{JsonBody, SessionInPath, UrlQuery};
use super::reach::{in_the_way, reach};
use super::refusal::refusal;
use super::sessions::{object, until, watcher};
use super::vendor_session;
use crate::define::transcript::Sought;
use crate::engine::{
    CallerSocket, EngineCommand, EngineView, PurgeCandidate, PurgeModes, ReplyHandle, SessionRef,
    SessionSnapshot, WhyNot,
};
use axum::Json;
use pinfold_api::object::{Left, Purged, Removed, Session, Skipped};
use pinfold_api::query::AlsoRemoved;
use pinfold_api::request::Purge;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::decision::Answer;
use pinfold_core::event::Ask;
use pinfold_core::{Mode, Refusal, State as CoreState};
use pinfold_store::SessionId;

pub(crate) async fn archive(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
) -> Answered<Session> {
    until(&context, session, Ask::Archive, "archived", |state| state == CoreState::Archived).await
}

pub(crate) async fn restore(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
) -> Answered<Session> {
    let id = context.handle.view(move |view| view.find_archived(&session)).await??;
    let Json(object) = match bring_back(&context, id).await? {
        Answer::Refused(refused) => {
            let Json(object) = object(&context, id).await?;
            return Err(refusal(&object.name, refused));
        }
        Answer::Done | Answer::UnderWay | Answer::Already | Answer::Joined | Answer::Queued { .. } => {
            object(&context, id).await?
        }
    };
    Ok(Json(object))
}

async fn bring_back(context: &HttpContext, id: SessionId) -> Result<Answer, WhyNot> {
    let (reply, receiver) = ReplyHandle::new();
    context.handle.command(EngineCommand::Restore { id, by: context.handle.by(), reply });
    context.handle.answer(receiver).await?
}

pub(crate) async fn remove(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
    UrlQuery(also): UrlQuery<AlsoRemoved>,
) -> Answered<Removed> {
    let id = context.handle.view(move |view| view.find_archived(&session)).await??;
    let transcript = match also.with_conversation {
        true => Some(transcript_of(&context, id).await?),
        false => None,
    };
    let by = context.handle.by();
    let removed = context.handle.order(|done| EngineCommand::Remove { id, by, done }).await?;
    let removed = removed.map_err(ApiError::conflict)?;
    if let Some(sought) = transcript {
        let deleted = tokio::task::spawn_blocking(move || sought.delete()).await;
        let deleted = deleted.map_err(std::io::Error::other).and_then(|deleted| deleted);
        deleted.map_err(|error| {
            let text = format!("`{}` is deleted, and its conversation is not: {error}", removed.name);
            ApiError::conflict(ErrorBody::new(ErrorKind::Failed, text))
        })?;
    }
    Ok(Json(removed))
}

/// Where the agent of a session has its transcript, if no other session is in that conversation.
async fn transcript_of(context: &HttpContext, id: SessionId) -> Result<Sought, ApiError> {
    let (name, definition, preset) = context
        .handle
        .view(move |view| {
            let known = view.session(id)?;
            let definition = known.latest_definition();
            let vendor = known.core().talk().conversation(definition.vendor_session.as_deref());
            let preset = view.preset(&definition.agent);
            Some((known.name().to_owned(), definition.resuming(vendor, preset.as_ref()), preset))
        })
        .await?
        .ok_or(WhyNot::Gone)?;
    vendor_session::is_free(context, &definition).await?;
    let sought = preset.as_ref().and_then(|preset| definition.transcript(preset));
    sought.ok_or_else(|| {
        let text = format!("it is not known where `{}` has the conversation of `{name}`", definition.agent);
        let body = ErrorBody::new(ErrorKind::Failed, text);
        ApiError::conflict(body.hint(format!("run `pinfold rm {name} --yes` to delete the session only")))
    })
}

fn modes(word: Option<&str>) -> Result<PurgeModes, ErrorBody> {
    match word {
        None => Ok(PurgeModes::Only(Mode::OnDemand)),
        Some("all") => Ok(PurgeModes::All),
        Some(word) => Mode::of_word(word).map(PurgeModes::Only).ok_or_else(|| {
            ErrorBody::new(ErrorKind::Usage, format!("there is no mode `{word}`"))
                .hint("on-demand, always, once, or all")
        }),
    }
}

pub(crate) async fn purge(context: HttpContext, JsonBody(purge): JsonBody<Purge>) -> Answered<Purged> {
    let modes = modes(purge.mode.as_deref()).map_err(ApiError::bad_value)?;
    let (include_active, dry_run) = (purge.include_active, purge.dry_run);
    let socket = purge.caller.socket.clone();
    let read = tokio::task::spawn_blocking(move || socket.map(|socket| CallerSocket::read(&socket)));
    let socket = read.await.map_err(|error| ErrorBody::new(ErrorKind::Failed, error.to_string()))?;
    let look = move |view: EngineView<'_>| view.to_purge(modes, &purge, socket.as_ref());
    let mut candidates = context.handle.view(look).await?;
    candidates.retain(|candidate| context.pass.touches(candidate.id));
    let mut purged = Purged::default();
    let mut under_way = Vec::new();
    // All are asked before any is waited for, so their graces run at the same time.
    for PurgeCandidate { id, name, own, spared } in candidates {
        let spared = match (spared, dry_run) {
            (None, false) => refused(&context, id, Ask::Purge { include_active, own }).await?,
            (spared, _) => spared,
        };
        match spared {
            Some(why) => purged.skipped.push(Skipped { name, why: reason(why).into() }),
            None => {
                purged.archived.push(name);
                under_way.push(id);
            }
        }
    }
    for id in under_way.into_iter().filter(|_| !dry_run) {
        let mut seen = watcher(&context, id).await?;
        let archived = |seen: &SessionSnapshot| seen.state == CoreState::Archived;
        if reach(&context, id, &mut seen, "archived", archived).await.is_err()
            && let Some((name, by)) = in_the_way(&context, id).await?
        {
            purged.archived.retain(|archived| *archived != name);
            purged.left.push(Left { session: name, why: by.to_string(), pids: by.pids() });
        }
    }
    Ok(Json(purged))
}

async fn refused(context: &HttpContext, id: SessionId, ask: Ask) -> Result<Option<Refusal>, ApiError> {
    let event = pinfold_core::Event::Asked(ask);
    let answer = context.handle.ask(id, event, pinfold_store::Facts::default()).await?;
    Ok(if let Answer::Refused(why) = answer { Some(why) } else { None })
}

/// Why purge spares a session, in a few words.
pub(super) fn reason(why: Refusal) -> &'static str {
    match why {
        Refusal::Own => "it is the session that asks",
        Refusal::Connected => "a client is connected",
        Refusal::TurnUnderWay => "a turn is under way",
        Refusal::MessageQueued => "a message is queued",
        Refusal::ShimMute => "its shim does not answer",
        Refusal::GoingDown => "the daemon is going down",
        Refusal::Archived
        | Refusal::BeingArchived
        | Refusal::BeingStopped
        | Refusal::Stopped
        | Refusal::Failed
        | Refusal::NotArchived
        | Refusal::Busy
        | Refusal::NoTerminal
        | Refusal::RunsOnce
        | Refusal::NoTurn
        | Refusal::NoSuchMessage
        | Refusal::NoSuchRequest
        | Refusal::InboxFull
        | Refusal::NotAnArgument
        | Refusal::InboxHeavy => "it cannot be archived now",
    }
}

/// Restores every archived session whose name is free.
pub(crate) async fn restore_all(context: HttpContext) -> Answered<Vec<Session>> {
    // The latest of a name comes first, so it gets the name.
    let archived = context.handle.view(|view| {
        let archived = view.sessions().rev().filter(|known| known.state() == CoreState::Archived);
        archived.map(SessionRef::id).collect::<Vec<_>>()
    });
    let mut restored = Vec::new();
    let pass = context.pass.clone();
    for id in archived.await?.into_iter().filter(|id| pass.touches(*id)) {
        match bring_back(&context, id).await {
            Ok(_) => restored.push(object(&context, id).await?.0),
            Err(WhyNot::NameTaken { .. } | WhyNot::Gone | WhyNot::Unrecordable(_)) => {}
            Err(why) => return Err(why.into()),
        }
    }
    restored.reverse();
    Ok(Json(restored))
}

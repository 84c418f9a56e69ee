//! The inbox of a session: send, list, wait for an answer, cancel, retry, interrupt.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use super::extract::{JsonBody, UrlQuery, body, parse as parse_body};
use super::look;
use super::paging::{self, ListHeaders, PART};
use super::refusal::refusal;
use super::sessions::{ask_of, find, object};
use crate::clock::NowSource;
use crate::engine::input::{Post, Sending};
use crate::engine::{EngineCommand, EngineView, SessionRef, SessionSnapshot, Unsettled, WhyNot};
use crate::show;
use axum::Json;
use axum::extract::{Path, Request};
use axum::response::Response;
use pinfold_api::object::{Message, Sent, Session};
use pinfold_api::query::{Messages as Which, Patience};
use pinfold_api::request::{NewMessage, Permission};
use pinfold_api::word::MessageState as MessageWord;
use pinfold_api::{ErrorBody, ErrorKind, units};
use pinfold_core::decision::{Answer, Refusal, Wakes};
use pinfold_core::event::Ask;
use pinfold_core::ids::RequestNumber;
use pinfold_core::life::FailCause;
use pinfold_core::quoted::quoted;
use pinfold_core::talk::{Permit, RequestAnswer};
use pinfold_core::{Event, Life, MessageId};
use pinfold_store::{
    Facts, ListPage, MessagePlace, MessageQuery, MessageState, ReadError, Reader, RowCount, SessionId, Take,
    Ulid,
};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// The longest text: an agent reads it as one line.
const LONGEST_TEXT: usize = 1 << 20;
/// The longest text with every byte written as `\u0001`, plus what surrounds it.
pub(crate) const LARGEST_BODY: usize = 6 * LONGEST_TEXT + (64 << 10);
/// The limit of every other request.
const USUAL_BODY: usize = 2 << 20;
const TOO_LARGE: u16 = 413;

/// How long to wait for an answer; an empty word means forever.
fn time(patience: &Patience) -> Result<Option<Duration>, ApiError> {
    let read = |text: &str| if text.is_empty() { Ok(Duration::MAX) } else { units::duration(text) };
    let time = patience.wait.as_deref().map(read).transpose();
    time.map_err(|error| usage(error.to_string()))
}

/// How many files may be sent with one message.
const MOST_FILES: usize = 100;

/// Checks that the files of a message exist, and that their paths are absolute, so that they mean the same
/// everywhere.
async fn there(files: Vec<String>) -> Result<Vec<String>, ApiError> {
    if files.len() > MOST_FILES {
        return Err(usage(format!("a message has {MOST_FILES} files at most, not {}", files.len())));
    }
    if let Some(odd) = files.iter().find(|file| !file.starts_with('/') || file.contains(char::is_control)) {
        return Err(usage(format!("`{}` is not an absolute path", quoted(odd))));
    }
    if files.is_empty() {
        return Ok(files);
    }
    let look = move || match files.iter().find(|file| !std::path::Path::new(file).exists()) {
        Some(missing) => Err(usage(format!("file `{missing}` does not exist"))),
        None => Ok(files),
    };
    let looked = tokio::task::spawn_blocking(look).await;
    looked.map_err(|error| ErrorBody::new(ErrorKind::Failed, error.to_string()))?
}

pub(crate) async fn send(
    context: HttpContext,
    super::extract::SessionInPath(session): super::extract::SessionInPath,
    UrlQuery(patience): UrlQuery<Patience>,
    request: Request,
) -> Answered<Sent> {
    let NewMessage { text, key, files } = read(request).await?;
    let time = time(&patience)?;
    if !files.is_empty() && context.pass.is_confined() {
        // The daemon would look where the sandbox does not let the client look.
        let text = "you are confined: a message from a sandbox names no files";
        return Err(ErrorBody::new(ErrorKind::NotPermitted, text)
            .hint("write the path into the text")
            .into());
    }
    let files = there(files).await?;
    let (id, name) = context.handle.view(move |view| found(view, &session)).await??;
    let (sender, mut queued) = oneshot::channel();
    if time.is_some() {
        queued.close();
    }
    let post = Post::Send(Sending { text, key: key.clone(), files, row: sender });
    let answer = context.handle.post(id, post).await?;
    let Answer::Queued { message, wakes } = answer else { return Err(refused(&context, id, answer).await) };
    let found = match (time, queued.try_recv()) {
        (Some(time), _) => settled(&context, id, message, time).await,
        // What has happened to it since is another question.
        (None, Ok(row)) => Ok(show::message::message(row, &name)),
        (None, Err(_)) => row(&context, id, message).await,
    };
    let message = match (found, key) {
        (Err(failure), Some(key)) => pruned(&context, (id, &name), message, key).await.ok_or(failure)?,
        (found, _) => found?,
    };
    let note = show::wakes::note(wakes, &message.session);
    Ok(Json(Sent { message, note }))
}

/// A message whose key is known but whose record was pruned.
async fn pruned(
    context: &HttpContext,
    (id, name): (SessionId, &str),
    message: MessageId,
    key: String,
) -> Option<Message> {
    let spent = context.read(move |reader| reader.spent_key(id, &key)).await.ok()??;
    (spent.message == message.into()).then(|| show::message::pruned(spent, name))
}

fn found(view: EngineView<'_>, session: &str) -> Result<(SessionId, String), WhyNot> {
    let id = view.find(session)?;
    Ok((id, view.session(id).ok_or(WhyNot::Gone)?.name().to_owned()))
}

/// A body too long for other requests must be a message that needs the length.
async fn read(request: Request) -> Result<NewMessage, ApiError> {
    let bytes = body(request).await?;
    match parse_body::<NewMessage>(&bytes) {
        Err(_) if bytes.len() > USUAL_BODY => Err(ApiError::usage("the request is too large", TOO_LARGE)),
        Err(failure) => Err(failure),
        Ok(message) if message.text.len() > LONGEST_TEXT => {
            let length = message.text.len();
            let text = format!("the message has {length} bytes, and no more than {LONGEST_TEXT} are taken");
            let body = ErrorBody::new(ErrorKind::Usage, text);
            Err(ApiError::with_status(body.hint("put it into a file, and send its path"), TOO_LARGE))
        }
        Ok(message) if message.text.trim().is_empty() && message.files.is_empty() => {
            let body = ErrorBody::new(ErrorKind::Usage, "the message is empty");
            Err(ApiError::bad_value(body.hint("write what the agent is to do")))
        }
        Ok(message) if message.text.contains('\0') => Err(usage("the message has a NUL byte in it".into())),
        Ok(message) if message.key.as_ref().is_some_and(|key| key.is_empty() || key.len() > 1024) => {
            Err(usage("a key has between 1 and 1024 bytes".into()))
        }
        Ok(message) => Ok(message),
    }
}

fn usage(message: String) -> ApiError {
    ApiError::bad_value(ErrorBody::new(ErrorKind::Usage, message))
}

fn state(which: &Which) -> Result<Option<MessageState>, ApiError> {
    which.state.as_deref().map(str::parse).transpose().map_err(|error| {
        let body = ErrorBody::new(ErrorKind::Usage, format!("{error}"));
        ApiError::bad_value(body.hint("the states are queued, delivered, done, failed"))
    })
}

/// Where the list begins, and its headers.
fn begin(
    which: &Which,
    reader: &Reader,
    query: MessageQuery,
) -> Result<Option<(MessagePlace, ListHeaders)>, ReadError> {
    let after = match &which.after {
        None => Some(MessagePlace::default()),
        Some(after) => match after.to_ascii_uppercase().parse::<Ulid>() {
            Ok(after) => reader.place_behind(query.session, after.into())?,
            Err(_) => None,
        },
    };
    let Some(after) = after else { return Ok(None) };
    let from = after.max(reader.message_place(query, which.last.map_or(Take::All, Take::Last))?);
    let next = match which.limit {
        Some(limit) => reader.message_behind_which_more_come(query, from, limit)?,
        None => None,
    };
    let some = which.last.is_some() || which.limit.is_some();
    let total = if some { Some(RowCount::Exactly(reader.count_messages(query, after)?)) } else { None };
    Ok(Some((from, ListHeaders { total, next: next.map(|next| next.to_string()), ..ListHeaders::default() })))
}

pub(crate) async fn list(
    context: HttpContext,
    super::extract::SessionInPath(session): super::extract::SessionInPath,
    UrlQuery(which): UrlQuery<Which>,
) -> Result<Response, ApiError> {
    let state = state(&which)?;
    let session = find(&context, session).await?;
    let name = name(&context, session).await?;
    let query = MessageQuery { session, state };
    let most = which.limit.unwrap_or(u64::MAX);
    let missing = no_such_message(which.after.as_deref().unwrap_or_default());
    let begin = context.read(move |reader| begin(&which, reader, query)).await?;
    let (from, head) = begin.ok_or(missing)?;
    let waits_for = waits_for(&context, session).await?;
    let read = move |reader: &Reader, after, most| {
        let ListPage { rows, next } = reader.message_part(query, after, most, PART)?;
        let shown = |row| show::message::waiting(show::message::listed(row, &name), waits_for.as_deref());
        Ok(ListPage { rows: rows.into_iter().map(shown).collect::<Vec<_>>(), next })
    };
    paging::array(context, head, (from, most), read).await
}

/// The session and the message that an address names.
pub(crate) type Address = Path<(String, String)>;

pub(crate) async fn show(
    context: HttpContext,
    Path((session, message)): Address,
    UrlQuery(patience): UrlQuery<Patience>,
) -> Answered<Message> {
    let time = time(&patience)?;
    let id = find(&context, session).await?;
    let message = parse(&message)?;
    Ok(Json(match time {
        Some(time) => settled(&context, id, message, time).await?,
        None => row(&context, id, message).await?,
    }))
}

pub(crate) async fn cancel(context: HttpContext, Path((session, message)): Address) -> Answered<Message> {
    let id = find(&context, session).await?;
    let message = parse(&message)?;
    let before = row(&context, id, message).await?;
    let answer = context.handle.post(id, Post::Cancel { message }).await?;
    match answer {
        Answer::Done => Ok(Json(row(&context, id, message).await?)),
        Answer::Refused(pinfold_core::Refusal::NoSuchMessage) => {
            Err(ApiError::conflict(not_cancelled(&before)))
        }
        Answer::UnderWay | Answer::Already | Answer::Joined | Answer::Queued { .. } | Answer::Refused(_) => {
            Err(refused(&context, id, answer).await)
        }
    }
}

fn not_cancelled(message: &Message) -> ErrorBody {
    let Message { id, session, state, .. } = message;
    match state {
        MessageWord::Done | MessageWord::Failed => {
            ErrorBody::new(ErrorKind::Failed, format!("message {id} is {state} already"))
        }
        MessageWord::Queued | MessageWord::Delivered | MessageWord::Damaged | MessageWord::Other(_) => {
            ErrorBody::new(ErrorKind::Failed, format!("the turn of message {id} is under way"))
                .hint(format!("`pinfold interrupt {}` ends it", quoted(session)))
        }
    }
}

pub(crate) async fn retry(context: HttpContext, Path((session, message)): Address) -> Answered<Sent> {
    let id = find(&context, session).await?;
    let message = parse(&message)?;
    let before = row(&context, id, message).await?;
    let answer = context.handle.post(id, Post::Retry { message }).await?;
    let wakes = match answer {
        Answer::Queued { wakes, .. } => wakes,
        Answer::Already if before.state == MessageWord::Done => {
            let text = format!("message {} is done: only a failed one is tried again", before.id);
            return Err(ApiError::conflict(ErrorBody::new(ErrorKind::Failed, text)));
        }
        Answer::Already => Wakes::Yes,
        Answer::Done | Answer::UnderWay | Answer::Joined | Answer::Refused(_) => {
            return Err(refused(&context, id, answer).await);
        }
    };
    let message = row(&context, id, message).await?;
    let note = show::wakes::note(wakes, &message.session);
    Ok(Json(Sent { message, note }))
}

pub(crate) async fn interrupt(
    context: HttpContext,
    super::extract::SessionInPath(session): super::extract::SessionInPath,
) -> Answered<Session> {
    let id = find(&context, session).await?;
    ask_of(&context, id, Ask::Interrupt).await?;
    object(&context, id).await
}

pub(crate) async fn answer(
    context: HttpContext,
    super::extract::SessionInPath(session): super::extract::SessionInPath,
    JsonBody(permission): JsonBody<Permission>,
) -> Answered<Session> {
    let id = find(&context, session).await?;
    if !["allow", "deny"].contains(&permission.answer.as_str()) {
        return Err(usage(format!("`{}` is not an answer: allow or deny", permission.answer)));
    }
    let verdict = if permission.answer == "allow" { Permit::Allow } else { Permit::Deny };
    if let Some(answered) = lets_go_on(&context, id, permission.id.as_deref(), verdict).await? {
        return Ok(answered);
    }
    let number = permission.id.as_deref().map(|word| number_of(word).ok_or(word));
    let Permission { message: words, always, .. } = permission.clone();
    if let Ok(request) = number.transpose() {
        let answer = RequestAnswer { verdict, always, words };
        let event = Event::Answered { request, answer };
        let answer = context.handle.ask(id, event, Facts::default()).await?;
        if answer == Answer::Done {
            return object(&context, id).await;
        }
        if answer != Answer::Refused(Refusal::NoSuchRequest) {
            return Err(refused(&context, id, answer).await);
        }
    }
    Err(not_asked(&context, id, permission.id).await)
}

/// Answers what a person is asked when a session is kept from its turns: its account goes on, or its budget
/// starts anew. `None` if the request is another one.
async fn lets_go_on(
    context: &HttpContext,
    id: SessionId,
    request: Option<&str>,
    verdict: Permit,
) -> Result<Option<axum::Json<Session>>, ApiError> {
    let asked = context.handle.session(id, |known| {
        let core = known.core();
        let asks = core.hold().filter(|hold| hold.asks).and_then(|hold| hold.kind.asked_as());
        let account = core.held_by_account().and_then(|_| known.account().map(str::to_owned));
        (asks, core.talk().open().next().is_some(), account)
    });
    let (asks, others, account) = asked.await?;
    let meant = match (asks, request) {
        (Some(word), Some(request)) => word == request,
        (Some(_), None) => !others,
        (None, _) => false,
    };
    if !meant {
        return Ok(None);
    }
    // A denial leaves everything as it is.
    if verdict == Permit::Allow {
        match account {
            Some(account) => {
                let (reply, resumed) = tokio::sync::oneshot::channel();
                context.handle.command(EngineCommand::ResumeAccount { account, reply });
                context.handle.answer(resumed).await?;
            }
            None => _ = context.handle.ask(id, Event::BudgetRaised, Facts::default()).await?,
        }
    }
    object(context, id).await.map(Some)
}

/// The number in a request's name, such as `r3`.
fn number_of(word: &str) -> Option<RequestNumber> {
    word.strip_prefix('r')?.parse().ok().map(RequestNumber)
}

/// There is nothing to answer: the request is over, or there never was one.
async fn not_asked(context: &HttpContext, id: SessionId, request: Option<String>) -> ApiError {
    let known = context.handle.session(id, |known| (known.name().to_owned(), known.core().talk().asked()));
    let (name, asked) = match known.await {
        Ok(known) => known,
        Err(why) => return why.into(),
    };
    let number = request.as_deref().and_then(number_of);
    let over = number.map_or(request.is_none() && asked > 0, |number| number.0 <= asked);
    let text = match (&request, over) {
        (Some(request), true) => format!("request `{request}` of session `{name}` was answered or withdrawn"),
        (None, true) => format!("session `{name}` asks nothing any more: it was answered or withdrawn"),
        (Some(request), false) => format!("session `{name}` has no open request `{request}`"),
        (None, false) => format!("session `{name}` asks for nothing"),
    };
    let body = ErrorBody::new(if over { ErrorKind::Busy } else { ErrorKind::Failed }, text);
    ApiError::conflict(body.hint(format!("`pinfold why {}` says what it does", quoted(&name))))
}

pub(crate) fn parse(text: &str) -> Result<MessageId, ApiError> {
    let id: Result<Ulid, _> = text.to_ascii_uppercase().parse();
    id.map(MessageId::from).map_err(|_| no_such_message(text).into())
}

fn no_such_message(id: &str) -> ErrorBody {
    ErrorBody::new(ErrorKind::NotFound, format!("there is no message `{id}`"))
        .hint("`pinfold inbox SESSION` lists its messages")
}

async fn name(context: &HttpContext, id: SessionId) -> Result<String, ApiError> {
    Ok(context.handle.session(id, |known| known.name().to_owned()).await?)
}

async fn refused(context: &HttpContext, id: SessionId, answer: Answer) -> ApiError {
    match (answer, name(context, id).await) {
        (_, Err(failure)) => failure,
        (Answer::Refused(why), Ok(name)) => refusal(&name, why),
        (other, Ok(name)) => {
            ErrorBody::new(ErrorKind::Failed, format!("session `{name}` answered {other:?}")).into()
        }
    }
}

/// One message of a session as it is stored.
pub(crate) async fn row(
    context: &HttpContext,
    id: SessionId,
    message: MessageId,
) -> Result<Message, ApiError> {
    let name = name(context, id).await?;
    let row = context.read(move |reader| reader.answered(message)).await?;
    let row = row.filter(|row| row.session == id);
    let row = row.ok_or_else(|| no_such_message(&Ulid::from(message).to_string()))?;
    let waits_for = waits_for(context, id).await?;
    Ok(show::message::waiting(show::message::message(row, &name), waits_for.as_deref()))
}

/// What the queued messages of a session wait for, besides their turn.
async fn waits_for(context: &HttpContext, id: SessionId) -> Result<Option<String>, ApiError> {
    Ok(context.handle.session(id, |known| show::activity::waits_for(known.core())).await?)
}

/// Waits until a message is done or has failed, or no answer can come.
async fn settled(
    context: &HttpContext,
    id: SessionId,
    message: MessageId,
    time: Duration,
) -> Result<Message, ApiError> {
    let (sender, receiver) = oneshot::channel();
    // Registered before looking: what happens in between is not missed.
    let order = |reply| EngineCommand::AwaitMessage { id, message, settled: sender, reply };
    let (seen, unsettled) = context.handle.order(order).await?.ok_or(WhyNot::Gone)?;
    if unsettled == Unsettled::Unknown {
        let now = row(context, id, message).await?;
        if is_settled(&now) {
            look::took_answer(context, id);
            return Ok(now);
        }
    }
    match tokio::time::timeout(time, answer_or_none(context, id, message, receiver, seen)).await {
        Ok(over) => over.inspect(|_| look::took_answer(context, id)),
        Err(_) => {
            let now = row(context, id, message).await?;
            let text = format!("message {} is still {}", now.id, now.state);
            let hint =
                format!("it stays queued; `pinfold inbox {}` shows what becomes of it", quoted(&now.session));
            Err(ErrorBody::new(ErrorKind::Timeout, text).hint(hint).into())
        }
    }
}

async fn answer_or_none(
    context: &HttpContext,
    id: SessionId,
    message: MessageId,
    mut settled: oneshot::Receiver<()>,
    mut seen: watch::Receiver<SessionSnapshot>,
) -> Result<Message, ApiError> {
    loop {
        let read =
            move |view: EngineView<'_>| view.session(id).and_then(|known| waits_in_vain(known, message));
        if let Some(over) = context.handle.view(read).await? {
            return Err(ApiError::conflict(over));
        }
        tokio::select! {
            // Both arrive at once, and the end is what is waited for.
            biased;
            // If the session was removed, or the daemon ends, the row says so.
            _ = &mut settled => return over(context, id, message).await,
            changed = seen.changed() => if changed.is_err() {
                return row(context, id, message).await;
            }
        }
    }
}

/// A message that has ended. Most answers are short: the loop's own reader has them at hand, which is faster
/// than waking a thread. A long or unreadable one is read separately.
async fn over(context: &HttpContext, id: SessionId, message: MessageId) -> Result<Message, ApiError> {
    let at_hand = move |view: EngineView<'_>| {
        let row = view.message(message).ok()?.filter(|row| row.session == id && row.has_short_answer())?;
        Some(show::message::message(row, view.session(id)?.name())).filter(is_settled)
    };
    match context.handle.view(at_hand).await? {
        Some(message) => Ok(message),
        None => row(context, id, message).await,
    }
}

/// Why nothing will happen to a message by itself, if so.
fn waits_in_vain(known: SessionRef<'_>, message: MessageId) -> Option<ErrorBody> {
    if !known.core().inbox().waits(message) {
        return None;
    }
    let (name, id) = (known.name(), Ulid::from(message));
    let failed = |text: String| ErrorBody::new(ErrorKind::Failed, text);
    match known.core().life() {
        Life::Stopped => Some(
            failed(format!("message {id} is queued, not woken: `{name}` is stopped"))
                .hint(format!("`pinfold start {}` delivers it", quoted(name))),
        ),
        Life::Failed { cause } => {
            let why = known.core().explain_as(name, NowSource::new().now());
            let body = failed(format!("message {id} is queued, and `{name}` is {why}"));
            let is_lost = *cause == FailCause::ConversationLost;
            // What helps then is part of the reason.
            let hint =
                format!("`pinfold start {0}` tries again; `pinfold logs {0}` tells more", quoted(name));
            Some(if is_lost { body } else { body.hint(hint) })
        }
        Life::Archived { .. } => {
            let text = format!("session `{name}` was archived; message {id} stays queued there");
            let archived = ErrorBody::new(ErrorKind::Archived, text);
            Some(archived.hint(format!("`pinfold restore {}` brings it back", quoted(name))))
        }
        Life::Idle { .. }
        | Life::Starting { .. }
        | Life::Running { .. }
        | Life::Held { .. }
        | Life::Stopping { .. }
        | Life::Backoff { .. }
        | Life::Blocked { .. } => None,
    }
}

fn is_settled(message: &Message) -> bool {
    [MessageWord::Done, MessageWord::Failed].contains(&message.state)
}

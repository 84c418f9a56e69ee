//! Attach: counts the client, wakes or takes over the session, and says where its terminal is.
//!
//! The terminal itself is the shim's: keys and screens do not pass through here.

use super::HttpContext;
use super::api_error::ApiError;
use super::extract::{JsonBody, SessionInPath};
use super::logs::{self, OutputSource};
use super::refusal::refusal_body;
use super::streaming;
use crate::clock::NowSource;
use crate::engine::{
    self, AttachStanding, AttachedTo, EngineCommand, GuestEnd, NotAttached, ReplyHandle, SessionView,
    Standings, WhyNot,
};
use crate::http::consumer::Consumer;
use crate::output::printed::Sequences;
use crate::show;
use axum::body::Bytes;
use axum::response::Response;
use pinfold_api::object::AttachLine;
use pinfold_api::request::Attach;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::decision::TakeoverEnd;
use pinfold_core::guest::{Guest, GuestStage};
use pinfold_core::life::{CannotStart, HolderSeen, Life};
use pinfold_core::quoted::quoted;
use pinfold_core::{Now, Refusal, RunNumber};
use pinfold_shim::Size;
use pinfold_store::SessionId;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How often a waiting client is told again, with the time left. Nothing is looked up for that.
const SAID_AGAIN: Duration = Duration::from_secs(1);

/// A client that is attached, or about to be.
struct Attaching {
    context: HttpContext,
    id: SessionId,
    /// Its end is the end of what it asked for.
    _consumer: Consumer,
}

pub(crate) async fn attach(
    context: HttpContext,
    SessionInPath(session): SessionInPath,
    JsonBody(request): JsonBody<Attach>,
) -> Result<Response, ApiError> {
    let id = super::sessions::find(&context, session).await?;
    let consumer = Consumer::new(&context.handle, id);
    let read_only = request.read_only;
    let size = (request.rows > 0 && !read_only).then(|| Size::new(request.rows, request.columns));
    let no_program = if read_only || request.again { None } else { no_program(&context, id).await? };
    let (by, urgent) = (context.handle.by(), request.now);
    let attach =
        Box::new(engine::AttachRequest { consumer: consumer.id, size, urgent, read_only, by, no_program });
    let attaching = Attaching { context, id, _consumer: consumer };
    let (sender, receiver) = mpsc::channel(4);
    if request.again {
        tokio::spawn(attaching.count_again(attach, sender));
    } else {
        let order = |reply| EngineCommand::Attach { id, attach, reply };
        let attached = attaching.context.handle.order(order).await?;
        let attached = attached.map_err(|why| match why {
            NotAttached::Unable(why) => why.into(),
            why @ (NotAttached::NoProgram { .. }
            | NotAttached::Refused(..)
            | NotAttached::NoGuest(..)
            | NotAttached::OldShim { .. }
            | NotAttached::NotTakenOver(..)) => ApiError::conflict(not_attached(&why)),
        })?;
        tokio::spawn(attaching.serve(attached, sender));
    }
    Ok(streaming::lines(receiver))
}

/// Why the terminal program that would take the place of a session's run cannot be started; `None` if it can,
/// or if there is none.
async fn no_program(context: &HttpContext, id: SessionId) -> Result<Option<CannotStart>, WhyNot> {
    let definition = context.handle.session(id, |known| known.definition().clone()).await?;
    if definition.interactive.is_empty() {
        return Ok(None);
    }
    let found = tokio::task::spawn_blocking(move || definition.find_interactive()).await;
    Ok(found.ok().and_then(Result::err))
}

impl Attaching {
    /// Counts a client that already has the terminal, until it goes.
    async fn count_again(self, attach: Box<engine::AttachRequest>, sender: mpsc::Sender<Bytes>) {
        let (reply, counted) = ReplyHandle::new();
        self.context.handle.command(EngineCommand::AttachAgain { id: self.id, attach, reply });
        let counted = matches!(self.context.handle.answer(counted).await, Ok(Ok(_)));
        if counted && sender.send(line(&AttachLine::Counted {})).await.is_ok() {
            self.stay(&sender).await;
        }
    }

    async fn serve(self, attached: AttachedTo, sender: mpsc::Sender<Bytes>) {
        tokio::select! {
            () = self.answer(attached, &sender) => {}
            () = sender.closed() => {}
            () = self.context.handle.ended() => {}
        }
    }

    async fn stay(&self, sender: &mpsc::Sender<Bytes>) {
        tokio::select! {
            () = sender.closed() => {}
            () = self.context.handle.ended() => {}
        }
    }

    async fn answer(&self, attached: AttachedTo, sender: &mpsc::Sender<Bytes>) {
        let mut standings = match attached {
            AttachedTo::Output => return self.follow(sender).await,
            AttachedTo::Terminal(standings) => standings,
        };
        let (last, ready) = match until_ready(&mut standings, sender).await {
            Ok((ready, run, guest)) => (self.noted(ready).await, Some((run, guest))),
            Err(error) => (AttachLine::Failed(Box::new(error)), None),
        };
        if sender.send(line(&last)).await.is_ok()
            && let Some((run, guest)) = ready
        {
            match guest {
                Some(guest) => self.tell_guest_end(run, guest, sender).await,
                None => self.tell_end(run, sender).await,
            }
            self.stay(sender).await;
        }
    }

    /// Adds what is not noticed of what is typed into the vendor's own terminal.
    async fn noted(&self, mut ready: AttachLine) -> AttachLine {
        let unfollowed = self.unfollowed().await.unwrap_or_default();
        if let (AttachLine::Ready { note, .. }, false) = (&mut ready, unfollowed.is_empty()) {
            *note = Some(not_followed(&unfollowed));
        }
        ready
    }

    /// The commands of the terminal that lead to a conversation of which pinfold hears nothing.
    async fn unfollowed(&self) -> Option<Vec<String>> {
        let definition =
            self.context.handle.session(self.id, |known| known.definition().clone()).await.ok()?;
        let (agent, pty) = (definition.agent.clone(), definition.pty);
        // A session that only has a terminal is in no conversation of ours.
        let preset = self.context.handle.view(move |view| view.preset(&agent)).await.ok()??;
        (!pty).then_some(preset.unfollowed)
    }

    /// Reports the end of the run whose terminal was shown.
    async fn tell_end(&self, run: RunNumber, sender: &mpsc::Sender<Bytes>) {
        let Ok(mut seen) = super::sessions::watcher(&self.context, self.id).await else { return };
        if seen.wait_for(|seen| seen.runs.settled >= run).await.is_err() {
            return;
        }
        let view = self.context.handle.session(self.id, |known| known.copy()).await;
        if let Some(message) = view.ok().and_then(|view| view.core.explain_end(NowSource::new().now())) {
            _ = sender.send(line(&AttachLine::Ended { message })).await;
        }
    }

    /// Reports the end of the terminal program that was shown, with its run or before it.
    async fn tell_guest_end(&self, run: RunNumber, number: u64, sender: &mpsc::Sender<Bytes>) {
        let Ok(mut seen) = super::sessions::watcher(&self.context, self.id).await else { return };
        let here = |guest: Guest| {
            (guest.run, guest.number) == (run, number) && !matches!(guest.stage, GuestStage::Gone { .. })
        };
        if seen.wait_for(|seen| !seen.guest.is_some_and(here)).await.is_err() {
            return;
        }
        let view = self.context.handle.session(self.id, |known| known.copy()).await;
        let Some(view) = view.ok() else { return };
        let goes_on = matches!(view.core.life(), Life::Running { run: live, .. } if *live == run);
        let ended = view.core.explain_guest_end().filter(|_| goes_on);
        let message = match ended {
            Some(ended) => Some(format!("{ended}; the agent goes on")),
            None => view.core.explain_end(NowSource::new().now()),
        };
        if let Some(message) = message {
            _ = sender.send(line(&AttachLine::Ended { message })).await;
        }
    }

    async fn follow(&self, sender: &mpsc::Sender<Bytes>) {
        if sender.send(line(&AttachLine::Follow {})).await.is_err() {
            return;
        }
        if let Ok(source) = OutputSource::of(&self.context, self.id, None, Sequences::Obeyed).await {
            _ = logs::pass_on(&self.context, self.id, source, logs::SHOWN, sender).await;
        }
    }
}

/// Reports what is waited for, second by second, until there is a terminal or there will be none.
async fn until_ready(
    standings: &mut Standings,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(AttachLine, RunNumber, Option<u64>), ErrorBody> {
    let mut said: Option<(String, Instant)> = None;
    loop {
        let standing = standings.borrow_and_update().clone();
        let waits = match standing {
            Some(AttachStanding::Ready { socket, run, guest }) => {
                return Ok((ready(&socket, run), run, guest));
            }
            Some(AttachStanding::Over(why)) => return Err(not_attached(&why)),
            Some(AttachStanding::NoSocket(view)) => Some(no_socket(&view)),
            Some(AttachStanding::Waits(view)) => Some(waiting(&view, NowSource::new().now())),
            None => None,
        };
        if let Some((message, left_ms)) = waits
            && said.as_ref().is_none_or(|(last, at)| *last != message || at.elapsed() >= SAID_AGAIN)
        {
            said = Some((message.clone(), Instant::now()));
            if sender.send(line(&AttachLine::Waiting { message, left_ms })).await.is_err() {
                return Err(WhyNot::Gone.into());
            }
        }
        let again = said.as_ref().map(|(_, at)| *at + SAID_AGAIN);
        tokio::select! {
            changed = standings.changed() => changed.map_err(|_| WhyNot::Gone)?,
            () = until(again) => {}
        }
    }
}

fn ready(socket: &Path, run: RunNumber) -> AttachLine {
    let socket_bytes = socket.to_str().is_none().then(|| socket.as_os_str().as_bytes().to_vec());
    AttachLine::Ready { socket: socket.display().to_string(), socket_bytes, run: run.0, note: None }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn line(line: &AttachLine) -> Bytes {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

/// Says which commands are not followed, and what that means.
fn not_followed(commands: &[String]) -> String {
    let all: Vec<String> = commands.iter().map(|command| format!("`{command}`")).collect();
    let all = match all.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => all.join(""),
    };
    format!("pinfold does not follow {all}: messages go on in the conversation from before")
}

fn no_socket(view: &SessionView) -> (String, Option<u64>) {
    (format!("the socket of `{}`'s terminal was removed; it is made again", view.name), None)
}

/// What is waited for, in words, and for how many milliseconds at most.
fn waiting(view: &SessionView, now: Now) -> (String, Option<u64>) {
    let name = &view.name;
    let takeover = view.core.takeover();
    let (message, until) = match (view.core.life(), takeover) {
        (Life::Running { .. }, Some(takeover)) if takeover.urgent => {
            (format!("`{name}`: the turn under way is interrupted"), Some(takeover.until.boot))
        }
        (Life::Running { .. }, Some(takeover)) => {
            (format!("`{name}` finishes its turn first; `--now` interrupts it"), Some(takeover.until.boot))
        }
        (Life::Stopping { .. }, Some(_)) if view.core.unended().is_none() => {
            (format!("`{name}`: the headless run ends"), None)
        }
        (Life::Running { .. }, None) if view.core.awaits_guest() => {
            (format!("`{name}`: its agent is not ready for a terminal yet"), None)
        }
        (Life::Backoff { until, .. }, _) => {
            (format!("`{name}` waits before its next run; `--now` starts it"), Some(until.boot))
        }
        _ => (format!("`{name}` is {}", view.core.explain_as(name, now)), None),
    };
    let left_ms = until.map(|until| u64::try_from(until.since(now.boot).as_millis()).unwrap_or(u64::MAX));
    (message, left_ms)
}

/// Why a client is not attached, in words.
pub(super) fn not_attached(why: &NotAttached) -> ErrorBody {
    match why {
        NotAttached::Unable(why) => why.clone().into(),
        NotAttached::NoProgram { name, cause } => {
            let message = format!("`{name}` is not taken over: its terminal {cause}");
            ErrorBody::new(ErrorKind::BadConfig, message)
                .hint("`interactive` of its agent in config.toml names it")
        }
        NotAttached::Refused(refusal, view) => refused(view, *refusal),
        NotAttached::NotTakenOver(how, view) => not_taken_over(view, *how),
        NotAttached::NoGuest(how, view) => no_guest(view, how.as_ref()),
        NotAttached::OldShim { name } => {
            let message =
                format!("`{name}` runs under a shim of an older version, which has one terminal only");
            let name = quoted(name);
            ErrorBody::new(ErrorKind::Busy, message).hint(format!(
                "`pinfold restart {name}` gives it a new one; `pinfold send` and `pinfold logs` work meanwhile"
            ))
        }
    }
}

/// The error for a session's refusal, with what is known of the session.
fn refused(view: &SessionView, refused: Refusal) -> ErrorBody {
    match (refused, view.core.life()) {
        (Refusal::Busy, Life::Blocked { holder, .. }) => blocked(&view.name, holder.as_deref()),
        (Refusal::Failed, _) => {
            let why = view.core.explain_as(&view.name, NowSource::new().now());
            let hint = refusal_body(&view.name, refused).hint.unwrap_or_default();
            ErrorBody::new(ErrorKind::Failed, format!("session `{}` is {why}", view.name)).hint(hint)
        }
        _ => refusal_body(&view.name, refused),
    }
}

/// Another holder has what the session needs: who it is, and what to do.
fn blocked(name: &str, holder: Option<&HolderSeen>) -> ErrorBody {
    let Some(holder) = holder else { return refusal_body(name, Refusal::Busy) };
    let who = match (holder.pid, &holder.command) {
        (Some(pid), Some(command)) => format!("pid {pid} ({command})"),
        (Some(pid), None) => format!("pid {pid}"),
        (None, _) => "another process".into(),
    };
    let of = holder.session.as_ref().filter(|own| *own != name).map(|own| format!(" of session `{own}`"));
    let message =
        format!("session `{name}` waits: {who}{} holds {}", of.unwrap_or_default(), holder.resource);
    let mut body = ErrorBody::new(ErrorKind::Busy, message).hint(format!(
        "it goes on by itself when that is free; `pinfold unlock {} --kill` ends the holder",
        quoted(&holder.resource)
    ));
    body.holder = Some(show::session::holder_value(holder));
    body
}

/// Why there is no guest.
fn no_guest(view: &SessionView, how: Option<&GuestEnd>) -> ErrorBody {
    let name = &view.name;
    match how {
        Some(GuestEnd { text: Some(text), .. }) => {
            let message =
                format!("the terminal program of `{name}` was not started: {text}; its agent goes on");
            ErrorBody::new(ErrorKind::BadConfig, message)
                .hint("`interactive` of its agent in config.toml names it")
        }
        Some(GuestEnd { exit, text: None }) => {
            let message = format!("the terminal program of `{name}` {exit} at once; its agent goes on");
            ErrorBody::new(ErrorKind::Failed, message)
                .hint(format!("`pinfold events --session {}` has it", quoted(name)))
        }
        None => {
            let message = format!("the terminal program of `{name}` is not there any more");
            ErrorBody::new(ErrorKind::Failed, message).hint("attaching again may succeed")
        }
    }
}

/// Why a takeover failed.
fn not_taken_over(view: &SessionView, how: Option<TakeoverEnd>) -> ErrorBody {
    let name = &view.name;
    let program = view.definition.interactive.first().cloned().unwrap_or_default();
    let (kind, message, hint) = match how {
        Some(TakeoverEnd::DeadlinePassed) => (
            ErrorKind::Timeout,
            format!("`{name}` did not finish its turn in time; it goes on"),
            format!("`pinfold attach {} --now` interrupts it", quoted(name)),
        ),
        Some(TakeoverEnd::CannotStart) => (
            ErrorKind::BadConfig,
            format!("the terminal program `{program}` of `{name}` cannot be started; its run comes back"),
            "`interactive` of its agent in config.toml names it".into(),
        ),
        Some(TakeoverEnd::Busy) => {
            return refusal_body(name, Refusal::Busy);
        }
        Some(TakeoverEnd::Held) => (
            ErrorKind::Failed,
            format!("the terminal program of `{name}` has ended at once"),
            format!("`pinfold logs {}` has what it printed", quoted(name)),
        ),
        Some(TakeoverEnd::CallerGone | TakeoverEnd::Overruled) | None => (
            ErrorKind::Failed,
            format!("the takeover of `{name}` was called off"),
            format!("`pinfold why {}` says what is; attaching again may succeed", quoted(name)),
        ),
    };
    ErrorBody::new(kind, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_says_which_of_its_commands_are_not_followed() {
        let said = |commands: &[&str]| {
            not_followed(&commands.iter().map(|command| (*command).to_owned()).collect::<Vec<_>>())
        };
        let rest = "messages go on in the conversation from before";
        assert_eq!(said(&["/new"]), format!("pinfold does not follow `/new`: {rest}"));
        let all = said(&["/new", "/clear", "/fork"]);
        assert_eq!(all, format!("pinfold does not follow `/new`, `/clear` and `/fork`: {rest}"));
    }
}

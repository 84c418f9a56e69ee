//! Attach: counts whoever is attached, wakes or takes over the session, and says where its terminal is.
//!
//! The terminal itself is the shim's: keys and screens do not come through here.

use super::Context;
use super::answer::{Failure, Named, Said, refusal_body};
use super::logs::{self, Source};
use super::streaming;
use crate::clock::Clock;
use crate::engine::{Command, SessionView, Standing, Way, WhyNot};
use crate::http::consumer::Consumer;
use crate::output::printed::Sequences;
use crate::show;
use axum::body::Bytes;
use axum::response::Response;
use pinfold_api::object::AttachLine;
use pinfold_api::request::Attach;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::decision::{Answer, TakeoverEnd};
use pinfold_core::event::{Ask, ConsumerKind};
use pinfold_core::life::{HolderSeen, Life};
use pinfold_core::quoted::quoted;
use pinfold_core::{Event, Now, Refusal, RunNumber};
use pinfold_shim::Size;
use pinfold_store::{Facts, SessionId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// A countdown is told so often.
const TELL: Duration = Duration::from_secs(1);
/// No shim says when it has made its socket again: that is looked for so often.
const SOCKET: Duration = Duration::from_millis(250);

/// One attach under way.
struct Attaching {
    context: Context,
    id: SessionId,
    /// Its end is the end of what it asked for.
    consumer: Consumer,
    way: Way,
    now: bool,
    read_only: bool,
    /// Whether the takeover under way is its own.
    asked: AtomicBool,
}

pub(crate) async fn attach(
    context: Context,
    Named(session): Named,
    Said(request): Said<Attach>,
) -> Result<Response, Failure> {
    let id = super::sessions::find(&context, session).await?;
    let consumer = Consumer::new(&context.handle, id);
    let shows_only = request.read_only;
    let size = (request.rows > 0 && !shows_only).then(|| Size::new(request.rows, request.columns));
    let order = |reply| Command::PrepareAttach { id, size, shows_only, reply };
    let way = context.handle.order(order).await?.ok_or(WhyNot::Gone)?;
    let attaching = Attaching {
        context,
        id,
        consumer,
        way,
        now: request.now,
        read_only: request.read_only,
        asked: AtomicBool::new(false),
    };
    let (sender, receiver) = mpsc::channel(4);
    if request.again {
        tokio::spawn(attaching.count_again(sender));
    } else {
        attaching.ask().await?;
        tokio::spawn(attaching.serve(sender));
    }
    Ok(streaming::lines(receiver))
}

impl Attaching {
    /// Asks for what is needed before anything is answered, so that a refusal is the answer.
    async fn ask(&self) -> Result<(), Failure> {
        let held = matches!(self.view().await?.core.life(), Life::Held { .. });
        if self.way == Way::Takeover && !held {
            self.take_over().await.map_err(Failure::conflict)?;
        }
        if let Some(over) = cannot_be(&self.view().await?) {
            return Err(Failure::conflict(over));
        }
        self.consumer.count(ConsumerKind::Attach).await?;
        let waits = matches!(self.view().await?.core.life(), Life::Backoff { .. });
        if self.now && waits {
            self.context.handle.ask(self.id, Event::Asked(Ask::Start), Facts::default()).await?;
        }
        Ok(())
    }

    /// Asks for the terminal program, or joins somebody who did.
    async fn take_over(&self) -> Result<(), ErrorBody> {
        self.find_program().await?;
        self.context.handle.command(Command::ForgetTakeoverEnd { id: self.id });
        let ask = Ask::Takeover { consumer: self.consumer.id, urgent: self.now };
        match self.context.handle.ask(self.id, Event::Asked(ask), Facts::default()).await? {
            Answer::Refused(refused) => Err(refused_body(&self.view().await?, refused)),
            Answer::UnderWay => {
                self.asked.store(true, Ordering::Relaxed);
                Ok(())
            }
            Answer::Joined | Answer::Done | Answer::Already | Answer::Queued { .. } => Ok(()),
        }
    }

    /// Somebody else's terminal program ended before we had it: then it is our turn to ask.
    async fn ask_in_turn(&self) -> Result<(), ErrorBody> {
        let view = self.view().await?;
        let ended = matches!(view.takeover_end, None | Some(TakeoverEnd::Held));
        if ended && !self.read_only && !self.asked.load(Ordering::Relaxed) {
            return self.take_over().await;
        }
        Err(not_taken_over(&view))
    }

    /// No run is ended for a terminal program that is not there.
    async fn find_program(&self) -> Result<(), ErrorBody> {
        let SessionView { name, definition, .. } = self.view().await?;
        let found = tokio::task::spawn_blocking(move || definition.find_interactive()).await;
        let Ok(Err(cause)) = found else { return Ok(()) };
        let message = format!("`{name}` is not taken over: its terminal {cause}");
        Err(ErrorBody::new(ErrorKind::BadConfig, message)
            .hint("`interactive` of its agent in config.toml names it"))
    }

    async fn view(&self) -> Result<SessionView, WhyNot> {
        self.context.handle.session(self.id, |known| known.copy()).await
    }

    /// Counts whoever has its terminal already, until it goes.
    async fn count_again(self, sender: mpsc::Sender<Bytes>) {
        let counted = self.consumer.count(ConsumerKind::Attach).await.is_ok();
        if self.way != Way::Follow {
            self.context.handle.command(Command::KeepsViewing { id: self.id, consumer: self.consumer.id });
        }
        if counted && sender.send(line(&AttachLine::Counted {})).await.is_ok() {
            self.stay(&sender).await;
        }
    }

    async fn serve(self, sender: mpsc::Sender<Bytes>) {
        tokio::select! {
            () = self.answer(&sender) => {}
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

    async fn answer(&self, sender: &mpsc::Sender<Bytes>) {
        if self.way == Way::Follow {
            return self.follow(sender).await;
        }
        let last = match self.until_ready(sender).await {
            Ok(ready) => ready,
            Err(error) => AttachLine::Failed(Box::new(error)),
        };
        let run = if let AttachLine::Ready { run, .. } = &last { Some(RunNumber(*run)) } else { None };
        let failed = matches!(last, AttachLine::Failed(_));
        if sender.send(line(&last)).await.is_ok() && !failed {
            if let Some(run) = run {
                self.tell_end(run, sender).await;
            }
            self.stay(sender).await;
        }
    }

    /// Says how the run ended whose terminal was shown.
    async fn tell_end(&self, run: RunNumber, sender: &mpsc::Sender<Bytes>) {
        let Ok(mut seen) = super::sessions::watcher(&self.context, self.id).await else { return };
        if seen.wait_for(|seen| seen.runs.settled >= run).await.is_err() {
            return;
        }
        let Ok(view) = self.view().await else { return };
        if let Some(message) = view.core.explain_end(Clock::new().now()) {
            _ = sender.send(line(&AttachLine::Ended { message })).await;
        }
    }

    async fn follow(&self, sender: &mpsc::Sender<Bytes>) {
        if sender.send(line(&AttachLine::Follow {})).await.is_err() {
            return;
        }
        if let Ok(source) = Source::of(&self.context, self.id, None, Sequences::Obeyed).await {
            _ = logs::pass_on(&self.context, self.id, source, logs::SHOWN, sender).await;
        }
    }

    /// Says what is waited for, second by second, until there is a terminal or there will be none.
    async fn until_ready(&self, sender: &mpsc::Sender<Bytes>) -> Result<AttachLine, ErrorBody> {
        let mut seen = super::sessions::watcher(&self.context, self.id).await.map_err(Failure::into_body)?;
        let (way, id, consumer) = (self.way, self.id, self.consumer.id);
        let mut said: Option<(String, tokio::time::Instant)> = None;
        loop {
            seen.borrow_and_update();
            let order = |reply| Command::TellStanding { id, way, consumer, reply };
            let (standing, view) = self.context.handle.order(order).await?.ok_or(WhyNot::Gone)?;
            let wait = if standing == Standing::NoSocket { SOCKET } else { TELL };
            let standing = match standing {
                Standing::NoTakeover => {
                    self.ask_in_turn().await?;
                    continue;
                }
                Standing::CannotBe => return Err(cannot_be(&view).unwrap_or_else(|| WhyNot::Gone.into())),
                Standing::Ready { socket, run } => {
                    return Ok(AttachLine::Ready { socket: socket.display().to_string(), run: run.0 });
                }
                Standing::NoSocket => no_socket(&view),
                Standing::Waiting => waiting(&view, Clock::new().now()),
            };
            let AttachLine::Waiting { message, .. } = &standing else { return Ok(standing) };
            let due = said.as_ref().is_none_or(|(last, at)| last != message || at.elapsed() >= TELL);
            if due {
                said = Some((message.clone(), tokio::time::Instant::now()));
                if sender.send(line(&standing)).await.is_err() {
                    return Err(WhyNot::Gone.into());
                }
            }
            tokio::select! {
                _ = seen.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

fn line(line: &AttachLine) -> Bytes {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

fn no_socket(view: &SessionView) -> AttachLine {
    let message = format!("the socket of `{}`'s terminal was removed; it is made again", view.name);
    AttachLine::Waiting { message, left_ms: None }
}

/// What is waited for, in words.
fn waiting(view: &SessionView, now: Now) -> AttachLine {
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
        (Life::Backoff { until, .. }, _) => {
            (format!("`{name}` waits before its next run; `--now` starts it"), Some(until.boot))
        }
        _ => (format!("`{name}` is {}", view.core.explain(now)), None),
    };
    let left_ms = until.map(|until| u64::try_from(until.since(now.boot).as_millis()).unwrap_or(u64::MAX));
    AttachLine::Waiting { message, left_ms }
}

/// Why nothing can be attached to, in the states from which a session does not go on by itself.
fn cannot_be(view: &SessionView) -> Option<ErrorBody> {
    let name = &view.name;
    match view.core.life() {
        Life::Stopped => Some(
            ErrorBody::new(ErrorKind::Failed, format!("session `{name}` is stopped"))
                .hint(format!("`pinfold start {}` starts it", quoted(name))),
        ),
        Life::Failed { .. } => {
            let why = view.core.explain(Clock::new().now());
            Some(ErrorBody::new(ErrorKind::Failed, format!("session `{name}` is {why}")).hint(format!(
                "`pinfold start {0}` tries again; `pinfold logs {0}` tells more",
                quoted(name)
            )))
        }
        Life::Archived { .. } => Some(refusal_body(name, Refusal::Archived)),
        Life::Blocked { holder, .. } => Some(blocked(name, holder.as_deref())),
        Life::Idle { .. }
        | Life::Starting { .. }
        | Life::Running { .. }
        | Life::Held { .. }
        | Life::Stopping { .. }
        | Life::Backoff { .. } => None,
    }
}

/// Somebody else holds what the session needs: who, and what to do.
fn blocked(name: &str, holder: Option<&HolderSeen>) -> ErrorBody {
    let Some(holder) = holder else { return refusal_body(name, Refusal::Busy) };
    let who = match (holder.pid, &holder.command) {
        (Some(pid), Some(command)) => format!("pid {pid} ({command})"),
        (Some(pid), None) => format!("pid {pid}"),
        (None, _) => "somebody else".into(),
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

fn refused_body(view: &SessionView, refused: Refusal) -> ErrorBody {
    match (refused, view.core.life()) {
        (Refusal::Busy, Life::Blocked { holder, .. }) => blocked(&view.name, holder.as_deref()),
        _ => refusal_body(&view.name, refused),
    }
}

/// How a takeover came to nothing.
fn not_taken_over(view: &SessionView) -> ErrorBody {
    let name = &view.name;
    let program = view.definition.interactive.first().cloned().unwrap_or_default();
    let (kind, message, hint) = match view.takeover_end {
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

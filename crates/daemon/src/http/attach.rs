//! Attach: counts whoever is attached, wakes or takes over the session, and says where its terminal is.
//!
//! The terminal itself is the shim's: keys and screens do not come through here.

use super::Context;
use super::answer::{Failure, Named, Said, refusal_body};
use super::logs::{self, Source};
use super::streaming;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::engine::session::Tracked;
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
use pinfold_core::life::{HolderSeen, Life, Purpose};
use pinfold_core::quoted::quoted;
use pinfold_core::{ConsumerId, Event, Mode, Now, Refusal, RunNumber};
use pinfold_shim::Size;
use pinfold_store::{Facts, SessionId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// A countdown is told so often.
const TELL: Duration = Duration::from_secs(1);
/// What was waited for comes with an event; this is for what has none.
const LOOK: Duration = Duration::from_millis(250);

/// What attaching to a session means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Its runs have a terminal.
    Terminal,
    /// The vendor's own program takes the place of the headless run.
    Takeover,
    /// Its output is followed.
    Follow,
}

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
    let asked = request.clone();
    let way = context.handle.look(move |engine| prepare(engine, id, &asked)).await??;
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

/// Notes the size that a terminal shall have, and says what attaching means.
fn prepare(engine: &mut Engine, id: SessionId, request: &Attach) -> Result<Way, ErrorBody> {
    let tracked = engine.sessions.get_mut(&id).ok_or_else(super::sessions::gone)?;
    if request.rows > 0 && !request.read_only {
        tracked.terminal = Size::new(request.rows, request.columns);
    }
    let spec = tracked.session.spec();
    let held = matches!(tracked.session.life(), Life::Held { .. });
    let takes_over = spec.interactive && spec.mode != Mode::Once && !request.read_only;
    Ok(match () {
        () if tracked.definition.pty => Way::Terminal,
        () if held || takes_over => Way::Takeover,
        () => Way::Follow,
    })
}

impl Attaching {
    /// Asks for what is needed before anything is answered, so that a refusal is the answer.
    async fn ask(&self) -> Result<(), Failure> {
        let held = self.look(|tracked| matches!(tracked.session.life(), Life::Held { .. })).await?;
        if self.way == Way::Takeover && !held {
            self.take_over().await.map_err(Failure::conflict)?;
        }
        if let Some(over) = self.look(cannot_be).await? {
            return Err(Failure::conflict(over));
        }
        self.consumer.count(ConsumerKind::Attach).await?;
        let waits = self.look(|tracked| matches!(tracked.session.life(), Life::Backoff { .. })).await?;
        if self.now && waits {
            self.context.handle.ask(self.id, Event::Asked(Ask::Start), Facts::default()).await?;
        }
        Ok(())
    }

    /// Asks for the terminal program, or joins somebody who did.
    async fn take_over(&self) -> Result<(), ErrorBody> {
        self.find_program().await?;
        let id = self.id;
        let forget = move |engine: &mut Engine| {
            engine.sessions.get_mut(&id).into_iter().for_each(|tracked| tracked.takeover_end = None);
        };
        self.context.handle.look(forget).await?;
        let ask = Ask::Takeover { consumer: self.consumer.id, urgent: self.now };
        match self.context.handle.ask(self.id, Event::Asked(ask), Facts::default()).await? {
            Answer::Refused(refused) => Err(self.look(move |tracked| refused_body(tracked, refused)).await?),
            Answer::UnderWay => {
                self.asked.store(true, Ordering::Relaxed);
                Ok(())
            }
            Answer::Joined | Answer::Done | Answer::Already | Answer::Queued { .. } => Ok(()),
        }
    }

    /// Somebody else's terminal program ended before we had it: then it is our turn to ask.
    async fn ask_in_turn(&self) -> Result<(), ErrorBody> {
        let ended =
            self.look(|tracked| matches!(tracked.takeover_end, None | Some(TakeoverEnd::Held))).await?;
        if ended && !self.read_only && !self.asked.load(Ordering::Relaxed) {
            return self.take_over().await;
        }
        Err(self.look(not_taken_over).await?)
    }

    /// No run is ended for a terminal program that is not there.
    async fn find_program(&self) -> Result<(), ErrorBody> {
        let definition = self.look(|tracked| tracked.definition.clone()).await?;
        let found = tokio::task::spawn_blocking(move || definition.find_interactive()).await;
        let Ok(Err(cause)) = found else { return Ok(()) };
        let name = self.look(|tracked| tracked.name.clone()).await?;
        let message = format!("`{name}` is not taken over: its terminal {cause}");
        Err(ErrorBody::new(ErrorKind::BadConfig, message)
            .hint("`interactive` of its agent in config.toml names it"))
    }

    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Tracked) -> T + Send + 'static,
    ) -> Result<T, ErrorBody> {
        let id = self.id;
        let looked = self
            .context
            .handle
            .look(move |engine| engine.sessions.get(&id).map(|tracked| look(tracked)))
            .await?;
        looked.ok_or_else(super::sessions::gone)
    }

    /// Counts whoever has its terminal already, until it goes.
    async fn count_again(self, sender: mpsc::Sender<Bytes>) {
        let counted = self.consumer.count(ConsumerKind::Attach).await.is_ok();
        let (id, consumer) = (self.id, self.consumer.id);
        let viewer = move |engine: &mut Engine| {
            engine.sessions.get_mut(&id).into_iter().for_each(|tracked| tracked.viewers.push(consumer));
        };
        if self.way != Way::Follow {
            _ = self.context.handle.look(viewer).await;
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
        let message = self.look(|tracked| tracked.session.explain_end(Clock::new().now())).await;
        if let Ok(Some(message)) = message {
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
        let (way, id) = (self.way, self.id);
        let mut said: Option<(String, tokio::time::Instant)> = None;
        loop {
            seen.borrow_and_update();
            let consumer = self.consumer.id;
            let standing = self.context.handle.look(move |engine| {
                let standing = standing(engine, id, way);
                note_viewer(engine, id, consumer, &standing);
                standing
            });
            let Some(standing) = standing.await?? else {
                self.ask_in_turn().await?;
                continue;
            };
            let AttachLine::Waiting { message, .. } = &standing else { return Ok(standing) };
            let due = said.as_ref().is_none_or(|(last, at)| last != message || at.elapsed() >= TELL);
            if due {
                said = Some((message.clone(), tokio::time::Instant::now()));
                if sender.send(line(&standing)).await.is_err() {
                    return Err(super::sessions::gone());
                }
            }
            tokio::select! {
                _ = seen.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

/// Whoever is told of a terminal leaves with it.
fn note_viewer(
    engine: &mut Engine,
    id: SessionId,
    consumer: ConsumerId,
    standing: &Result<Option<AttachLine>, ErrorBody>,
) {
    if let (Ok(Some(AttachLine::Ready { .. })), Some(tracked)) = (standing, engine.sessions.get_mut(&id)) {
        tracked.viewers.push(consumer);
    }
}

fn line(line: &AttachLine) -> Bytes {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text.into()
}

/// How far an attach has come: ready, waiting for something, or an end to it; nothing when no takeover is under way.
fn standing(engine: &Engine, id: SessionId, way: Way) -> Result<Option<AttachLine>, ErrorBody> {
    let tracked = engine.sessions.get(&id).ok_or_else(super::sessions::gone)?;
    let now = Clock::new().now();
    let run = match (tracked.session.life(), way) {
        (Life::Running { run, .. }, Way::Terminal) | (Life::Held { run, .. }, _) => Some(*run),
        _ => None,
    };
    if let (Some(run), Some(shim)) = (run, &tracked.shim) {
        return Ok(Some(match shim.socket(&engine.home, id) {
            Some(socket) => AttachLine::Ready { socket: socket.display().to_string(), run: run.0 },
            None => AttachLine::Waiting {
                message: format!("the socket of `{}`'s terminal was removed; it is made again", tracked.name),
                left_ms: None,
            },
        }));
    }
    if let Some(over) = cannot_be(tracked) {
        return Err(over);
    }
    // A run that is ended for something else hands over to nobody; whoever waits sees where it goes.
    let settled = !matches!(tracked.session.life(), Life::Starting { .. } | Life::Stopping { .. });
    if way == Way::Takeover && settled && !taking_over(tracked) {
        return Ok(None);
    }
    Ok(Some(waiting(tracked, now)))
}

fn taking_over(tracked: &Tracked) -> bool {
    let own = |purpose: &Purpose| matches!(purpose, Purpose::Interactive(_));
    let under_way = match tracked.session.life() {
        Life::Starting { purpose, .. } | Life::Stopping { purpose, .. } => own(purpose),
        Life::Idle { .. }
        | Life::Running { .. }
        | Life::Held { .. }
        | Life::Backoff { .. }
        | Life::Blocked { .. }
        | Life::Stopped
        | Life::Failed { .. }
        | Life::Archived { .. } => false,
    };
    under_way || tracked.session.takeover().is_some()
}

/// What is waited for, in words.
fn waiting(tracked: &Tracked, now: Now) -> AttachLine {
    let name = &tracked.name;
    let takeover = tracked.session.takeover();
    let (message, until) = match (tracked.session.life(), takeover) {
        (Life::Running { .. }, Some(takeover)) if takeover.urgent => {
            (format!("`{name}`: the turn under way is interrupted"), Some(takeover.until.boot))
        }
        (Life::Running { .. }, Some(takeover)) => {
            (format!("`{name}` finishes its turn first; `--now` interrupts it"), Some(takeover.until.boot))
        }
        (Life::Stopping { .. }, Some(_)) if tracked.session.unended().is_none() => {
            (format!("`{name}`: the headless run ends"), None)
        }
        (Life::Backoff { until, .. }, _) => {
            (format!("`{name}` waits before its next run; `--now` starts it"), Some(until.boot))
        }
        _ => (format!("`{name}` is {}", tracked.session.explain(now)), None),
    };
    let left_ms = until.map(|until| u64::try_from(until.since(now.boot).as_millis()).unwrap_or(u64::MAX));
    AttachLine::Waiting { message, left_ms }
}

/// Why nothing can be attached to, in the states from which a session does not go on by itself.
fn cannot_be(tracked: &Tracked) -> Option<ErrorBody> {
    let name = &tracked.name;
    match tracked.session.life() {
        Life::Stopped => Some(
            ErrorBody::new(ErrorKind::Failed, format!("session `{name}` is stopped"))
                .hint(format!("`pinfold start {}` starts it", quoted(name))),
        ),
        Life::Failed { .. } => {
            let why = tracked.session.explain(Clock::new().now());
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

fn refused_body(tracked: &Tracked, refused: Refusal) -> ErrorBody {
    match (refused, tracked.session.life()) {
        (Refusal::Busy, Life::Blocked { holder, .. }) => blocked(&tracked.name, holder.as_deref()),
        _ => refusal_body(&tracked.name, refused),
    }
}

/// How a takeover came to nothing.
fn not_taken_over(tracked: &Tracked) -> ErrorBody {
    let name = &tracked.name;
    let program = tracked.definition.interactive.first().cloned().unwrap_or_default();
    let (kind, message, hint) = match tracked.takeover_end {
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

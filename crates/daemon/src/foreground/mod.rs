//! The loop without a daemon: one session in the foreground, in memory only.
//!
//! The same loop, core, shims and locks as in the daemon. The differences: nothing is stored, the shim ends
//! with this process, agents have the caller's standard streams, and the loop ends with its one session.

mod outcome;
mod scratch;
mod signals;
mod terminal;

use crate::define::definition::Definition;
use crate::define::home::Home;
use crate::define::preset::{Preset, Protocol, protocol_word};
use crate::engine::input::{AgentsOnDown, Create, Handle, LoopInput};
use crate::engine::{Engine, ForegroundParts, Parts, ResourceLimits, SessionSnapshot, WhyNot};
use crate::life::StartError;
use crate::ports::locks::Folders;
use outcome::RunEnds;
use pinfold_api::request::NewSession;
use pinfold_api::{ErrorBody, ErrorKind, Name, NotAName};
use pinfold_core::event::Ask;
use pinfold_core::{Event, State};
use pinfold_shim::client::Foreground;
use pinfold_store::{Backend, History, SessionId};
use scratch::ScratchFolder;
use signals::EndSignals;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// How much history is kept: nothing reads more, and a run may be repeated for months.
const HISTORY: History = History::Newest(100);

/// The options of a run in the foreground.
pub struct ForegroundOptions {
    /// The paths of locks and configuration.
    pub home: Home,
    /// The shim program, with the arguments that make it one.
    pub shim: (PathBuf, Vec<OsString>),
    /// The session.
    pub request: NewSession,
    /// Called with sentences about what happens.
    pub say: Box<dyn FnMut(&str)>,
}

/// Why there is no exit code of an agent.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An error of the API.
    #[error("{}", .0.message)]
    Refused(ErrorBody),
    /// Something it needs cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl From<ErrorBody> for RunError {
    fn from(body: ErrorBody) -> Self {
        RunError::Refused(body)
    }
}

impl From<WhyNot> for RunError {
    fn from(why: WhyNot) -> Self {
        RunError::Refused(why.into())
    }
}

/// Supervises one session until it is over; returns the last exit code of its agent, or 128 plus the signal
/// that killed it.
///
/// # Errors
/// A lock is busy, the crash limit is reached, or something it needs cannot be used.
pub fn run(options: ForegroundOptions) -> Result<u8, RunError> {
    crate::log::begin(None);
    run_through(options, |inputs| inputs)
}

/// As [`run`], with something between the senders of inputs and the loop.
fn run_through(
    options: ForegroundOptions,
    between: impl FnOnce(UnboundedReceiver<LoopInput>) -> UnboundedReceiver<LoopInput>,
) -> Result<u8, RunError> {
    let config = crate::define::config::load(&options.home.config).map_err(StartError::from)?;
    let (name, definition) = define(&options.request, |agent| config.preset(agent))?;
    let limits = ResourceLimits { open_files: None, core: crate::life::leave_no_core() };
    crate::log::set_level(config.log_level());
    let folders = Folders::open(&options.home).map_err(StartError::from)?;
    folders.audit_to(&options.home.audit(), || {});
    let place = |source| StartError::Place { path: options.home.runtime.clone(), source };
    let scratch = ScratchFolder::make(&options.home.runtime).map_err(place)?;
    let home = scratch.home(&options.home).map_err(place)?;
    let runtime = runtime().map_err(StartError::from)?;
    let ends = Arc::new(Mutex::new(RunEnds::default()));
    let (reapers, reaping) = mpsc::unbounded_channel();
    let code = runtime.block_on(async {
        let (streams, typing) = terminal::streams().map_err(StartError::from)?;
        let (handle, inputs) = Handle::new();
        let foreground = Foreground { streams: Arc::new(streams), scratch: scratch.path().to_owned() };
        let witness = Box::new(outcome::witness(Arc::clone(&ends), name.to_string(), options.say));
        let store = pinfold_store::open(&Backend::Memory(HISTORY)).map_err(StartError::from)?;
        let own = Rc::new(store.reader().map_err(StartError::from)?);
        let parts = Parts {
            socket: home.socket(),
            home,
            store,
            reader: own,
            alone: Some(ForegroundParts { foreground, witness, reapers }),
            folders,
            generation: 1,
            shim_program: options.shim,
            limits,
            umask: None,
            last_event: 0,
            handle: handle.clone(),
            config,
        };
        let engine = Engine::new(parts).map_err(StartError::from)?;
        if let Some(typing) = typing {
            tokio::spawn(typing);
        }
        let create = Create { name, definition, broken: None, by: None, reply: oneshot::channel().0 };
        let ((looped, _nowhere), code) =
            tokio::join!(engine.run(between(inputs)), direct(&handle, create, &ends));
        looped.map_err(StartError::from)?;
        all_reaped(reaping).await;
        code
    });
    // Whatever still waits on a thread, for a key that is not typed, ends with this process.
    runtime.shutdown_background();
    code
}

/// One thread for the loop, and a few for what blocks.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().max_blocking_threads(4).build()
}

/// Waits until the shims are gone: only then are their copies of the caller's streams closed.
async fn all_reaped(mut reaping: UnboundedReceiver<JoinHandle<()>>) {
    while let Ok(reaper) = reaping.try_recv() {
        _ = reaper.await;
    }
}

/// Reads the request as `new` does; creates nothing if it cannot run.
fn define(
    request: &NewSession,
    presets: impl Fn(&str) -> Option<Preset>,
) -> Result<(Name, Definition), ErrorBody> {
    let preset = request.agent.as_deref().and_then(presets);
    let usage = |message: String| ErrorBody::new(ErrorKind::Usage, message);
    let name: Name = request.name.parse().map_err(|error: NotAName| usage(error.to_string()))?;
    let mode = request.mode.clone().unwrap_or_else(|| "once".into());
    if let Some(Preset { protocol, .. }) = preset.as_ref().filter(|preset| preset.protocol != Protocol::Line)
    {
        let (agent, word) = (request.agent.as_deref().unwrap_or_default(), protocol_word(*protocol));
        let hint = format!("`pinfold new {name} --agent {agent}` and `pinfold send` do");
        return Err(
            usage(format!("agent `{agent}` is spoken to (`{word}`), and `run` has no inbox")).hint(hint)
        );
    }
    let mut definition =
        Definition::new(&NewSession { mode: Some(mode), ..request.clone() }, preset.as_ref())?;
    if definition.mode == pinfold_core::Mode::OnDemand {
        let hint = "`pinfold new` makes a session that waits for messages; here: once or always";
        return Err(usage("`run` has no inbox, so mode `on-demand` would never run".into()).hint(hint));
    }
    if definition.pty {
        let hint = "`pinfold new --pty` and `pinfold attach` do";
        return Err(usage("`run` gives no terminal of its own yet".into()).hint(hint));
    }
    if let Err(cause) = definition.settle(None) {
        return Err(ErrorBody::new(ErrorKind::BadConfig, cause.to_string()));
    }
    Ok((name, definition))
}

/// Creates the session, passes signals on, and ends the loop when the session is over.
async fn direct(handle: &Handle, create: Create, ends: &Mutex<RunEnds>) -> Result<u8, RunError> {
    let signals = EndSignals::new().map_err(StartError::from)?;
    let outcome = supervise(handle, create, signals, ends).await;
    handle.tell(LoopInput::Down { agents: AgentsOnDown::Stopped, by: None, reply: None });
    outcome
}

async fn supervise(
    handle: &Handle,
    create: Create,
    mut signals: EndSignals,
    ends: &Mutex<RunEnds>,
) -> Result<u8, RunError> {
    let (reply, receiver) = oneshot::channel();
    handle.tell(LoopInput::Create(Box::new(Create { reply, ..create })));
    let id = handle.answer(receiver).await??;
    let mut seen = watcher(handle, id).await?;
    let mut asked = None;
    loop {
        let now = *seen.borrow_and_update();
        if over(now) {
            let look = handle.view(move |view| view.session(id).map(outcome::FinalState::at)).await?;
            // What was seen may be outdated by now: a busy lock has become free, and the run begins.
            if look.as_ref().is_none_or(|look| over(look.now)) {
                let ends = ends.lock().map(|ends| *ends).unwrap_or_default();
                return outcome::of(look, ends, asked).map_err(RunError::from);
            }
        }
        if let (true, Some(_)) = (now.unended, asked) {
            return Err(unended(handle, id).await?.into());
        }
        tokio::select! {
            changed = seen.changed() => if changed.is_err() { return Err(handle.going_down().into()) },
            signal = signals.next() => {
                let grace = asked.replace(signal).map(|_| Duration::ZERO);
                stop(handle, id, grace);
            }
        }
    }
}

/// The error for a stop that does not complete, which is not waited for: it names what is in the way.
async fn unended(handle: &Handle, id: SessionId) -> Result<ErrorBody, WhyNot> {
    let by = handle.session(id, |known| known.core().unended().map(ToString::to_string)).await?;
    let by = by.unwrap_or_default();
    Ok(ErrorBody::new(ErrorKind::Failed, format!("its run does not end: {by}")))
}

fn stop(handle: &Handle, id: SessionId, grace: Option<Duration>) {
    let event = Box::new(Event::Asked(Ask::Stop { grace }));
    handle.tell(LoopInput::Happened { id, event, facts: Box::default(), reply: None });
}

async fn watcher(handle: &Handle, id: SessionId) -> Result<watch::Receiver<SessionSnapshot>, WhyNot> {
    handle.session(id, |known| known.watch()).await.map_err(|_| handle.going_down())
}

/// A lock that is busy before anything has run ends the run; later it is waited for.
fn over(now: SessionSnapshot) -> bool {
    match now.state {
        State::Stopped | State::Failed | State::Archived | State::Idle => true,
        State::Blocked => now.runs.count == 0,
        State::Starting | State::Running | State::Stopping | State::Backoff | State::Held => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_lock::{Folder, Guard, Request, Resource, SessionName};

    /// Makes the second look (the first one finds the watch) wait until the holder in the way has gone. An
    /// attempted start is reported, and followed by a stop.
    fn hold_back(
        mut inputs: UnboundedReceiver<LoopInput>,
        guard: Guard,
        tried: std::sync::mpsc::Sender<()>,
    ) -> UnboundedReceiver<LoopInput> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut guard = Some(guard);
        tokio::spawn(async move {
            let (mut looks, mut held_back) = (0, None);
            while let Some(input) = inputs.recv().await {
                looks += usize::from(matches!(input, LoopInput::Look(_)));
                if looks == 2 && matches!(input, LoopInput::Look(_)) {
                    held_back = Some(input);
                    guard = None;
                    continue;
                }
                // On a slow machine the lock is looked at only after the holder left, and there is nothing to
                // wait for.
                let gone = matches!(input, LoopInput::HolderGone { .. } | LoopInput::ShimUp { .. });
                let started = if let LoopInput::ShimUp { id, .. } = &input { Some(*id) } else { None };
                _ = sender.send(input);
                if let Some(id) = started {
                    _ = tried.send(());
                    let event = Box::new(Event::Asked(Ask::Stop { grace: None }));
                    _ = sender.send(LoopInput::Happened { id, event, facts: Box::default(), reply: None });
                }
                held_back.take_if(|_| gone).into_iter().for_each(|look| _ = sender.send(look));
            }
            drop(guard);
        });
        receiver
    }

    #[test]
    fn a_lock_that_comes_free_between_the_news_and_the_look_is_no_failure() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home {
            state: temp.path().join("home"),
            runtime: temp.path().join("home"),
            config: temp.path().join("home/config.toml"),
            user_locks: temp.path().join("locks"),
            variables: Vec::new(),
            refused: None,
        };
        pinfold_kernel::private::make_private(&home.state, pinfold_kernel::private::Wider::Refuse).unwrap();
        let folder = Folder::open(home.session_locks()).unwrap();
        let resource = Resource::Session(SessionName::new("a").unwrap());
        let guard = folder.try_acquire(&resource, &Request::default()).unwrap();
        let request: NewSession =
            serde_json::from_value(serde_json::json!({ "name": "a", "command": ["/bin/true"] })).unwrap();
        // No program here can be a shim: that the start was tried is enough.
        let shim = (temp.path().join("no-shim"), Vec::new());
        let options = ForegroundOptions { home, shim, request, say: Box::new(|_| ()) };
        let (tried, starts) = std::sync::mpsc::channel();
        let ended = run_through(options, |inputs| hold_back(inputs, guard, tried));
        assert!(starts.try_recv().is_ok(), "no start was tried: {ended:?}");
    }
}

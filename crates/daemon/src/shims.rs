//! Connections with shims: commands go out at once, reports come in through a task; the loop never waits.

use crate::crash;
use crate::input::{Handle, Input};
use crate::locks::{Reserved, lost_in};
use crate::log::log;
use crate::outlet::Outlet;
use pinfold_core::RunNumber;
use pinfold_core::life::StartRefused;
use pinfold_lock::{Folder, Guard};
use pinfold_shim::client::{Link, Opening, spawn};
use pinfold_shim::nursery::Nursery;
use pinfold_shim::{Command, Decoder, Report, Start, Welcome};
use pinfold_store::SessionId;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

/// A shim that was started answers within this; a machine that needs longer is out of order.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// A shim that lives answers a new daemon within this, or counts as mute for now.
const ANSWER: Duration = Duration::from_secs(2);

/// Which connection: an old one's last words are not taken for a new one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkNumber(pub(crate) u64);

/// A shim that has just said welcome.
pub(crate) struct ShimUp {
    pub(crate) link: Link,
    pub(crate) welcome: Box<Welcome>,
    pub(crate) child: Option<Child>,
}

/// An open connection with a shim.
pub(crate) struct ShimLink {
    pub(crate) number: LinkNumber,
    pub(crate) pid: u32,
    /// It was told to give the locks back and to go.
    pub(crate) leaving: bool,
    out: Outlet,
}

impl ShimLink {
    /// Sends a command; a shim that has gone is noticed by the end of its reports.
    pub(crate) fn send(&self, command: &Command) {
        let mut bytes = Vec::new();
        command.encode(&mut bytes);
        self.out.send(&bytes);
    }

    /// The way to it, for whoever is not the loop.
    pub(crate) fn outlet(&self) -> Outlet {
        self.out.clone()
    }

    /// Tells it to give the locks back and to go.
    pub(crate) fn dismiss(&mut self) {
        self.leaving = true;
        self.send(&Command::Release);
    }

    /// Takes a connection over into the loop's own tasks; one of them reaps the shim if it is our child.
    pub(crate) fn attach(
        up: ShimUp,
        id: SessionId,
        number: LinkNumber,
        handle: &Handle,
    ) -> io::Result<(ShimLink, Option<JoinHandle<()>>)> {
        let pid = up.welcome.shim;
        let (stream, mut decoder, ready) = up.link.into_parts();
        decoder.shrink();
        stream.set_nonblocking(true)?;
        let stream = Arc::new(crate::readable::watch(stream.into())?);
        let out = Outlet::new(Arc::clone(&stream));
        let reports = read_reports(stream, decoder, ready, id, number, handle.clone());
        let reaper = match up.child {
            Some(child) => Some(tokio::spawn(async move {
                reports.await;
                reap(child).await;
            })),
            None => {
                tokio::spawn(reports);
                None
            }
        };
        let link = ShimLink { number, pid, leaving: false, out };
        // Output is read from the log, by whoever wants it.
        link.send(&Command::Follow { on: false });
        Ok((link, reaper))
    }
}

async fn read_reports(
    read: Arc<AsyncFd<OwnedFd>>,
    mut decoder: Decoder,
    mut ready: VecDeque<Report>,
    id: SessionId,
    link: LinkNumber,
    handle: Handle,
) {
    loop {
        while let Some(report) = ready.pop_front() {
            handle.tell(Input::Shim { id, link, report: Some(report) });
        }
        match hear(&read, &mut decoder).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        // Whoever does not speak our language any more is treated as gone.
        if understand(&mut decoder, &mut ready).is_err() {
            break;
        }
    }
    handle.tell(Input::Shim { id, link, report: None });
}

/// Waits, and reads once. The room for it is nobody's: a thousand connections would each keep theirs.
async fn hear(read: &AsyncFd<OwnedFd>, decoder: &mut Decoder) -> io::Result<usize> {
    loop {
        let mut ready = read.readable().await?;
        let mut bytes = [0; 4096];
        match ready.try_io(|socket| Ok(rustix::io::read(socket, &mut bytes)?)) {
            Ok(Ok(count)) => {
                if count < bytes.len() {
                    // That was all: what comes from now on is told anew.
                    ready.clear_ready();
                }
                decoder.feed(&bytes[..count]);
                return Ok(count);
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => return Err(error),
            Err(_would_block) => {}
        }
    }
}

fn understand(decoder: &mut Decoder, ready: &mut VecDeque<Report>) -> Result<(), pinfold_shim::FrameError> {
    while let Some(frame) = decoder.frame()? {
        ready.extend(Report::decode(&frame)?);
    }
    Ok(())
}

/// Reaps a shim that is our child and has closed its connection, woken by its pidfd.
async fn reap(mut child: Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
    if let Some(fd) = pidfd.and_then(|fd| crate::readable::watch(fd).ok()) {
        _ = fd.readable().await;
    }
    _ = tokio::task::spawn_blocking(move || note_end(&mut child)).await;
}

/// Reaps a shim, and says so when it did not end in order.
fn note_end(child: &mut Child) {
    if let Ok(status) = child.wait()
        && !status.success()
    {
        log(format_args!("shim {} did not end in order: {status}", child.id()));
    }
}

/// Starts a shim under the locks and tells it to start the run, which is stored already. Blocks.
pub(crate) fn open(
    opening: &Opening,
    nursery: Option<&Nursery>,
    guards: Vec<Reserved>,
    generation: u64,
    settled: RunNumber,
    start: Box<Start>,
) -> Result<Box<ShimUp>, StartRefused> {
    make_places(opening);
    let lent: Vec<(&Folder, &Guard)> = guards.iter().map(|(folder, guard)| (folder, guard)).collect();
    crash::point("spawn.before");
    let spawned = match nursery {
        Some(nursery) => nursery.spawn(opening, &lent).map(|link| (None, link)),
        None => spawn(opening, &lent).map(|(child, link)| (Some(child), link)),
    };
    let (mut child, mut link) = spawned.map_err(|error| refusal(&error))?;
    crash::point("spawn.handed");
    let greeted = greet(&mut link, generation, Instant::now() + HANDSHAKE);
    let welcome = match greeted {
        Ok(welcome) => welcome,
        Err(problem) => {
            // Without its connection it leaves. Where it is our child, it is reaped here; where it is not, the
            // process that it came from is not asked again.
            drop(link);
            child.as_mut().map_or_else(|| nursery.map_or((), Nursery::renew), note_end);
            return Err(problem);
        }
    };
    crash::point("spawn.greeted");
    for (_, guard) in guards {
        lost_in(&guard.surrender());
    }
    crash::point("spawn.surrendered");
    // A new shim finds the exits of earlier runs, and does not know that they are stored.
    let told = link.send(&Command::Ack { run: settled }).and_then(|()| link.send(&Command::Go));
    let told = told.and_then(|()| {
        crash::point("spawn.went");
        link.send(&Command::Start(start))
    });
    crash::point("spawn.told");
    if let Err(error) = told {
        drop(link);
        child.as_mut().map(note_end);
        return Err(refusal(&error));
    }
    Ok(Box::new(ShimUp { link, welcome, child }))
}

/// Makes the folders again that somebody removed since the session was made.
fn make_places(opening: &Opening) {
    for file in [&opening.records, &opening.listen] {
        if let Some(folder) = file.parent() {
            // What is wrong shows when they are used, and is told then.
            _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        }
    }
}

/// Why there is no shim, with the kernel's number for it.
fn refusal(error: &(dyn std::error::Error + 'static)) -> StartRefused {
    let text = format!("no shim: {}", crate::locks::chain(error));
    StartRefused { errno: crate::locks::shortage_in(error), text }
}

/// What was found at a shim's socket.
pub(crate) enum Found {
    /// Nobody listens; only the session's lock proves that no shim lives.
    Nobody,
    /// Somebody listens and does not answer.
    Mute,
    /// A shim.
    Shim(Box<ShimUp>),
}

/// Looks for the shim of an earlier daemon. Blocks.
pub(crate) fn find(socket: &Path, generation: u64) -> Found {
    let Ok(mut link) = Link::connect(socket) else { return Found::Nobody };
    match greet(&mut link, generation, Instant::now() + ANSWER) {
        Ok(welcome) => Found::Shim(Box::new(ShimUp { link, welcome, child: None })),
        Err(_) => Found::Mute,
    }
}

fn greet(link: &mut Link, generation: u64, until: Instant) -> Result<Box<Welcome>, StartRefused> {
    link.send(&Command::Hello { generation }).map_err(|error| refusal(&error))?;
    let unnumbered = |text: String| Err(StartRefused { errno: None, text });
    match link.receive(Some(until)) {
        Ok(Some(Report::Welcome(welcome))) => Ok(welcome),
        Ok(Some(Report::Refused { generation })) => {
            unnumbered(format!("the shim obeys a newer daemon ({generation})"))
        }
        Ok(Some(Report::CannotKeep { errno, text })) => {
            let errno = crate::locks::passing(errno);
            Err(StartRefused { errno, text: format!("the shim cannot begin: {text}") })
        }
        Ok(_) => unnumbered("the shim left before it said welcome".into()),
        Err(error) => Err(refusal(&error)),
    }
}

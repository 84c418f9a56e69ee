//! The birth of a shim: forked by the nursery, or executed if no nursery answers; and the first commands it
//! gets.
//!
//! This decides in which order things are tried and who has the locks meanwhile. A `Cradle` does them: the
//! real one blocks in system calls, that of the simulation follows its script.

use super::ShimUp;
use crate::crash;
use crate::ports::locks::RunLocks;
use pinfold_core::RunNumber;
use pinfold_core::life::StartRefused;
use pinfold_lock::{Folder, Guard};
use pinfold_shim::{Command, Start, Welcome};
use std::time::Duration;
use tracing::{debug, warn};

/// A new shim answers within this time; a machine that needs longer is broken.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// A shim forked by a nursery answers within milliseconds; after this time, the nursery is not running.
const FORKED: Duration = Duration::from_secs(2);

/// Locks as they are lent to a shim.
pub(crate) type Lent<'a> = [(&'a Folder, &'a Guard)];

/// Where shims come from. All calls block.
pub(crate) trait Cradle {
    /// The process that was asked for a shim.
    type Asked: Copy;
    /// The link to a shim that may still be coming, and when it was asked for.
    type Link;
    /// A shim that has to be reaped.
    type Child;

    /// Asks the nursery for a shim, and gives it the locks. `None` if there is no nursery, or it cannot be
    /// asked.
    fn fork(&self, lent: &Lent<'_>) -> Option<(Self::Asked, Self::Link)>;

    /// Kills the nursery that was asked, unless it was already replaced, and with it whatever it has not
    /// done.
    fn renew(&self, asked: Self::Asked);

    /// Executes a shim, and gives it the locks.
    fn execute(&self, lent: &Lent<'_>) -> Result<(Self::Child, Self::Link), StartRefused>;

    /// Says hello, and waits for the answer until this long after the shim was asked for.
    fn greet(&self, link: &mut Self::Link, within: Duration) -> Result<Box<Welcome>, NotGreeted>;

    /// Keeps waiting for the answer to a hello.
    fn hear_welcome(&self, link: &mut Self::Link, within: Duration) -> Result<Box<Welcome>, NotGreeted>;

    /// Sends a command to a shim that has answered.
    fn tell(&self, link: &mut Self::Link, command: &Command) -> Result<(), StartRefused>;

    /// Lets a shim go: it leaves when its link is closed.
    fn let_go(&self, link: Self::Link, child: Option<Self::Child>);

    /// A shim that has its order.
    fn up(&self, link: Self::Link, welcome: Box<Welcome>, child: Option<Self::Child>) -> ShimUp;
}

/// Why a shim did not say welcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotGreeted {
    /// No answer came in time.
    #[error("the shim did not answer in time")]
    TimeUp,
    /// There is no shim at the other end, or no longer.
    #[error("the shim left before it said welcome")]
    Closed,
    /// It sent something else.
    #[error("{}", .0.text)]
    Other(StartRefused),
}

impl From<NotGreeted> for StartRefused {
    fn from(problem: NotGreeted) -> Self {
        match problem {
            NotGreeted::TimeUp | NotGreeted::Closed => {
                StartRefused { errno: None, text: problem.to_string() }
            }
            NotGreeted::Other(refused) => refused,
        }
    }
}

/// A shim that has said welcome and has no order yet.
struct Greeted<C: Cradle> {
    link: C::Link,
    welcome: Box<Welcome>,
    child: Option<C::Child>,
}

/// Starts a shim under the locks and tells it to start the run, which is already stored. Blocks.
pub(crate) fn open<C: Cradle>(
    cradle: &C,
    held: Box<dyn RunLocks>,
    settled: RunNumber,
    start: Box<Start>,
) -> Result<Box<ShimUp>, StartRefused> {
    crash::point("spawn.before");
    let lent = held.lend();
    let born = from_nursery(cradle, &lent);
    drop(lent);
    let Greeted { mut link, welcome, child } = born?;
    crash::point("spawn.greeted");
    held.surrender();
    debug!(shim = welcome.shim, "a shim has the locks");
    crash::point("spawn.surrendered");
    // A new shim finds the exits of earlier runs, and does not know that they are stored.
    let told = cradle.tell(&mut link, &Command::Ack { run: settled });
    let told = told.and_then(|()| cradle.tell(&mut link, &Command::Go));
    let told = told.and_then(|()| {
        crash::point("spawn.went");
        cradle.tell(&mut link, &Command::Start(start))
    });
    crash::point("spawn.told");
    match told {
        Ok(()) => Ok(Box::new(cradle.up(link, welcome, child))),
        Err(refused) => {
            cradle.let_go(link, child);
            Err(refused)
        }
    }
}

/// A shim forked by the nursery. If it does not come, one is started directly.
fn from_nursery<C: Cradle>(cradle: &C, lent: &Lent<'_>) -> Result<Greeted<C>, StartRefused> {
    // The nursery was lost while being asked, or its program was: the direct way shows which.
    let Some((asked, mut link)) = cradle.fork(lent) else { return directly(cradle, lent) };
    let mut greeted = greet_new(cradle, &mut link, FORKED);
    if let Err(NotGreeted::TimeUp) = greeted {
        warn!("the process that shims are forked from does not answer: another one takes its place");
        // A shim that it has forked is about to answer; one that it has not will never exist.
        cradle.renew(asked);
        greeted = cradle.hear_welcome(&mut link, HANDSHAKE);
    }
    match greeted {
        Ok(welcome) => Ok(Greeted { link, welcome, child: None }),
        // The other end is closed: no shim of it has a copy of the locks.
        Err(NotGreeted::Closed) => directly(cradle, lent),
        Err(problem @ (NotGreeted::TimeUp | NotGreeted::Other(_))) => {
            // It leaves when its link is closed, and the process that forked it is not asked again.
            cradle.let_go(link, None);
            cradle.renew(asked);
            Err(problem.into())
        }
    }
}

/// A shim that is our own child.
fn directly<C: Cradle>(cradle: &C, lent: &Lent<'_>) -> Result<Greeted<C>, StartRefused> {
    let (child, mut link) = cradle.execute(lent)?;
    match greet_new(cradle, &mut link, HANDSHAKE) {
        Ok(welcome) => Ok(Greeted { link, welcome, child: Some(child) }),
        Err(problem) => {
            cradle.let_go(link, Some(child));
            Err(problem.into())
        }
    }
}

/// Greets a shim that has just been given the locks.
fn greet_new<C: Cradle>(
    cradle: &C,
    link: &mut C::Link,
    within: Duration,
) -> Result<Box<Welcome>, NotGreeted> {
    crash::point("spawn.handed");
    cradle.greet(link, within)
}

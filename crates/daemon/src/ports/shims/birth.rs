//! How a shim comes to be: forked by the nursery, or executed where there is none that answers; and what it is told first.
//!
//! This decides in which order things are tried and whose the locks are meanwhile. A `Cradle` does them: the real one
//! blocks in system calls, that of the simulation asks its script.

use super::ShimUp;
use crate::crash;
use crate::ports::locks::Held;
use pinfold_core::RunNumber;
use pinfold_core::life::StartRefused;
use pinfold_lock::{Folder, Guard};
use pinfold_shim::{Command, Start, Welcome};
use std::time::Duration;
use tracing::{debug, warn};

/// A shim that was started answers within this; a machine that needs longer is out of order.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// A shim that a nursery forks answers within milliseconds; after this, the nursery does not run.
const FORKED: Duration = Duration::from_secs(2);

/// Locks as they are given to a shim.
pub(crate) type Lent<'a> = [(&'a Folder, &'a Guard)];

/// Where shims come from. All of it blocks.
pub(crate) trait Cradle {
    /// Which process was asked for a shim.
    type Asked: Copy;
    /// The connection with a shim that may still be coming, with the moment at which it was asked for.
    type Link;
    /// A shim that has to be reaped.
    type Child;

    /// Asks the nursery for a shim, and gives it the locks. Nothing where there is none, or it cannot be asked.
    fn fork(&self, lent: &Lent<'_>) -> Option<(Self::Asked, Self::Link)>;

    /// Ends the nursery that was asked, unless another one has its place, and with it whatever it has not done.
    fn renew(&self, asked: Self::Asked);

    /// Executes a shim, and gives it the locks.
    fn execute(&self, lent: &Lent<'_>) -> Result<(Self::Child, Self::Link), StartRefused>;

    /// Says hello, and waits for the answer until so long after the shim was asked for.
    fn greet(&self, link: &mut Self::Link, within: Duration) -> Result<Box<Welcome>, NotGreeted>;

    /// Waits on for the answer to a hello.
    fn hear_welcome(&self, link: &mut Self::Link, within: Duration) -> Result<Box<Welcome>, NotGreeted>;

    /// Tells a shim that has answered something.
    fn tell(&self, link: &mut Self::Link, command: &Command) -> Result<(), StartRefused>;

    /// Lets a shim go: without its connection it leaves.
    fn let_go(&self, link: Self::Link, child: Option<Self::Child>);

    /// A shim that has its order.
    fn up(&self, link: Self::Link, welcome: Box<Welcome>, child: Option<Self::Child>) -> ShimUp;
}

/// Why a shim did not say welcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotGreeted {
    /// Nothing came in time.
    #[error("the shim did not answer in time")]
    TimeUp,
    /// There is no shim at the other end, or not any more.
    #[error("the shim left before it said welcome")]
    Closed,
    /// It said something else.
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

/// Starts a shim under the locks and tells it to start the run, which is stored already. Blocks.
pub(crate) fn open<C: Cradle>(
    cradle: &C,
    held: Box<dyn Held>,
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

/// A shim that is forked by the nursery. One that does not come although it was asked for is started without it.
fn from_nursery<C: Cradle>(cradle: &C, lent: &Lent<'_>) -> Result<Greeted<C>, StartRefused> {
    // It was lost while it was asked, or its program is: the other way says which.
    let Some((asked, mut link)) = cradle.fork(lent) else { return directly(cradle, lent) };
    let mut greeted = greet_new(cradle, &mut link, FORKED);
    if let Err(NotGreeted::TimeUp) = greeted {
        warn!("the process that shims are forked from does not answer: another one takes its place");
        // A shim that it has forked is about to answer; one that it has not will never be.
        cradle.renew(asked);
        greeted = cradle.hear_welcome(&mut link, HANDSHAKE);
    }
    match greeted {
        Ok(welcome) => Ok(Greeted { link, welcome, child: None }),
        // It has nobody at its other end: no shim of it has a copy of the locks.
        Err(NotGreeted::Closed) => directly(cradle, lent),
        Err(problem @ (NotGreeted::TimeUp | NotGreeted::Other(_))) => {
            // Without its connection it leaves; and the process that it came from is not asked again.
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

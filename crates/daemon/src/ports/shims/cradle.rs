//! Shims that are processes, from their beginning to their first order.

use super::birth::{Cradle, Lent, NotGreeted};
use super::{Greeted, ShimUp, greet, hear_welcome, note_end, refusal};
use pinfold_core::life::StartRefused;
use pinfold_kernel::private::{self, Wider};
use pinfold_shim::client::{Opening, ShimConnection, spawn};
use pinfold_shim::nursery::{Nursery, NurseryId};
use pinfold_shim::{Command, Welcome};
use std::process::Child;
use std::time::{Duration, Instant};

/// The processes of one birth.
pub(super) struct Processes<'a> {
    opening: Opening,
    generation: u64,
    nursery: Option<&'a Nursery>,
}

impl Processes<'_> {
    pub(super) fn new(opening: Opening, generation: u64, nursery: Option<&Nursery>) -> Processes<'_> {
        make_places(&opening);
        Processes { opening, generation, nursery }
    }
}

/// A connection, and when its shim was asked for.
pub(super) struct Awaited {
    link: ShimConnection,
    begun: Instant,
}

impl Cradle for Processes<'_> {
    type Asked = NurseryId;
    type Link = Awaited;
    type Child = Child;

    fn fork(&self, lent: &Lent<'_>) -> Option<(NurseryId, Awaited)> {
        let begun = Instant::now();
        let (asked, link) = self.nursery?.spawn(&self.opening, lent).ok()?;
        Some((asked, Awaited { link, begun }))
    }

    fn renew(&self, asked: NurseryId) {
        if let Some(nursery) = self.nursery {
            nursery.renew(asked);
        }
    }

    fn execute(&self, lent: &Lent<'_>) -> Result<(Child, Awaited), StartRefused> {
        let (child, link) = spawn(&self.opening, lent).map_err(|error| refusal(&error))?;
        Ok((child, Awaited { link, begun: Instant::now() }))
    }

    fn greet(
        &self,
        Awaited { link, begun }: &mut Awaited,
        within: Duration,
    ) -> Result<Box<Welcome>, NotGreeted> {
        greet(link, self.generation, *begun + within)
    }

    fn hear_welcome(
        &self,
        Awaited { link, begun }: &mut Awaited,
        within: Duration,
    ) -> Result<Box<Welcome>, NotGreeted> {
        hear_welcome(link, *begun + within)
    }

    fn tell(&self, Awaited { link, .. }: &mut Awaited, command: &Command) -> Result<(), StartRefused> {
        link.send(command).map_err(|error| refusal(&error))
    }

    fn let_go(&self, Awaited { link, .. }: Awaited, mut child: Option<Child>) {
        drop(link);
        child.as_mut().map(note_end);
    }

    fn up(&self, Awaited { link, .. }: Awaited, welcome: Box<Welcome>, child: Option<Child>) -> ShimUp {
        Greeted { socket: self.opening.listen.clone(), link, welcome, child }.up()
    }
}

/// Makes the folders again that somebody removed since the session was made.
fn make_places(opening: &Opening) {
    for file in [&opening.records, &opening.listen] {
        if let Some(folder) = file.parent() {
            // What is wrong shows when they are used, and is told then.
            _ = private::make_private(folder, Wider::Tighten);
        }
    }
}

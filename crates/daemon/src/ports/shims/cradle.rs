//! Shims that are processes, from their birth to their first order.

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

/// A link, and when its shim was asked for.
pub(super) struct AwaitedLink {
    link: ShimConnection,
    begun: Instant,
}

impl Cradle for Processes<'_> {
    type Asked = NurseryId;
    type Link = AwaitedLink;
    type Child = Child;

    fn fork(&self, lent: &Lent<'_>) -> Option<(NurseryId, AwaitedLink)> {
        let begun = Instant::now();
        let (asked, link) = self.nursery?.spawn(&self.opening, lent).ok()?;
        Some((asked, AwaitedLink { link, begun }))
    }

    fn renew(&self, asked: NurseryId) {
        if let Some(nursery) = self.nursery {
            nursery.renew(asked);
        }
    }

    fn execute(&self, lent: &Lent<'_>) -> Result<(Child, AwaitedLink), StartRefused> {
        let (child, link) = spawn(&self.opening, lent).map_err(|error| refusal(&error))?;
        Ok((child, AwaitedLink { link, begun: Instant::now() }))
    }

    fn greet(
        &self,
        AwaitedLink { link, begun }: &mut AwaitedLink,
        within: Duration,
    ) -> Result<Box<Welcome>, NotGreeted> {
        greet(link, self.generation, *begun + within)
    }

    fn hear_welcome(
        &self,
        AwaitedLink { link, begun }: &mut AwaitedLink,
        within: Duration,
    ) -> Result<Box<Welcome>, NotGreeted> {
        hear_welcome(link, *begun + within)
    }

    fn tell(
        &self,
        AwaitedLink { link, .. }: &mut AwaitedLink,
        command: &Command,
    ) -> Result<(), StartRefused> {
        link.send(command).map_err(|error| refusal(&error))
    }

    fn let_go(&self, AwaitedLink { link, .. }: AwaitedLink, mut child: Option<Child>) {
        drop(link);
        child.as_mut().map(note_end);
    }

    fn up(
        &self,
        AwaitedLink { link, .. }: AwaitedLink,
        welcome: Box<Welcome>,
        child: Option<Child>,
    ) -> ShimUp {
        Greeted { socket: self.opening.listen.clone(), link, welcome, child }.up()
    }
}

/// Makes the folders again if they were removed since the session was created.
fn make_places(opening: &Opening) {
    for file in [&opening.records, &opening.listen] {
        if let Some(folder) = file.parent() {
            // An error shows when they are used, and is reported then.
            _ = private::make_private(folder, Wider::Tighten);
        }
    }
}

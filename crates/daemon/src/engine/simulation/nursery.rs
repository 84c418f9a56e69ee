//! Births of virtual shims: the order of steps is that of the daemon that ships, and the script chooses every
//! way in which a birth can fail.
//!
//! A process that was forked, or asked to fork, has a copy of the locks: they are not free before it is gone.

use super::machine::{PoolJob, Shared, VirtualMachine};
use super::shim;
use super::world::{SESSIONS, SimulatedHolder};
use crate::ports::shims::ShimUp;
use crate::ports::shims::birth::{Cradle, Lent, NotGreeted};
use pinfold_core::life::StartRefused;
use pinfold_shim::{Command, Welcome};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::time::Duration;

/// What goes wrong with the next birth in a session.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum BirthTrouble {
    /// The nursery cannot be asked.
    NoNursery,
    /// The nursery cannot be asked, and there is no program to execute.
    NoProgram,
    /// The nursery is killed before it has forked.
    NurseryKilled,
    /// The nursery is suspended, and keeps what it was given until it is killed.
    NurseryStopped,
    /// The shim answers only after the nursery was given up.
    ShimSlow,
    /// The shim never answers.
    ShimMute,
}

/// How far a birth is.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// No process knows of it.
    Nowhere,
    /// The nursery was asked and has a copy of the locks.
    Asked,
    /// A separate process has a copy of the locks.
    Forked,
}

/// The birth of one shim.
pub(super) struct VirtualCradle {
    session: usize,
    machine: Shared,
    trouble: Option<BirthTrouble>,
    way: Cell<Way>,
}

impl VirtualCradle {
    pub(super) fn new(session: usize, machine: &Shared) -> VirtualCradle {
        let trouble = machine.lock().births[session].take();
        VirtualCradle { session, machine: machine.clone(), trouble, way: Cell::new(Way::Nowhere) }
    }

    fn go(&self, way: Way) {
        self.way.set(way);
        self.machine.lock().unborn[self.session] += u32::from(way != Way::Nowhere);
    }

    fn wait(&self, within: Duration) -> Result<Box<Welcome>, NotGreeted> {
        self.machine.lock().room.pass(within.as_millis() as u64);
        Err(NotGreeted::TimeUp)
    }

    fn welcome(&self) -> Box<Welcome> {
        Box::new(shim::welcome(&self.machine.lock(), self.session))
    }
}

impl Cradle for VirtualCradle {
    type Asked = ();
    type Link = Vec<Command>;
    type Child = ();

    fn fork(&self, _lent: &Lent<'_>) -> Option<((), Vec<Command>)> {
        match self.trouble {
            Some(BirthTrouble::NoNursery | BirthTrouble::NoProgram) => return None,
            Some(BirthTrouble::NurseryKilled) => {}
            Some(BirthTrouble::NurseryStopped) => self.go(Way::Asked),
            Some(BirthTrouble::ShimSlow | BirthTrouble::ShimMute) | None => self.go(Way::Forked),
        }
        Some(((), Vec::new()))
    }

    fn renew(&self, (): ()) {
        if self.way.get() == Way::Asked {
            self.way.set(Way::Nowhere);
            self.machine.lock().unborn_leaves(self.session);
        }
    }

    fn execute(&self, _lent: &Lent<'_>) -> Result<((), Vec<Command>), StartRefused> {
        if self.trouble == Some(BirthTrouble::NoProgram) {
            return Err(StartRefused { errno: None, text: "no such program".to_owned() });
        }
        let mut machine = self.machine.lock();
        if machine.unborn[self.session] > 0 {
            machine.wrong = Some(format!("session {}: a second shim is given its locks", self.session));
        }
        drop(machine);
        self.go(Way::Forked);
        Ok(((), Vec::new()))
    }

    fn greet(&self, _link: &mut Vec<Command>, within: Duration) -> Result<Box<Welcome>, NotGreeted> {
        match (self.way.get(), self.trouble) {
            (Way::Nowhere, _) => Err(NotGreeted::Closed),
            (Way::Asked, _) | (Way::Forked, Some(BirthTrouble::ShimSlow | BirthTrouble::ShimMute)) => {
                self.wait(within)
            }
            (Way::Forked, _) => Ok(self.welcome()),
        }
    }

    fn hear_welcome(&self, _link: &mut Vec<Command>, within: Duration) -> Result<Box<Welcome>, NotGreeted> {
        match (self.way.get(), self.trouble) {
            (Way::Nowhere, _) => Err(NotGreeted::Closed),
            (Way::Asked, _) | (Way::Forked, Some(BirthTrouble::ShimMute)) => self.wait(within),
            (Way::Forked, _) => Ok(self.welcome()),
        }
    }

    fn tell(&self, link: &mut Vec<Command>, command: &Command) -> Result<(), StartRefused> {
        link.push(command.clone());
        Ok(())
    }

    /// It leaves when it reads the end of its link, which the script decides.
    fn let_go(&self, _link: Vec<Command>, _child: Option<()>) {}

    fn up(&self, link: Vec<Command>, welcome: Box<Welcome>, _child: Option<()>) -> ShimUp {
        let mut machine = self.machine.lock();
        machine.is_born(self.session);
        let mut up = shim::connect(&mut machine, &self.machine, self.session);
        if let Some(new) = &mut machine.links[self.session] {
            new.commands.extend(link);
        }
        up.welcome = welcome;
        up
    }
}

impl VirtualMachine {
    /// A process that had a copy of the locks and was not a shim yet is gone.
    pub(super) fn unborn_leaves(&mut self, session: usize) {
        self.unborn[session] = self.unborn[session].saturating_sub(1);
        if self.unborn[session] == 0 {
            self.room.free(SimulatedHolder::Unborn(session));
        }
    }

    /// The daemon closes its copies: the locks are free, unless another process has one.
    pub(super) fn close(&mut self, session: usize) {
        match self.unborn[session] {
            0 => self.room.free(SimulatedHolder::Daemon(session)),
            _ => self.room.pass_on(SimulatedHolder::Daemon(session), SimulatedHolder::Unborn(session)),
        }
    }

    fn is_born(&mut self, session: usize) {
        self.unborn[session] = self.unborn[session].saturating_sub(1);
        self.room.pass_on(SimulatedHolder::Unborn(session), SimulatedHolder::Daemon(session));
        self.room.new_shim(session);
    }

    /// A daemon dies: some of its births under way have come so far that another process has the locks too.
    pub(super) fn orphan_births(&mut self) {
        for session in 0..SESSIONS {
            let under_way = self.jobs[session].iter().any(|job| matches!(job, PoolJob::Open(..)));
            if under_way && self.room.now().jitter.0.is_multiple_of(2) {
                self.unborn[session] += 1;
            }
        }
    }

    /// The process that was to become a shim reads the end of its link and leaves. Returns whether there was
    /// one.
    pub(super) fn orphan_leaves(&mut self, session: usize) -> bool {
        let left = self.unborn[session] > 0;
        if left {
            self.unborn_leaves(session);
        }
        left
    }
}

//! Locks of vendor conversations that become known during a run: taken by the daemon, and handed to the
//! living shim.
//!
//! The daemon keeps its own copy until the shim says that it holds the lock. If the daemon dies in between,
//! the lock is free for a moment, and the next daemon takes it again: the id is stored first.

use super::Engine;
use crate::crash;
use crate::define::preset::Preset;
use crate::engine::input::LoopInput;
use crate::engine::session::{Handing, Tracked};
use crate::output::last_line;
use crate::ports::locks::{LocksRefused, LocksWanted, Obstacle, RunLocks};
use pinfold_core::life::{HolderSeen, Life, Purpose};
use pinfold_core::{RunEvent, RunNumber};
use pinfold_store::SessionId;
use std::path::Path;
use tracing::warn;

impl Engine {
    /// Takes the lock of a conversation for a live run.
    pub(super) fn hold_vendor(&mut self, id: SessionId, run: RunNumber, vendor: &str) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        if tracked.session.live_run() != Some(run) || tracked.shim.as_ref().is_none_or(|shim| !shim.can.hold)
        {
            return;
        }
        let name = tracked.run_id(run).map(|run| run.to_string()).unwrap_or_default();
        let definition = tracked.definition.resuming(Some(vendor), None);
        let wanted = LocksWanted::new(&tracked.name, &definition, name).and_then(LocksWanted::of_vendor);
        let Some(wanted) = wanted else { return };
        let (handle, vendor) = (self.handle.clone(), vendor.to_owned());
        let told = move |result| handle.tell(LoopInput::VendorHeld { id, run, vendor, result });
        self.ports.locks.reserve(wanted, Box::new(told));
    }

    /// Looks for the process that has the conversation, after the vendor refused it. The run ends meanwhile,
    /// and the session waits for the process found by then.
    pub(super) fn seek_writer(&mut self, id: SessionId, run: RunNumber) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let definition = self.as_known(tracked);
        let preset = self.config.preset(&definition.agent);
        let vendor = definition.vendor_session.as_deref();
        let lock = vendor.and_then(|vendor| preset?.writer_lock_of(vendor));
        let (Some(lock), Some(store)) = (lock, definition.store.as_deref()) else { return };
        let resource = definition.vendor_lock().map(|resource| resource.to_string()).unwrap_or_default();
        let (lock, handle) = (Path::new(store).join(lock), self.handle.clone());
        let told = move |holder| handle.tell(LoopInput::WriterSeen { id, run, holder });
        self.ports.files.writer_of(lock, resource, Box::new(told));
    }

    pub(super) fn writer_seen(&mut self, id: SessionId, run: RunNumber, holder: Option<HolderSeen>) {
        let live = self.sessions.get(&id).and_then(|tracked| tracked.session.live_run());
        if let (Some(holder), None) = (&holder, live) {
            return self.holder_found(id, run, holder.clone());
        }
        let tracked = self.sessions.get_mut(&id).filter(|tracked| tracked.session.live_run() == Some(run));
        let Some(tracked) = tracked.filter(|tracked| tracked.yields_to.is_none()) else { return };
        tracked.awaited = holder.as_ref().and_then(|holder| holder.pid).map(Obstacle::Writer);
        tracked.yields_to = holder.map(Box::new);
    }

    pub(super) fn vendor_held(
        &mut self,
        id: SessionId,
        run: RunNumber,
        vendor: &str,
        result: Result<Box<dyn RunLocks>, LocksRefused>,
    ) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        if tracked.session.live_run() != Some(run) {
            return;
        }
        let held = match result {
            Ok(held) => held,
            Err(LocksRefused::Busy { holder, resource, run: of }) => {
                // Our own shim has held it since an earlier daemon: its record names the session and this
                // run. A session of another home may have the same name.
                let session = holder.as_ref().and_then(|holder| holder.session.as_deref());
                let own = tracked.run_id(run).map(|run| run.to_string());
                if session.is_none_or(|session| session == tracked.name) && (of.is_none() || of == own) {
                    return;
                }
                (tracked.awaited, tracked.yields_to) = (Some(Obstacle::Lock(resource)), holder.clone());
                warn!(
                    session = tracked.name,
                    vendor, "the conversation that it is in is held by another process"
                );
                return self.of_run(id, run, RunEvent::VendorBusy { holder });
            }
            Err(LocksRefused::Hopeless(_) | LocksRefused::System(_)) => {
                return warn!(
                    session = tracked.name,
                    vendor, "the conversation that it is in could not be locked"
                );
            }
        };
        let Some(shim) = &tracked.shim else { return };
        let resource = held.lend().first().map(|(_, guard)| guard.resource().to_string()).unwrap_or_default();
        match shim.hold(run, &*held) {
            Ok(()) => tracked.handing.push(Handing { resource, held }),
            Err(error) => warn!(session = tracked.name, vendor, "the lock could not be handed over: {error}"),
        }
        crash::point("hold.sent");
    }

    /// A vendor's own terminal program has ended: its hooks or its last lines may name the conversation that
    /// it leaves, and the next run continues that one.
    pub(super) fn note_left(&mut self, id: SessionId, run: RunNumber, output: &[String]) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let interactive = match tracked.session.life() {
            Life::Held { .. } => true,
            Life::Starting { purpose, .. } | Life::Stopping { purpose, .. } => *purpose != Purpose::Headless,
            Life::Idle { .. }
            | Life::Running { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => false,
        };
        let preset = self.config.preset(&tracked.definition.agent).filter(|_| interactive);
        let left = preset.and_then(|preset| {
            let told = || last_line::whole(output).find_map(|line| preset.left_in(&line).map(str::to_owned));
            self.spooled(&preset, tracked, run).or_else(told)
        });
        let known = self.as_known(tracked).vendor_session.clone();
        if let Some(left) = left.filter(|left| known.as_ref() != Some(left)) {
            self.of_run(id, run, RunEvent::VendorLeft { id: left });
        }
    }

    /// The conversation that a hook of the terminal program named last in this run.
    fn spooled(&self, preset: &Preset, tracked: &Tracked, run: RunNumber) -> Option<String> {
        preset.spool_key.as_ref()?;
        let name = tracked.run_id(run)?.to_string();
        preset.left_in_spool(&name, &self.ports.shims.spool(&self.home, tracked.id))
    }

    /// The shim says which locks it holds now: the daemon drops its copies.
    pub(super) fn held(&mut self, id: SessionId, run: RunNumber, resources: &[String]) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        if tracked.session.live_run() != Some(run) {
            return;
        }
        let handing = std::mem::take(&mut tracked.handing);
        for handing in handing {
            match resources.contains(&handing.resource) {
                true => handing.held.surrender(),
                false => tracked.handing.push(handing),
            }
        }
    }

    /// The run has ended: drop the locks that its shim did not confirm.
    pub(super) fn let_handed_go(&mut self, id: SessionId) {
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.handing.clear();
        }
    }
}

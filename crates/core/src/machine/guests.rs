//! Guests: a client that attaches gets the vendor's own terminal program beside the run. The run itself does not change.

use super::draft::Draft;
use crate::decision::{Action, Change, Record};
use crate::event::GuestEvent;
use crate::exit::Exit;
use crate::guest::{Attaching, Guest, GuestSeen, GuestStage, Presence, Welcomes};
use crate::ids::{ConsumerId, RunNumber};
use crate::life::Life;
use crate::session::Session;
use crate::talk::Activity;
use crate::why::{GuestStep, Why};

const SIGKILL: i32 = 9;

impl Draft<'_> {
    /// Notes that a client waits for a guest; a guest that is already there or on its way serves it as well.
    pub(super) fn guest_wanted(&mut self, consumer: ConsumerId) {
        let here = self.session.guest_here().is_some_and(|guest| guest.stage != GuestStage::Asked);
        let mut waiting = self.session.live.awaiting_guest.clone();
        if !here && !waiting.contains(&consumer) {
            waiting.push(consumer);
            self.change(Change::AwaitingGuest(waiting));
        }
    }

    /// Starts a guest for the clients that wait for one, as soon as the run is ready for it.
    pub(super) fn invite(&mut self) {
        let Life::Running { run, .. } = self.session.life else { return };
        let nobody = self.session.live.awaiting_guest.is_empty();
        if nobody || self.session.guest_here().is_some() || !self.welcomes() {
            return;
        }
        let last = self.session.guest.filter(|guest| guest.run == run).map_or(0, |guest| guest.number);
        let number = last + 1;
        self.change(Change::Guest(Some(Guest { run, number, stage: GuestStage::Asked })));
        self.act(Action::StartGuest { run, guest: number });
    }

    fn welcomes(&self) -> bool {
        let Attaching::Join(when) = self.session.spec.attach else { return false };
        let ready = self
            .session
            .live
            .standing
            .as_ref()
            .is_some_and(|standing| standing.activity != Activity::Unknown);
        match when {
            Welcomes::AtOnce => true,
            Welcomes::WhenReady => ready,
            Welcomes::WhenNamed => ready && self.session.talk.vendor().is_some(),
        }
    }

    pub(super) fn guest(&mut self, run: RunNumber, number: u64, event: &GuestEvent) -> Why {
        let Some(guest) =
            self.session.guest_here().filter(|guest| (guest.run, guest.number) == (run, number))
        else {
            return Why::Stale;
        };
        match (event, guest.stage) {
            (GuestEvent::Started { pid }, GuestStage::Asked) => self.guest_came(guest, *pid),
            (GuestEvent::Started { .. }, GuestStage::Here { .. } | GuestStage::Gone { .. }) => {
                return Why::Stale;
            }
            (GuestEvent::Ended { exit, text }, _) => {
                self.guest_went(guest, *exit, text.clone());
                return Why::Guest(GuestStep::Ended);
            }
        }
        Why::Guest(GuestStep::Started)
    }

    fn guest_came(&mut self, guest: Guest, pid: u32) {
        self.change(Change::Guest(Some(Guest { stage: GuestStage::Here { pid }, ..guest })));
        self.record(Record::GuestStarted { run: guest.run, guest: guest.number, pid });
        self.nobody_waits();
    }

    /// Notes the end of a guest; the clients that waited for it no longer do.
    fn guest_went(&mut self, guest: Guest, exit: Exit, text: Option<String>) {
        let stage = GuestStage::Gone { exit: Some(exit) };
        self.change(Change::Guest(Some(Guest { stage, ..guest })));
        self.record(Record::GuestEnded { run: guest.run, guest: guest.number, exit, text });
        self.nobody_waits();
    }

    fn nobody_waits(&mut self) {
        if !self.session.live.awaiting_guest.is_empty() {
            self.change(Change::AwaitingGuest(Vec::new()));
        }
    }

    /// Ends the guest together with its run; no report of its end is needed.
    pub(super) fn guest_ends_with_run(&mut self, exit: Exit) {
        let Some(guest) = self.session.guest_here() else { return };
        match guest.stage {
            GuestStage::Asked => self.guest_never_came(guest),
            GuestStage::Here { .. } | GuestStage::Gone { .. } => {
                let exit = match exit {
                    Exit::ShimLost | Exit::MachineLost | Exit::AfterBackup => exit,
                    Exit::Code(_) | Exit::Signal(_) | Exit::NeverStarted => Exit::Signal(SIGKILL),
                };
                self.guest_went(guest, exit, None);
            }
        }
    }

    /// Notes that the guest was never started; its clients go on waiting for the next one.
    fn guest_never_came(&mut self, guest: Guest) {
        self.change(Change::Guest(Some(Guest { stage: GuestStage::Gone { exit: None }, ..guest })));
    }

    /// Reconciles what is known about the guest of a living run with what was found.
    pub(super) fn find_guest(&mut self, run: RunNumber, seen: Option<GuestSeen>) {
        let known = self.session.guest_here().filter(|guest| guest.run == run);
        let found = seen.filter(|seen| known.is_none_or(|known| known.number <= seen.number));
        match (known, found) {
            (Some(guest), Some(GuestSeen { presence: Presence::Here { pid }, .. })) => {
                if guest.stage == GuestStage::Asked {
                    self.guest_came(guest, pid);
                }
            }
            (Some(guest), Some(GuestSeen { presence: Presence::Gone(exit), .. })) => {
                self.guest_went(guest, exit, None);
            }
            (Some(guest), None) => self.guest_never_came(guest),
            (None, Some(GuestSeen { number, presence: Presence::Here { pid } })) => {
                self.guest_came(Guest { run, number, stage: GuestStage::Asked }, pid);
            }
            (None, Some(GuestSeen { presence: Presence::Gone(_), .. }) | None) => {}
        }
    }
}

impl Session {
    /// Returns the latest guest of its runs.
    #[must_use]
    pub fn guest(&self) -> Option<Guest> {
        self.guest
    }

    /// Returns the guest that is there or on its way.
    #[must_use]
    pub fn guest_here(&self) -> Option<Guest> {
        self.guest.filter(|guest| !matches!(guest.stage, GuestStage::Gone { .. }))
    }

    /// Whether a client waits for a guest that has not been started yet.
    #[must_use]
    pub fn awaits_guest(&self) -> bool {
        !self.live.awaiting_guest.is_empty()
    }
}

//! Checks before each start of some agents: the vendor's own file of the session decides which arguments to
//! use, and a program that pinfold did not start may be using the session. Both are checked with the
//! session's own locks held. The files of a
//! message that is among the words of the run have to be there.

use crate::define::before_start::{BeforeStart, BeforeStartFindings};
use crate::define::id_files::Outsider;
use crate::define::kept::{Found, FoundState};
use crate::define::others::Others;
use crate::define::preset::VendorTranscript;
use crate::define::transcript::UnreadablePlace;
use crate::engine::Engine;
use crate::engine::conversation::only_resumes;
use crate::engine::input::{Looked, LoopInput};
use crate::ports::locks::{Obstacle, passing};
use pinfold_core::event::StartFailure;
use pinfold_core::life::{HolderSeen, Purpose, StartRefused};
use pinfold_core::lost::LostHow;
use pinfold_core::{MessageId, RunEvent, RunNumber};
use pinfold_store::SessionId;
use tracing::info;

impl Engine {
    /// What has to be checked before a run of a session starts, if anything.
    pub(super) fn sought(&self, id: SessionId) -> Option<BeforeStart> {
        let tracked = self.sessions.get(&id)?;
        let preset = self.config.preset(&tracked.definition.agent)?;
        let transcript = self.keeping(tracked);
        BeforeStart::of(&self.as_known(tracked), &preset, transcript, self.files_of_prompt(tracked))
    }

    pub(super) fn spawn(&mut self, id: SessionId, run: RunNumber, purpose: Purpose) {
        let Some(before) = self.sought(id) else { return self.spawn_on(id, run, purpose, None) };
        let Some(beginnings) = self.sessions.get(&id).map(|tracked| tracked.beginnings) else { return };
        let (handle, others) = (self.handle.clone(), before.others.clone());
        let told = move |found| {
            let looked = Looked { run, purpose, found, others, beginnings };
            handle.tell(LoopInput::Looked { id, looked: Box::new(looked) });
        };
        self.ports.files.look_for(before, Box::new(told));
    }

    pub(in crate::engine) fn looked(&mut self, id: SessionId, looked: Looked) {
        let Looked {
            run,
            purpose,
            found: BeforeStartFindings { transcript, outsider, message },
            others,
            beginnings,
        } = looked;
        let waits = self.sessions.get(&id).is_some_and(|tracked| {
            tracked.beginnings == beginnings && tracked.session.live_run() == Some(run)
        });
        if !waits {
            return;
        }
        if purpose == Purpose::Headless && !self.files_are_there(id, message) {
            // For the message that is next by now; the start comes to nothing where there is none.
            return self.spawn(id, run, purpose);
        }
        let transcript = match transcript.transpose() {
            Ok(Some(Found { state: FoundState::Incomplete, .. })) => {
                return self.conversation_lost(id, run, LostHow::Incomplete, None);
            }
            Ok(found) => self.transcript_that_counts(id, run, found),
            Err(unreadable) => return self.cannot_look(id, run, &unreadable),
        };
        match (outsider, others) {
            (Ok(None), _) | (Ok(Some(_)), None) => self.spawn_on(id, run, purpose, transcript),
            (Ok(Some(outsider)), Some(others)) => self.yields_to_outsider(id, run, others, outsider),
            (Err(error), _) => {
                let text = format!("it cannot be seen who else is in its vendor session: {error}");
                let refused = StartRefused { errno: passing(error.raw_os_error()), text };
                self.of_run(id, run, RunEvent::StartFailed(StartFailure::Refused(refused)));
            }
        }
    }

    /// What the commands of a run are filled in for: a conversation in which something was said is continued,
    /// whatever was found of it.
    fn transcript_that_counts(
        &mut self,
        id: SessionId,
        run: RunNumber,
        found: Option<Found>,
    ) -> Option<VendorTranscript> {
        if found.is_some_and(|found| found.state == FoundState::PutBack) {
            self.was_put_back(id, run);
        }
        let tracked = self.sessions.get_mut(&id)?;
        if let Some(live) = tracked.live(run) {
            live.transcript = found;
        }
        let found = found?;
        let resumes = found.kept || only_resumes(tracked);
        Some(if resumes { VendorTranscript::Exists } else { found.transcript })
    }

    /// It cannot be seen whether the vendor has the conversation.
    fn cannot_look(&mut self, id: SessionId, run: RunNumber, unreadable: &UnreadablePlace) {
        let UnreadablePlace { path, error } = unreadable;
        let errno = error.raw_os_error();
        let reason = errno.map_or_else(|| error.to_string(), super::said);
        let text = format!("its vendor's conversations cannot be read: {}: {reason}", path.display());
        let refused = StartRefused { errno, text };
        self.of_run(id, run, RunEvent::StartFailed(StartFailure::Refused(refused)));
    }

    /// Whether the message that is next is the one that was looked at, and its files are there; fails it where they are not.
    fn files_are_there(&mut self, id: SessionId, looked_at: Option<(MessageId, Option<String>)>) -> bool {
        let next = self.sessions.get(&id).and_then(|tracked| self.files_of_prompt(tracked));
        let next = next.map(|(message, _)| message);
        if next != looked_at.as_ref().map(|(message, _)| *message) {
            return false;
        }
        let Some((message, Some(missing))) = looked_at else { return true };
        self.cannot_prompt(id, message, &missing);
        false
    }

    /// A program that pinfold did not start has the vendor session: the session waits until it is gone.
    fn yields_to_outsider(&mut self, id: SessionId, run: RunNumber, others: Others, outsider: Outsider) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let resource = self.as_known(tracked).vendor_lock().map(|resource| resource.to_string());
        info!(
            session = tracked.name,
            pid = outsider.pid,
            "its vendor session is held by a program outside of pinfold"
        );
        let holder = Box::new(outsider.seen(resource.unwrap_or_default()));
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.awaited = Some(Obstacle::Process(Box::new((others, outsider))));
        }
        self.of_run(id, run, RunEvent::LockBusy { holder: Some(holder) });
    }
}

impl Outsider {
    /// This outsider as a holder, in the form people are shown.
    pub(crate) fn seen(&self, resource: String) -> HolderSeen {
        let command = Some(self.command.clone()).filter(|command| !command.is_empty());
        HolderSeen { resource, pid: Some(self.pid), command, session: None, since: None }
    }
}

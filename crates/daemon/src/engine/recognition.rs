//! Ends that the preset of an agent, or the session's own `--contended-if`, recognises, for every protocol.

use super::Engine;
use crate::define::definition::Protocol;
use crate::define::holder_clue::HolderClue;
use crate::define::preset::{Meaning, Recognises, pid_in};
use crate::engine::input::LoopInput;
use crate::output::last_line;
use pinfold_agents::{FailureKind, TurnFailure};
use pinfold_core::exit::{Ended, Recognised};
use pinfold_core::life::{HolderSeen, Life};
use pinfold_core::{Event, RunNumber, Verdict};
use pinfold_store::{Facts, SessionId};
use std::path::PathBuf;

impl Engine {
    /// What is recognised about the exits of a session's agent.
    fn recognises(&self, id: SessionId) -> Recognises {
        let Some(tracked) = self.sessions.get(&id) else { return Recognises::default() };
        let definition = &tracked.definition;
        let mut all =
            self.config.preset(&definition.agent).map(|preset| preset.recognises).unwrap_or_default();
        all.busy.extend(definition.contended_if.clone());
        all
    }

    /// What the code and the last lines of an exit mean. The translator of protocol `exec` reads them itself,
    /// because they may also be the end of a turn.
    pub(super) fn recognised_exit(
        &mut self,
        id: SessionId,
        run: RunNumber,
        ended: &Ended,
        output: &[String],
    ) -> Option<Recognised> {
        let tracked = self.sessions.get(&id)?;
        let asked =
            matches!(tracked.session.life(), Life::Stopping { .. }) || tracked.session.is_interrupted();
        if tracked.definition.protocol == Protocol::Exec || asked {
            return None;
        }
        let lines = last_line::texts(output);
        let (meaning, line) = self.recognises(id).of_exit(ended.exit.code()?, &lines)?;
        let failure = |kind| TurnFailure { kind, text: line.unwrap_or_default().trim().to_owned() };
        Some(match meaning {
            Meaning::Busy => Recognised::VendorLock,
            Meaning::UnknownSession => {
                self.vendor_unknown(id, run);
                self.gave_up(id, run).unwrap_or(Recognised::StaleId)
            }
            Meaning::Login => {
                self.refused(id, &failure(FailureKind::Login));
                Recognised::LoginNeeded
            }
            Meaning::Limit => {
                self.refused(id, &failure(FailureKind::Limit));
                Recognised::UsageLimit { resets: None }
            }
        })
    }

    /// Looks for the process that a contended session waits for, if its agent names one.
    pub(super) fn seek_holder(&self, id: SessionId, run: RunNumber, output: &[String]) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let contended = tracked.session.last_exit().is_some_and(|exit| exit.verdict == Verdict::Contended);
        let life = tracked.session.life();
        if !contended || !life.awaits_holder() || life.holder().is_some() {
            return;
        }
        let rules = self.recognises(id);
        let lines = last_line::texts(output);
        let said = lines.iter().rev().find(|line| rules.of_text(line) == Some(Meaning::Busy));
        let line = said.or_else(|| lines.iter().rev().find(|line| !line.trim().is_empty()));
        let clue = HolderClue { file: self.pid_file(id, &rules), pid: line.and_then(|line| pid_in(line)) };
        if clue.is_empty() {
            return;
        }
        let handle = self.handle.clone();
        let told = move |holder| handle.tell(LoopInput::WriterSeen { id, run, holder });
        self.ports.files.holder_of(clue, Box::new(told));
    }

    /// The file in which the holder of an agent's lock writes its pid; a relative path is below the session's
    /// directory.
    fn pid_file(&self, id: SessionId, rules: &Recognises) -> Option<PathBuf> {
        let definition = self.as_known(self.sessions.get(&id)?);
        let file = rules.busy_pid_file.as_deref()?.replace("{dir}", &definition.dir.display().to_string());
        let file = match &definition.vendor_session {
            Some(vendor) => file.replace("{vendor_session}", vendor),
            None if file.contains("{vendor_session}") => return None,
            None => file,
        };
        Some(definition.dir.join(file))
    }

    /// A process was found that a session waits for since its last run ended.
    pub(super) fn holder_found(&mut self, id: SessionId, run: RunNumber, holder: HolderSeen) {
        let with_pid = self.sessions.values().find(|other| holder.pid.is_some() && other.pid() == holder.pid);
        let session = with_pid.map(|other| other.name.clone());
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        if tracked.session.runs().last != run || tracked.session.life().holder().is_some() {
            return;
        }
        tracked.awaited = holder.pid.map(crate::ports::locks::Obstacle::Writer);
        let holder = HolderSeen { session, ..holder };
        self.happened(id, &Event::HolderFound(Box::new(holder)), &Facts::default(), None);
    }
}

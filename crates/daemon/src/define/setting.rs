//! Changes of a session that exists: another agent, another conversation, and what they mean for its shim.

use crate::define::bad_definition::BadDefinition;
use crate::define::definition::{COMMAND, Definition, fits};
use crate::define::preset::{Preset, Protocol};
use pinfold_api::request::NewSession;
use pinfold_core::talk::NamedBy;
use pinfold_core::{RunNumber, Session, ShimSetup};
use std::path::PathBuf;

/// Whether a session that gets another agent is in a conversation that this one cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversation {
    /// It is in one.
    Begun,
    /// It has not begun any.
    None,
}

impl Conversation {
    /// Whether a session with this latest definition is in one. A session that was given another agent or
    /// conversation before its next run has not begun that one.
    pub(crate) fn of(core: &Session, latest: &Definition) -> Conversation {
        let latest_is_begun = core.spec().conversation == latest.conversation;
        let begun = match core.talk().vendor().filter(|_| latest_is_begun) {
            Some(vendor) => vendor.by == NamedBy::Agent,
            // An id that pinfold chose stands for a conversation once an agent was given it.
            None if latest.vendor_chosen => latest_is_begun && core.runs().seen > RunNumber(0),
            None => latest.vendor_session.is_some(),
        };
        if begun { Conversation::Begun } else { Conversation::None }
    }
}

/// Why a session cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CannotSet {
    /// What it would be is not a session.
    Bad(BadDefinition),
    /// It is in a conversation of another vendor, and the request names none to continue with.
    OtherVendor { from: String, to: String },
    /// It is in a conversation that its agent would not find in this other store.
    OtherStore { from: String, to: String },
}

impl From<BadDefinition> for CannotSet {
    fn from(bad: BadDefinition) -> CannotSet {
        CannotSet::Bad(bad)
    }
}

impl Definition {
    /// Applies a request to a session that exists. `preset` is that of the agent it has afterwards.
    pub(crate) fn set(
        &mut self,
        request: &NewSession,
        preset: Option<&Preset>,
        now: Conversation,
    ) -> Result<(), CannotSet> {
        let begins = request.new_conversation == Some(true);
        let agent = request.agent.clone().unwrap_or_else(|| self.agent.clone());
        let before = preset.map(|preset| (self.place_of_store(preset), self.moved_to(preset)));
        let other = agent != self.agent;
        if other && now == Conversation::Begun && !begins && request.vendor_session.is_none() {
            return Err(CannotSet::OtherVendor { from: self.agent.clone(), to: agent });
        }
        if other {
            fits(request, &agent, preset)?;
            self.become_one_of(agent, preset);
        } else {
            still_fits(request, &agent, preset)?;
        }
        if other || begins {
            (self.vendor_session, self.vendor_chosen) = (None, false);
        }
        if other || begins || request.vendor_session.is_some() {
            self.conversation += 1;
        }
        self.change(request)?;
        let keeps = now == Conversation::Begun && !other && !begins && request.vendor_session.is_none();
        if let (Some(preset), Some((from, moved_to))) = (preset.filter(|_| keeps), before)
            && moved_to != self.moved_to(preset)
        {
            let to = self.place_of_store(preset);
            let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
            return Err(CannotSet::OtherStore { from, to });
        }
        if let Some(preset) = preset.filter(|_| other || begins) {
            self.choose_vendor_session(preset);
            self.fill_first(preset)?;
        }
        Ok(())
    }

    /// Where its variables put the conversations of its agent: the store, and what else moves them.
    fn moved_to(&self, preset: &Preset) -> (Option<PathBuf>, Vec<Option<String>>) {
        let names = preset.store.iter().flat_map(|store| &store.moved_by);
        let values = names.map(|name| self.env.get(name).map(str::to_owned));
        (self.store_of(preset), values.collect())
    }

    /// Takes from another preset what a new session takes from it.
    fn become_one_of(&mut self, agent: String, preset: Option<&Preset>) {
        self.dir_lock |= agent != COMMAND;
        self.agent = agent;
        self.command = Vec::new();
        self.interactive = Vec::new();
        self.store = None;
        self.take_from(preset);
    }

    /// Stands for the locks and the command of its runs.
    pub(crate) fn setup(&self) -> ShimSetup {
        let Definition {
            agent,
            command,
            dir,
            dir_lock,
            env,
            vendor_session,
            conversation,
            store,
            protocol,
            pty,
            // These say how a run is treated, or take effect without a new shim.
            mode: _,
            memory: _,
            idle: _,
            stop_grace: _,
            budget: _,
            turn_time: _,
            input: _,
            turns: _,
            contended_if: _,
            exec: _,
            thread: _,
            interactive: _,
            interactive_when_named: _,
            attach: _,
            parent: _,
            parent_id: _,
            tags: _,
            vendor_chosen: _,
            umask: _,
            worktree: _,
        } = self;
        let mut digest = Digest::default();
        // The words of a preset depend on what the vendor has stored so far.
        let own = if agent == COMMAND { &command[..] } else { &[] };
        for word in [agent.as_str(), &dir.to_string_lossy()].into_iter().chain(own.iter().map(String::as_str))
        {
            digest.add(word.as_bytes());
        }
        for word in [vendor_session.as_deref(), store.as_deref(), env.get("HOME")] {
            digest.add(word.unwrap_or_default().as_bytes());
        }
        digest.add(&conversation.to_le_bytes());
        digest.add(&[u8::from(*dir_lock), u8::from(*pty), u8::from(*protocol == Protocol::Line)]);
        digest.finish()
    }
}

/// Refuses what the agent that a session keeps cannot have.
fn still_fits(request: &NewSession, agent: &str, preset: Option<&Preset>) -> Result<(), BadDefinition> {
    let named = request.command.as_ref().is_some_and(|command| !command.is_empty());
    let agent = agent.to_owned();
    match preset {
        Some(preset) if named && preset.command.is_some() => Err(BadDefinition::CommandTwice { agent }),
        Some(Preset { protocol, .. }) if *protocol != Protocol::Line && request.pty == Some(true) => {
            Err(BadDefinition::ProtocolOnTerminal { agent })
        }
        Some(_) | None => Ok(()),
    }
}

/// FNV-1a: stored, so it must be the same in every version.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds one part, with its length.
    fn add(&mut self, part: &[u8]) {
        for byte in (part.len() as u64).to_le_bytes().iter().chain(part) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(self) -> ShimSetup {
        ShimSetup(self.0)
    }
}

#[cfg(test)]
mod tests;

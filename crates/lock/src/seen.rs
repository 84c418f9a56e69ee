//! A lock as it is seen from outside, for people.

use crate::files::fence::Fence;
use crate::files::record::Run;
use crate::judge::holder::Holder;
use crate::judge::identity::Identity;
use crate::process::ProcessSeen;
use crate::resource::Kind;
use crate::time;
use pinfold_kernel::clock;
use std::time::Duration;

/// A lock that is held now, as far as it can be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct LockSeen {
    /// The resource; the name of the lock file when the record is damaged.
    pub resource: String,
    /// Its kind.
    pub kind: Kind,
    /// The fence of the grant.
    pub fence: Option<Fence>,
    /// Since when, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// What it is held for.
    pub reason: Option<String>,
    /// The session it is held for.
    pub session: Option<String>,
    /// The run it is held for.
    pub run: Option<Run>,
    /// Who holds it.
    pub holder: HolderSeen,
    /// Processes that have it beside, or instead of, the one the record names.
    pub others: Vec<ProcessSeen>,
    /// Its file was removed while it was held.
    pub removed: bool,
}

/// The holder of a lock: what the record says, or the process found when the record names a dead one.
#[derive(Debug, Clone, PartialEq)]
pub struct HolderSeen {
    /// Which process.
    pub identity: Option<Identity>,
    /// On which machine.
    pub host: String,
    /// What it runs.
    pub command: String,
    /// Whether it lives.
    pub verdict: Holder,
}

impl LockSeen {
    /// Who, since when: `pid 4711 (make, since 14:02:10 UTC, 3 min)`; what is not known is left out.
    #[must_use]
    pub fn holder_text(&self) -> String {
        let who = match self.holder.identity {
            Some(identity) => format!("pid {}", identity.pid),
            None => "a process that left no name".to_owned(),
        };
        let mut facts = Vec::new();
        if !self.holder.command.is_empty() {
            facts.push(shorten(&self.holder.command));
        }
        if let Some(session) = &self.session {
            facts.push(format!("session {session}"));
        }
        if let Some(since) = self.since_ms {
            facts.push(format!("since {} UTC", time::of_day(since)));
            facts.push(time::age(Duration::from_millis(clock::wall_ms().saturating_sub(since))));
        }
        if facts.is_empty() { who } else { format!("{who} ({})", facts.join(", ")) }
    }
}

/// A command line in a line of text is for recognising, not for reading: one line, no control characters.
#[must_use]
pub fn shorten(command: &str) -> String {
    const MOST: usize = 60;
    let mut plain = command.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = plain.by_ref().take(MOST).collect();
    if plain.next().is_some() {
        short.push('…');
    }
    short
}

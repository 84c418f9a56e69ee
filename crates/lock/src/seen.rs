//! A lock as seen from outside, for people.

use crate::files::fence::Fence;
use crate::files::record::RunName;
use crate::judge::holder::HolderVerdict;
use crate::judge::identity::Identity;
use crate::process::ProcessSeen;
use crate::resource::ResourceKind;
use crate::time;
use pinfold_kernel::clock;
use std::time::Duration;

/// A lock that is held now, as far as it can be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct LockSeen {
    /// The resource; the name of the lock file if the record is damaged.
    pub resource: String,
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The fence of the grant.
    pub fence: Option<Fence>,
    /// When it was granted, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// What it is held for.
    pub reason: Option<String>,
    /// The session it is held for.
    pub session: Option<String>,
    /// The run it is held for.
    pub run: Option<RunName>,
    /// The process that holds it.
    pub holder: LockHolder,
    /// Processes that have it in addition to, or instead of, the one named in the record.
    pub others: Vec<ProcessSeen>,
    /// Whether its file was removed while it was held.
    pub removed: bool,
}

/// The holder of a lock: what the record says, or the process found if the record names a dead one.
#[derive(Debug, Clone, PartialEq)]
pub struct LockHolder {
    /// The process, if it is known.
    pub identity: Option<Identity>,
    /// The name of its machine.
    pub host: String,
    /// Its command line.
    pub command: String,
    /// Whether it is alive.
    pub verdict: HolderVerdict,
}

impl LockSeen {
    /// Describes the holder: `pid 4711 (make, since 14:02:10 UTC, 3 min)`; what is not known is left out.
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

/// Shortens a command line to one line without control characters: in a sentence it only has to be recognised.
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

//! `down`: stops the agents, then the daemon.

use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::output::{Failure, Kind, say, talk};
use crate::send_away::{DaemonDeparture, send_away};
use crate::{home, inside};
use clap::Args;
use pinfold_api::request;
use pinfold_lock::LockSeen;
use serde_json::{Value, json};

/// What becomes of the agents.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Down {
    /// Leave the agents running under their shims
    #[arg(long)]
    keep: bool,
}

impl StandaloneVerb for Down {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        let home = home::home(global)?;
        inside::refuse(&home, "down")?;
        let (was_up, running) = match send_away(&home, request::Down { keep: self.keep, replace: false })? {
            DaemonDeparture::Now(lived) => (Some(lived), Vec::new()),
            DaemonDeparture::Before => (None, running_on(global)?),
        };
        if !global.json && !global.quiet {
            talk(&was_up.map_or_else(|| "the daemon was down already".to_owned(), |lived| self.told(lived)));
        }
        let object = json!({ "was_up": was_up.is_some(), "running": running });
        if !running.is_empty() && !self.keep {
            let hint = "`pinfold up`, then `pinfold down`, stops them";
            return Err(Failure::new(Kind::Failed, left_running(&running)).hint(hint).with(object));
        }
        if global.json {
            say(&object);
        }
        Ok(())
    }
}

impl Down {
    /// What happened to the agents that were alive.
    fn told(self, lived: u64) -> String {
        let agents = if lived == 1 { "1 agent".to_owned() } else { format!("{lived} agents") };
        match (lived, self.keep) {
            (0, _) => "the daemon is down".to_owned(),
            (1, true) => format!("the daemon is down; {agents} runs on, and `pinfold up` finds it again"),
            (_, true) => format!("the daemon is down; {agents} run on, and `pinfold up` finds them again"),
            (_, false) => {
                format!("the daemon is down, with {agents}; `pinfold up` starts those of mode `always` again")
            }
        }
    }
}

/// The daemon's sessions that are alive without it, by their locks. `pinfold run` and `lock` do not count.
fn running_on(global: &Global) -> Result<Vec<Value>, Failure> {
    let Some(folder) = home::session_locks(global)? else { return Ok(Vec::new()) };
    let locks = folder.locks().map_err(|errno| Failure::from_error(Kind::Failed, &errno))?;
    let object = |lock: &LockSeen| {
        let name = lock.resource.strip_prefix("session:")?;
        Some(json!({ "name": name, "pid": lock.holder.identity.map(|identity| identity.pid) }))
    };
    let of_daemon = |lock: &&LockSeen| lock.reason.as_deref() == Some(pinfold_daemon::BY_DAEMON);
    Ok(locks.iter().filter(of_daemon).filter_map(object).collect())
}

fn left_running(running: &[Value]) -> String {
    /// A longer list of names would not be read.
    const SHOWN: usize = 5;
    let named = |one: &Value| match one["pid"].as_u64() {
        Some(pid) => format!("{} (pid {pid})", one["name"].as_str().unwrap_or_default()),
        None => one["name"].as_str().unwrap_or_default().to_owned(),
    };
    let mut names: Vec<String> = running.iter().take(SHOWN).map(named).collect();
    if running.len() > SHOWN {
        names.push("...".to_owned());
    }
    let (count, names) = (running.len(), names.join(", "));
    let subject = if count == 1 { "1 agent runs on".to_owned() } else { format!("{count} agents run on") };
    format!("{subject} without a daemon: {names}")
}

//! `stop`: stops sessions and everything they started.

use crate::daemon::{self, Daemon};
use crate::doing::DaemonVerb;
use crate::output::{Failure, ProgressLine};
use crate::several;
use clap::Args;
use pinfold_api::{Client, endpoint, query, request, units};
use std::time::Duration;

/// Which sessions.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// One or more session names
    #[arg(required = true)]
    sessions: Vec<String>,
    /// Time between the stop signal and SIGKILL [default: its --stop-grace]
    #[arg(long, value_name = "DUR")]
    timeout: Option<String>,
}

impl DaemonVerb for Stop {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let stop = request::Stop { timeout: self.timeout.clone() };
        let _progress = self.progress(daemon);
        several::each_session(&self.sessions, daemon, |client, session| {
            client.ask(&endpoint::Stop::call(session, &stop))
        })
    }
}

/// The default `stop_grace`, for sessions that do not say.
const USUAL_GRACE: Duration = Duration::from_secs(10);

impl Stop {
    /// Shows which sessions have not ended yet, and when SIGKILL comes.
    fn progress(&self, daemon: &Daemon) -> ProgressLine {
        let asked = self.timeout.as_deref().and_then(|timeout| units::duration(timeout).ok());
        let (sessions, global) = (self.sessions.clone(), daemon.global.clone());
        ProgressLine::begin(&daemon.global, move |passed| {
            let client = daemon::running(&global).ok()?;
            let (live, grace) = still_there(&client, &sessions)?;
            let left = asked.unwrap_or(grace).saturating_sub(passed);
            let end = if left.is_zero() {
                "SIGKILL was sent".to_owned()
            } else {
                format!("SIGKILL in {} s", left.as_secs() + 1)
            };
            Some(format!("stopping {} ({end})", live.join(", ")))
        })
    }
}

/// The sessions that are still stopping, and the longest grace among them.
fn still_there(client: &Client, sessions: &[String]) -> Option<(Vec<String>, Duration)> {
    let which = query::Sessions { state: Some("stopping".into()), known: true, ..query::Sessions::default() };
    let all = client.ask(&endpoint::Sessions::call(&which)).ok()?;
    let ours = all.iter().filter(|session| {
        sessions
            .iter()
            .any(|named| *named == session.name || session.id.starts_with(&named.to_ascii_uppercase()))
    });
    let (names, graces): (Vec<String>, Vec<Duration>) = ours
        .map(|session| {
            let grace = session.policy["stop_grace"].as_u64().map_or(USUAL_GRACE, Duration::from_millis);
            (session.name.clone(), grace)
        })
        .unzip();
    let grace = graces.into_iter().max()?;
    Some((names, grace))
}

//! The result of a run in the foreground, as an exit code or an error, and what is printed on the way.

use crate::clock::NowSource;
use crate::engine::{SessionRef, SessionSnapshot};
use crate::show;
use pinfold_api::object::Session;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::exit::Exit;
use pinfold_core::life::{FailCause, Life};
use pinfold_core::quoted::quoted;
use pinfold_core::why::PersonAsked;
use pinfold_core::{Action, Change, Decision, Record, Why, words};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is known of ends so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunEnds {
    last: Option<Exit>,
}

/// The state of the session when it is over.
pub(super) struct FinalState {
    session: Session,
    life: Life,
    pub(super) now: SessionSnapshot,
}

impl FinalState {
    pub(super) fn at(known: SessionRef<'_>) -> FinalState {
        let (life, now) = (known.core().life().clone(), known.snapshot());
        FinalState { session: show::session::session(&known.copy(), NowSource::new().now()), life, now }
    }
}

/// The exit code of the whole run; a signal counts as 128 plus its number, as in a shell.
pub(super) fn of(look: Option<FinalState>, ends: RunEnds, asked: Option<i32>) -> Result<u8, ErrorBody> {
    let failed = |message: String| Err(ErrorBody::new(ErrorKind::Failed, message));
    let Some(FinalState { session, life, .. }) = look else { return failed("the session is gone".into()) };
    match life {
        Life::Blocked { .. } => Err(busy(&session)),
        Life::Failed { cause: FailCause::CrashHardLimit { crashes } } => {
            let times = if crashes == 1 { "once".into() } else { format!("{crashes} times in a streak") };
            failed(format!("session `{}` reached its crash limit: it crashed {times}", session.name))
        }
        Life::Failed { cause: FailCause::CannotStart(cause) } => {
            Err(ErrorBody::new(ErrorKind::BadConfig, cause.to_string()))
        }
        Life::Failed {
            cause: FailCause::Ended(_) | FailCause::Interrupted | FailCause::ConversationLost,
        }
        | Life::Stopped
        | Life::Idle { .. }
        | Life::Starting { .. }
        | Life::Running { .. }
        | Life::Held { .. }
        | Life::Stopping { .. }
        | Life::Backoff { .. }
        | Life::Archived { .. } => match (ends.last, asked) {
            (Some(Exit::Code(code)), _) => Ok(code_of(code)),
            (Some(Exit::Signal(signal)), _) | (None | Some(Exit::NeverStarted), Some(signal)) => {
                Ok(code_of(128 + signal))
            }
            (Some(Exit::ShimLost | Exit::MachineLost | Exit::AfterBackup | Exit::NeverStarted), _) => {
                let how = ends.last.map(|exit| exit.to_string()).unwrap_or_default();
                failed(format!("the last run of session `{}` {how}", session.name))
            }
            (None, None) => failed(format!("session `{}` never ran: {}", session.name, session.why)),
        },
    }
}

fn code_of(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(1)
}

fn busy(session: &Session) -> ErrorBody {
    let why = session.why.strip_prefix("blocked: ").unwrap_or(&session.why);
    let mut body = ErrorBody::new(ErrorKind::Busy, why.to_owned());
    body.holder.clone_from(&session.holder);
    let held = session.holder.as_ref().and_then(|holder| holder["resource"].as_str());
    body.hint(format!(
        "nothing was started; `pinfold unlock {} --kill` ends its holder",
        held.map_or("RESOURCE".into(), quoted)
    ))
}

/// Notes how runs end, and prints what a person at the terminal wants to know.
pub(super) fn witness(
    ends: Arc<Mutex<RunEnds>>,
    name: String,
    mut say: Box<dyn FnMut(&str)>,
) -> impl FnMut(&Decision) {
    move |decision| {
        let exit_in = |change: &Change| {
            if let Change::Record(Record::RunExited(exited)) = change { Some(exited.exit) } else { None }
        };
        let exited = decision.changes.iter().find_map(exit_in);
        let Ok(mut ends) = ends.lock() else { return };
        ends.last = exited.or(ends.last);
        if let Some(sentence) = sentence(decision, *ends) {
            say(&format!("{name}: {sentence}"));
        }
    }
}

/// The line to print, if any: for everything except what was asked for and what the exit code tells.
fn sentence(decision: &Decision, ends: RunEnds) -> Option<String> {
    let why = &decision.why;
    if *why == Why::Person(PersonAsked::Stopped) {
        let grace_in =
            |action: &Action| if let Action::Stop { grace, .. } = action { Some(*grace) } else { None };
        return decision.actions.iter().find_map(grace_in).map(|grace| match grace {
            Duration::ZERO => "ending it at once".into(),
            grace => format!("stopping it within {}; once more ends it at once", words::duration(grace)),
        });
    }
    // Before the first run a busy lock is the end, and is reported as such.
    let again = *why == Why::LockBusy && ends.last.is_some();
    (again || is_news(why)).then(|| why.to_string())
}

fn is_news(why: &Why) -> bool {
    matches!(
        why,
        Why::RestartAtOnce { .. }
            | Why::Waiting { .. }
            | Why::StartRefused { .. }
            | Why::Blocked { .. }
            | Why::OverMemoryLimit { .. }
            | Why::WatchdogSilent
            | Why::Memory(_)
    )
}

#[cfg(test)]
mod tests;

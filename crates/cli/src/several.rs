//! Runs a verb on several sessions: all at once, each with its own report, and with the first error's exit
//! code at the end.

use crate::daemon::Daemon;
use crate::output::{Failure, say, talk};
use pinfold_api::object::Session;
use pinfold_api::{Client, ClientError};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many requests run at a time: far fewer than the connections a daemon accepts, and enough for all of
/// them to take no longer than the slowest.
const AT_ONCE: usize = 128;

/// The outcome for one session.
pub(crate) struct SessionOutcome {
    /// For people.
    pub(crate) words: String,
    /// For programs.
    pub(crate) object: Value,
}

/// Makes the same request for each session.
pub(crate) fn each(
    sessions: &[String],
    daemon: &Daemon,
    ask: impl Fn(&Client, &str) -> Result<SessionOutcome, ClientError> + Sync,
) -> Result<(), Failure> {
    let (client, global) = (daemon.client()?, &daemon.global);
    let answers = at_once(sessions, |session| {
        let answer = ask(&client, session).map_err(Failure::from);
        match &answer {
            Ok(_) if global.json || global.quiet => {}
            Ok(done) => talk(&done.words),
            Err(failure) => failure.tell(global),
        }
        answer
    });
    if global.json {
        let objects = sessions.iter().zip(&answers).map(|(session, answer)| object(session, answer));
        say(&Value::Array(objects.collect()));
    }
    let first = answers.into_iter().find_map(Result::err);
    first.map_or(Ok(()), |failure| Err(failure.once_told()))
}

/// Makes the same request for each session; the answer is its new state.
pub(crate) fn each_session(
    sessions: &[String],
    daemon: &Daemon,
    ask: impl Fn(&Client, &str) -> Result<Session, ClientError> + Sync,
) -> Result<(), Failure> {
    each(sessions, daemon, |client, session| {
        let session = ask(client, session)?;
        Ok(SessionOutcome { words: format!("{} is {}", session.name, session.why), object: json!(session) })
    })
}

/// The session object, or an error object that names the session.
fn object(session: &str, answer: &Result<SessionOutcome, Failure>) -> Value {
    match answer {
        Ok(done) => done.object.clone(),
        Err(failure) => json!({ "session": session, "error": failure.object() }),
    }
}

/// Runs `act` for all of them at once; the results are in the order of `given`.
fn at_once<T: Send>(given: &[String], act: impl Fn(&str) -> T + Sync) -> Vec<T> {
    if let [only] = given {
        return vec![act(only)];
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(given.len()));
    std::thread::scope(|scope| {
        for _ in 0..given.len().min(AT_ONCE) {
            scope.spawn(|| {
                while let Some((at, one)) = take(&next, given) {
                    let result = act(one);
                    results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

fn take<'a>(next: &AtomicUsize, given: &'a [String]) -> Option<(usize, &'a str)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    given.get(at).map(|one| (at, one.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn all_are_under_way_at_once_and_come_back_in_order() {
        let given: Vec<String> = (0..AT_ONCE).map(|number| number.to_string()).collect();
        let all_here = Barrier::new(AT_ONCE);
        let came = at_once(&given, |one| {
            all_here.wait();
            one.to_owned()
        });
        assert_eq!(came, given);
    }

    #[test]
    fn more_than_fit_are_done_one_after_another() {
        let given: Vec<String> = (0..3 * AT_ONCE + 1).map(|number| number.to_string()).collect();
        assert_eq!(at_once(&given, str::to_owned), given);
    }
}

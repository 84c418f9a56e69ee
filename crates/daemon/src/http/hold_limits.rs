//! How many holds a client may have, and how often a refused hold is recorded as an event.

use super::api_error::ApiError;
use super::server::ConnectionPeer;
use crate::caller::By;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_lock::Resource;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many holds a client may have or wait for. A client is a run with all its processes, or a process
/// outside every run.
const MOST_OF_A_CLIENT: usize = 64;
/// The limit for all clients together: each costs a thread while it waits.
const MOST: usize = 512;
/// The limit for all runs together: the rest is for people.
const MOST_OF_RUNS: usize = 384;
/// A client that asks again and again would fill the events: a refused key is recorded once in this time.
const NEWS: Duration = Duration::from_secs(10);

/// The holds of all clients.
#[derive(Clone, Default)]
pub(crate) struct Holds(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    clients: BTreeMap<HoldClient, usize>,
    /// When a refusal was last recorded, by resource.
    told: BTreeMap<String, Instant>,
}

/// Whose holds are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HoldClient {
    /// Everything below a shim, by its pid.
    Run(u32),
    Process(ConnectionPeer),
}

impl HoldClient {
    pub(super) fn of(peer: ConnectionPeer, by: Option<&By>) -> HoldClient {
        by.and_then(By::shim).map_or(HoldClient::Process(peer), HoldClient::Run)
    }
}

/// One hold of a client, counted until it is dropped.
pub(super) struct HoldPlace {
    holds: Holds,
    client: HoldClient,
}

impl Holds {
    pub(super) fn enter(&self, client: HoldClient) -> Result<HoldPlace, ApiError> {
        let mut state = self.state();
        let total: usize = state.clients.values().sum();
        let is_run = |client: &HoldClient| matches!(client, HoldClient::Run(_));
        let of_runs: usize =
            state.clients.iter().filter(|(one, _)| is_run(one)).map(|(_, count)| count).sum();
        let count = state.clients.get(&client).copied().unwrap_or(0);
        let message = if count >= MOST_OF_A_CLIENT {
            format!("this client has {count} holds already, which is the limit")
        } else if is_run(&client) && of_runs >= MOST_OF_RUNS {
            format!("sessions have {of_runs} holds already, which is the limit")
        } else if total >= MOST {
            format!("there are {total} holds already, which is the limit")
        } else {
            state.clients.insert(client, count + 1);
            return Ok(HoldPlace { holds: self.clone(), client });
        };
        let body = ErrorBody::new(ErrorKind::Busy, message);
        Err(ApiError::too_many(body.hint("close the connections of holds that are not needed any more")))
    }

    /// Whether an event should record that a resource is busy.
    pub(super) fn is_news(&self, resource: &Resource) -> bool {
        let mut state = self.state();
        state.told.retain(|_, at| at.elapsed() < NEWS);
        let known = state.told.contains_key(&resource.to_string());
        if !known {
            state.told.insert(resource.to_string(), Instant::now());
        }
        !known
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HoldPlace {
    fn drop(&mut self) {
        let mut state = self.holds.state();
        let left = state.clients.get(&self.client).map_or(0, |count| count - 1);
        match left {
            0 => _ = state.clients.remove(&self.client),
            _ => _ = state.clients.insert(self.client, left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_so_many_holds_and_others_have_theirs() {
        let holds = Holds::default();
        let peer = |pid| HoldClient::Process(ConnectionPeer { pid: Some(pid), user: 1000 });
        let mut mine: Vec<HoldPlace> =
            (0..MOST_OF_A_CLIENT).map(|_| holds.enter(peer(1)).ok().unwrap()).collect();
        assert!(holds.enter(peer(1)).is_err());
        assert!(holds.enter(peer(2)).is_ok());
        mine.pop();
        assert!(holds.enter(peer(1)).is_ok());
        let others: Vec<_> = (0..MOST).map_while(|pid| holds.enter(peer(100 + pid as u32)).ok()).collect();
        assert_eq!(others.len(), MOST - mine.len(), "and all together have so many");
        drop((mine, others));
        assert!(holds.state().clients.is_empty());
    }

    #[test]
    fn runs_leave_some_holds_to_people() {
        let holds = Holds::default();
        let runs: Vec<_> =
            (0..MOST as u32).map_while(|n| holds.enter(HoldClient::Run(n / 64)).ok()).collect();
        assert_eq!(runs.len(), MOST_OF_RUNS);
        assert!(holds.enter(HoldClient::Process(ConnectionPeer { pid: Some(1), user: 1000 })).is_ok());
    }

    #[test]
    fn a_refusal_is_news_once() {
        let holds = Holds::default();
        let key = |name: &str| Resource::Key(name.into());
        assert!(holds.is_news(&key("a")));
        assert!(!holds.is_news(&key("a")));
        assert!(holds.is_news(&key("b")));
    }
}

//! The open requests. Vendors' ids are long, or start again in every run, so each request gets an id of ours.

use crate::request::RequestId;
use crate::turn::Delivery;
use serde::{Deserialize, Serialize};

/// No more can be open: an agent that asks without end is not waiting for answers.
const MOST_OPEN: usize = 64;
/// Longest vendor id in bytes; those seen have at most 40.
const LONGEST_KEY: usize = 1 << 10;

/// The requests of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Requests {
    open: Vec<OpenRequest>,
    /// How many there have been.
    count: u64,
}

/// An unanswered request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenRequest {
    pub(crate) id: RequestId,
    /// Its id in the protocol.
    pub(crate) key: String,
    /// The turn in which it was made; `None` for the agent's own work.
    pub(crate) turn: Option<Delivery>,
}

/// Why a request cannot be kept.
pub(crate) type Why = &'static str;

impl Requests {
    /// Opens a request; one that is open already was said twice.
    pub(crate) fn open(&mut self, key: &str, turn: Option<Delivery>) -> Result<RequestId, Why> {
        if key.len() > LONGEST_KEY {
            return Err("its id is too long");
        }
        if self.has(key) {
            return Err("one of this id is open already");
        }
        if self.open.len() == MOST_OPEN {
            return Err("too many are open");
        }
        self.count += 1;
        let id = RequestId(self.count);
        self.open.push(OpenRequest { id, key: key.to_owned(), turn });
        Ok(id)
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&OpenRequest> {
        self.open.iter().find(|open| open.id == id)
    }

    /// Returns whether a request with this id is open.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.open.iter().any(|open| open.key == key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Removes a request that was answered.
    pub(crate) fn answered(&mut self, id: RequestId) {
        self.open.retain(|open| open.id != id);
    }

    /// Removes a request that the agent took back.
    pub(crate) fn taken_back(&mut self, key: &str) -> Option<RequestId> {
        let at = self.open.iter().position(|open| open.key == key)?;
        Some(self.open.remove(at).id)
    }

    /// Removes the requests of a turn that ended: the agent no longer waits for them.
    pub(crate) fn ended(&mut self, turn: Option<Delivery>) -> Vec<RequestId> {
        let of_turn = |open: &OpenRequest| open.turn == turn;
        let ended = self.open.iter().filter(|open| of_turn(open)).map(|open| open.id).collect();
        self.open.retain(|open| !of_turn(open));
        ended
    }

    /// Removes all requests, because the run ended.
    pub(crate) fn all_ended(&mut self) -> Vec<RequestId> {
        self.open.drain(..).map(|open| open.id).collect()
    }
}

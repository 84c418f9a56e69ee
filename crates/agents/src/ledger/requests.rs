//! The requests that are open. Ids of vendors are long, or start again in every run: each gets one of ours.

use crate::request::RequestId;
use crate::turn::Delivery;
use serde::{Deserialize, Serialize};

/// More cannot be open: an agent that asks without end is not waiting for an answer.
const MOST_OPEN: usize = 64;
/// So long may an id of a vendor be; those seen have at most 40 bytes.
const LONGEST_KEY: usize = 1 << 10;

/// The requests of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Requests {
    open: Vec<OpenRequest>,
    /// How many there were.
    count: u64,
}

/// A request that nobody has answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenRequest {
    pub(crate) id: RequestId,
    /// Its id in the protocol.
    pub(crate) key: String,
    /// The turn in which it was made; none if that is the agent's own.
    pub(crate) turn: Option<Delivery>,
}

/// Why a request cannot be kept.
pub(crate) type Why = &'static str;

impl Requests {
    /// Opens one; what is open already is the same one, said twice.
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

    /// Whether one of this id is open.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.open.iter().any(|open| open.key == key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// It was answered.
    pub(crate) fn answered(&mut self, id: RequestId) {
        self.open.retain(|open| open.id != id);
    }

    /// The agent took it back.
    pub(crate) fn taken_back(&mut self, key: &str) -> Option<RequestId> {
        let at = self.open.iter().position(|open| open.key == key)?;
        Some(self.open.remove(at).id)
    }

    /// A turn ended, and nobody waits for the answers to what it asked.
    pub(crate) fn ended(&mut self, turn: Option<Delivery>) -> Vec<RequestId> {
        let of_turn = |open: &OpenRequest| open.turn == turn;
        let ended = self.open.iter().filter(|open| of_turn(open)).map(|open| open.id).collect();
        self.open.retain(|open| !of_turn(open));
        ended
    }

    /// The run ended.
    pub(crate) fn all_ended(&mut self) -> Vec<RequestId> {
        self.open.drain(..).map(|open| open.id).collect()
    }
}

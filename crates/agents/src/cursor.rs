//! A fold's knowledge as it is stored: JSON of at most 2 MiB, which every later version can read.
//!
//! `version`, `run` and `to` stay where they are forever. Fields may be added; a change of a field's meaning
//! needs a new version number. A cursor that cannot be read becomes a fold that knows nothing and concludes
//! nothing.

use crate::ledger::RunLedger;
use crate::lines::LineProgress;
use crate::mind::Mind;
use crate::setup::Setup;
use crate::state::{TranslatorState, UnknownState};
use pinfold_core::RunNumber;
use serde::{Deserialize, Serialize};

/// Largest cursor in bytes.
pub const LONGEST_CURSOR: usize = 2 << 20;
/// The version that is written, and the only one so far.
const VERSION: u32 = 1;

/// A fold's position on the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct FoldPosition {
    pub(crate) run: RunNumber,
    /// How far the tape was folded.
    pub(crate) to: u64,
}

/// The fields that every version has.
#[derive(Deserialize)]
struct Head {
    version: u32,
    #[serde(flatten)]
    place: FoldPosition,
}

/// All that a fold knows.
#[derive(Debug, Deserialize)]
pub(crate) struct Cursor {
    #[serde(flatten)]
    pub(crate) place: FoldPosition,
    pub(crate) out: LineProgress,
    pub(crate) err: LineProgress,
    pub(crate) setup: Setup,
    pub(crate) ledger: RunLedger,
    pub(crate) state: TranslatorState,
}

/// A cursor that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// Its position, if at least that can be read.
    pub(crate) place: Option<FoldPosition>,
    pub(crate) why: String,
}

/// A cursor as it is written.
#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    #[serde(flatten)]
    place: FoldPosition,
    out: LineProgress,
    err: LineProgress,
    setup: &'a Setup,
    ledger: &'a RunLedger,
    state: &'a TranslatorState,
}

/// Reads a cursor.
pub(crate) fn read(text: &str) -> Result<Cursor, Unreadable> {
    let unreadable = |place, why: String| Err(Unreadable { place, why });
    let head: Head = match serde_json::from_str(text) {
        Ok(head) => head,
        Err(error) => return unreadable(None, format!("its cursor cannot be read: {error}")),
    };
    if head.version != VERSION {
        return unreadable(Some(head.place), format!("its cursor is of version {}", head.version));
    }
    let cursor = serde_json::from_str(text);
    cursor.or_else(|error| unreadable(Some(head.place), format!("its cursor cannot be read: {error}")))
}

/// Writes a cursor. If it does not fit, which no agent should bring about, the knowledge is dropped, and the
/// fold that reads it concludes nothing.
pub(crate) fn write(place: FoldPosition, out: LineProgress, err: LineProgress, mind: &Mind) -> String {
    let Mind { setup, ledger, state } = mind;
    let text = to_text(&Written { version: VERSION, place, out, err, setup, ledger, state });
    if text.len() <= LONGEST_CURSOR {
        return text;
    }
    let (setup, ledger) = (Setup { protocol: setup.protocol, ..Setup::default() }, ledger.bare());
    let state = TranslatorState::Unknown(UnknownState {});
    let (setup, ledger, state) = (&setup, &ledger, &state);
    to_text(&Written { version: VERSION, place, out, err, setup, ledger, state })
}

fn to_text(cursor: &Written<'_>) -> String {
    // Only maps whose keys are not text could fail, and there are none.
    serde_json::to_string(cursor).unwrap_or_default()
}

//! The results of a search.

use crate::word::TextKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the fields are the contract's")]
pub struct Hit {
    /// Its name; nothing where it belongs to none.
    pub session: Option<String>,
    /// What kind of text it was found in.
    pub kind: TextKind,
    /// The id of the session or message, or the number of the event.
    pub id: String,
    pub at: String,
    /// What stands around it, on one line.
    pub excerpt: String,
}

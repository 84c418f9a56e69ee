//! JSON-RPC in lines: what Codex's app server and the agent client protocol share.
//!
//! Both sides may ask. A request of ours has the number of its word in this run as its id, so that it is fresh for each delivery and
//! follows from the tape alone; [`Calls`] has what each that is not answered was for. A request of the agent's has an id of any kind;
//! its text, as JSON, is the key under which the ledger knows it ([`Id::key`]). What nobody offers is refused ([`Refusals`]), as
//! steps of the handshake that come after all others: an agent would wait for ever.
//!
//! The states are parts of cursors: every version reads them.

mod calls;
mod id;
mod line;
mod refusals;
mod says;

pub(crate) use calls::Calls;
pub(crate) use id::Id;
pub(crate) use line::{Line, RpcError, line, params, result};
pub(crate) use refusals::Refusals;
pub(crate) use says::Framing;

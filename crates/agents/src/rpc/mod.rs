//! JSON-RPC in lines, shared by Codex's app server and the agent client protocol.
//!
//! Both sides may ask. The id of our request is the number of its word in this run, so it is new for each
//! delivery and follows from the tape alone; [`Calls`] knows what each unanswered one is for. The agent's
//! request has an id of any kind; its JSON text is the key under which the ledger knows it ([`Id::key`]).
//! Requests for things that pinfold does not offer are refused ([`Refusals`]), because the agent would wait
//! forever; each refusal is a handshake step, numbered after all others.
//!
//! The states are parts of cursors, so every version must read them.

mod calls;
mod id;
mod line;
mod refusals;
mod says;

pub(crate) use calls::Calls;
pub(crate) use id::Id;
pub(crate) use line::{RpcError, RpcLine, line, params, result};
pub(crate) use refusals::Refusals;
pub(crate) use says::Framing;

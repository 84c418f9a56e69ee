//! The definition of a session: the options of `new`, `set` and `run`, and the request made of them.

mod bare_prompt;
mod ceiling;
mod create;
mod env;
mod missed;
mod names;
mod options;
mod shared_server;
mod taken;

pub(crate) use bare_prompt::warn_of_bare_prompt;
pub(crate) use ceiling::warn_of_ceiling;
pub(crate) use create::create;
pub(crate) use missed::say_missed;
pub(crate) use options::{DefinitionOptions, from_here, request};
pub(crate) use shared_server::warn_of_shared_server;
pub(crate) use taken::take_from_here;

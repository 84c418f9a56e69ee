//! What a session is: the options of `new`, `set` and `run`, and the request that they make.

mod ceiling;
mod env;
mod missed;
mod names;
mod options;
mod taken;

pub(crate) use ceiling::warn_of_ceiling;
pub(crate) use missed::say_missed;
pub(crate) use names::made;
pub(crate) use options::{Definition, request};
pub(crate) use taken::take_from_here;

//! The addresses of the API, as types.
//!
//! Each endpoint is one line of `table`: its method, its address, its query and body, and its answer.
//! [`Client::ask`](crate::Client::ask) takes a [`Call`] of one; the daemon matches [`Address`] and serves every one.

mod call;
mod description;
mod form;
mod kind;
mod schema;
mod status;
mod table;

pub use call::Call;
pub use description::{EndpointDescription, Method};
pub use form::{AnswerForm, EndpointAnswer, EventsAnswer, LinesAnswer, ListAnswer, TextAnswer, WholeAnswer};
pub use kind::Endpoint;
pub use schema::{Describe, schema_of};
pub use status::{ErrorStatus, STATUSES};
pub use table::*;

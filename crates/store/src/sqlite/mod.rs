//! The back-end that lasts: one SQLite file, one thread that writes it, and any number of readers.
//!
//! A batch goes from `journal` (its queue) to `writer` (one transaction and one fsync for all that wait),
//! which has `apply` turn steps into `statements`; `sums` makes the checksums within them, `witness` notes
//! how far it is. `footing`, `reserve`, `wal_space` and `checkpoints` look after the files. Rows come back
//! through `reader`, `parse` and `query`.

mod answers;
mod apply;
pub(crate) mod backup;
mod check;
mod checkpoints;
mod errors;
mod files;
mod footing;
mod journal;
mod old;
mod open;
mod parse;
mod parts;
mod query;
mod reader;
mod reserve;
mod schema;
mod statements;
mod sums;
mod usage;
mod wal_space;
mod witness;
mod writer;

pub(crate) use journal::SqliteJournal;
pub(crate) use reader::SqliteReader;
pub(crate) use schema::VERSION as SCHEMA_VERSION;

//! What the program prints, and how: lines, tables, JSON, failures.

mod edge;
mod failure;
mod full_disk;
mod moment;
mod table;

pub(crate) use edge::{Json, Words, output, print, say, talk};
pub(crate) use failure::{Failure, Kind, report};
pub(crate) use moment::moment;
pub(crate) use table::{Cell, Paper, Shade, plain, preview};

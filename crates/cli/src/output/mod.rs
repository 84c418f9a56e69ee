//! What the program prints, and how: lines, tables, JSON, failures.

mod brief;
mod columns;
mod edge;
mod failure;
mod full_disk;
mod moment;
mod progress;
mod table;
mod wrap;

pub(crate) use brief::{below_home, names_home, without_dir, without_state};
pub(crate) use columns::{Worth, fit};
pub(crate) use edge::{Json, Words, output, print, say, talk};
pub(crate) use failure::{Failure, Kind, report};
pub(crate) use moment::{ago, moment, short, zoned};
pub(crate) use progress::Progress;
pub(crate) use table::{Cell, Paper, Shade, columns, cut, cut_front, plain, preview};
pub(crate) use wrap::wrapped;

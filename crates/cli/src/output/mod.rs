//! What the program prints, and how: lines, tables, JSON, failures.

mod brief;
mod columns;
mod edge;
mod failure;
mod full_disk;
mod moment;
mod progress;
mod reader;
mod table;
mod wrap;

pub(crate) use brief::{below_home, names_home, without_dir, without_state};
pub(crate) use columns::{Worth, fit};
pub(crate) use edge::{Json, OutputStyle, has_lost, lost, output, print, say, talk};
pub(crate) use failure::{Failure, Kind, report};
pub(crate) use moment::{ago, moment, short, zoned};
pub(crate) use progress::ProgressLine;
pub(crate) use reader::exit_with_the_reader;
pub(crate) use table::{Paper, Shade, TableCell, columns, cut, cut_front, plain, preview};
pub(crate) use wrap::wrapped;

//! Draws what a program shows on a terminal: it runs on a real one ([`Sitting`]), the mirror that `attach`
//! uses reads its screen, which becomes an SVG ([`svg()`]) without external fonts or hosts. [`scenes`] are
//! the pictures of the documentation.
//!
//! Two runs differ in pids, times and sizes. So a stored picture is not compared byte for byte: [`differs`]
//! compares the words.

mod compare;
pub mod scenes;
mod sitting;
mod svg;

pub use compare::differs;
pub use sitting::{Sitting, Unseen};
pub use svg::svg;

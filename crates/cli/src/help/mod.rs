//! Help, man pages and completions, all generated from the one definition of the command line.

mod completions;
mod examples;
mod groups;
mod man;
mod page;
mod shells;

pub(crate) use completions::{Completion, NameLookup, completions};
pub(crate) use groups::all_verbs;
pub(crate) use man::{all_pages, man_page};
pub(crate) use page::{Length, help_page};
pub(crate) use shells::{SHELLS, script};

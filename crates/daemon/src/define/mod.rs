//! What a session is meant to be: its definition, the configuration and presets it builds on, and the paths
//! of a home.

pub(crate) mod account;
mod attaching;
pub(crate) mod bad_definition;
pub(crate) mod before_start;
mod bounds;
pub mod config;
pub mod declared;
pub(crate) mod definition;
pub(crate) mod holder_clue;
pub(crate) mod home;
pub(crate) mod id_files;
pub(crate) mod kept;
pub(crate) mod others;
pub mod preset;
mod program_file;
pub(crate) mod setting;
pub(crate) mod transcript;
pub(crate) mod transcript_lines;
pub mod values;
pub(crate) mod variables;
pub(crate) mod vendor_daemon;
mod worktree;

//! What a session is told to be: its definition, the configuration and presets behind it, and where a home has its files.

pub(crate) mod bad_definition;
pub mod config;
pub mod declared;
pub(crate) mod definition;
pub(crate) mod home;
pub mod preset;
pub(crate) mod transcript;
pub mod values;
pub(crate) mod variables;

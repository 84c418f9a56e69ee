//! The terminal UI: a list of sessions to work from all day.
//!
//! Pure in the middle: `model` is what is known and shown, `update` decides what an input means and what to
//! do, `view` makes a frame from the model. Around it a thin `shell` waits for keys, the feed and answers,
//! performs effects and paints what has changed. `keymap` is the one table of what each key does.

mod editor;
mod effect;
#[cfg(test)]
mod fixture;
mod form;
mod key;
mod keymap;
mod layout;
mod model;
mod need;
mod order;
mod paint;
mod palette;
mod sessions;
mod shell;
mod typed;
mod update;
mod view;

pub(crate) use shell::{frame, open};

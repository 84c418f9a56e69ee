//! The terminal UI: a list of sessions that one can live in.
//!
//! Pure in the middle: `model` is what is known and shown, `update` says what an input means and what is to be done,
//! `view` makes a frame of the model. Around it a thin `shell` waits for keys, the feed and answers, performs effects and
//! paints what differs. What each key does is one table, in `keymap`.

mod editor;
mod effect;
#[cfg(test)]
mod fixture;
mod form;
mod key;
mod keymap;
mod known;
mod layout;
mod model;
mod need;
mod order;
mod paint;
mod palette;
mod shell;
mod typed;
mod update;
mod view;

pub(crate) use shell::{frame, open};

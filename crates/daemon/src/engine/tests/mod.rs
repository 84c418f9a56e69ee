//! Tests of the loop: what is durable before what, what is visible from outside, and what it does with each
//! input (`hand` is a loop whose ports the test controls).

mod accounts;
mod activity;
mod archive;
mod attach;
mod declare;
mod durable;
mod ends;
mod files;
mod fold;
mod given;
mod guests;
pub(crate) mod hand;
mod health;
mod inbox;
mod logged;
mod names;
mod outside;
mod reading;
mod recognition;
mod recovery;
mod starts;
mod taped;
mod torn;

//! Tests of the loop: what is durable before what, and what is seen of it from outside.

mod durable;
mod files;
mod outside;

//! What holds for every translator, whatever an agent prints: a resumed fold goes on as if it had never
//! stopped, how output is cut into entries changes nothing, nothing panics, and what is stored stays small.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod acp;
mod codex;
mod cursors;
mod dice;
mod exec;
mod foreign;
mod kit;
mod line;
mod long;
mod pi;
mod random;
mod recordings;
mod replay;
mod scripted;
mod stream_json;

//! Tests with real agents, against a model that plays what a prompt says. `./test agents` runs these, and installs the agents
//! at the versions of `crates/agents/presets`; every other test does without.

mod background;
mod beside;
mod claude;
mod codex;
mod collector;
mod deaths;
mod errors;
mod failures;
mod gate;
mod gemini;
mod interrupts;
mod kills;
mod many;
mod model;
mod openai;
mod parking;
mod responses;
mod script;
mod stage;
mod stops;
mod takeover;
mod telemetry;
mod tutorial;
mod usage;
mod writers;

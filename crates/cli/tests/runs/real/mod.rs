//! Tests with real agents, against a model that does what the prompt says. `./test agents` runs these, and
//! installs the agents at the versions of `crates/agents/presets`; all other tests do without them.

mod background;
mod beside;
mod claude;
mod codex;
mod collector;
mod conversations;
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
mod texts;
mod tutorial;
mod usage;
mod writers;

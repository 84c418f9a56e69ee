//! Tests with real agents, against a model that plays what a prompt says. `./test agents` runs these, and installs the agents
//! at the versions of `crates/agents/presets`; every other test does without.

mod claude;
mod gemini;
mod many;
mod model;
mod openai;
mod script;
mod stage;
mod takeover;

//! The variables of a run.

use crate::define::definition::Definition;
use crate::define::preset::Preset;
use std::ffi::OsString;
use std::time::Duration;

/// What they are made of.
pub(super) struct Given<'a> {
    pub(super) definition: &'a Definition,
    /// What its agent's name stands for.
    pub(super) preset: Option<&'a Preset>,
    /// Where things live.
    pub(super) places: &'a [OsString],
    pub(super) watchdog: Duration,
    pub(super) terminal: bool,
}

/// The variables of a run; a watchdog is told in microseconds, as with systemd. A terminal has a name.
///
/// Where things live is told too, and what the preset sets, unless the session was made with another word on it. What the
/// preset strips is told in no case.
pub(super) fn of(given: &Given<'_>) -> Vec<OsString> {
    let mut own = given.definition.env.all();
    if let Some(preset) = given.preset {
        for (name, value) in &preset.set {
            own.entry(name).or_insert(value);
        }
        own.retain(|name, _| !preset.strips(name));
    }
    let mut all: Vec<OsString> = own.iter().map(|(key, value)| format!("{key}={value}").into()).collect();
    let named = |place: &&OsString| {
        let name = place.as_encoded_bytes().split(|byte| *byte == b'=').next();
        name.is_some_and(|name| own.keys().any(|key| key.as_bytes() == name))
    };
    all.extend(given.places.iter().filter(|place| !named(place)).cloned());
    if given.watchdog > Duration::ZERO {
        all.push(format!("WATCHDOG_USEC={}", given.watchdog.as_micros()).into());
    }
    let named = own.get("TERM").is_some_and(|name| !name.is_empty() && *name != "dumb");
    if given.terminal && !named {
        all.retain(|tracked| !tracked.as_encoded_bytes().starts_with(b"TERM="));
        all.push(format!("TERM={USUAL_TERMINAL}").into());
    }
    all
}

/// What a session that was made without a terminal takes its own for; every emulator of today understands it.
const USUAL_TERMINAL: &str = "xterm-256color";

//! The variables of a run.

use crate::define::definition::Definition;
use crate::define::preset::Preset;
use pinfold_core::MessageId;
use pinfold_store::Ulid;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What the variables of a run are made from.
pub(super) struct EnvironmentInputs<'a> {
    pub(super) definition: &'a Definition,
    /// The preset of its agent.
    pub(super) preset: Option<&'a Preset>,
    /// Variables that say where things are, such as the socket.
    pub(super) places: &'a [OsString],
    pub(super) watchdog: Duration,
    pub(super) terminal: bool,
    /// Where hooks of its terminal program tell which vendor session it is in.
    pub(super) spool: Option<PathBuf>,
    /// The ids that link its telemetry to the run.
    pub(super) telemetry: Option<Telemetry>,
}

/// The ids that link an agent's own telemetry to its run.
pub(super) struct Telemetry {
    /// The name of its session.
    pub(super) session: String,
    /// The id of its session.
    pub(super) session_id: Ulid,
    /// The id of its run.
    pub(super) run: Ulid,
    /// The name of this machine.
    pub(super) host: String,
}

/// Returns the variables of a run. As with systemd, the watchdog is given in microseconds. With a terminal,
/// `TERM` is set.
///
/// Variables that say where things are and those of the preset are included unless the session defines its
/// own. What the preset strips is never included.
pub(super) fn of(given: &EnvironmentInputs<'_>) -> Vec<OsString> {
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
    if let Some(spool) = &given.spool {
        all.retain(|variable| !variable.as_encoded_bytes().starts_with(SPOOL.as_bytes()));
        let mut variable = OsString::from(SPOOL);
        variable.push(spool);
        all.push(variable);
    }
    if let Some(telemetry) = &given.telemetry {
        all.retain(|variable| !variable.as_encoded_bytes().starts_with(b"OTEL_RESOURCE_ATTRIBUTES="));
        all.push(telemetry.attributes(own.get("OTEL_RESOURCE_ATTRIBUTES").copied()).into());
        if !own.contains_key("TRACEPARENT") {
            all.push(telemetry.traceparent().into());
        }
    }
    let named = own.get("TERM").is_some_and(|name| !name.is_empty() && *name != "dumb");
    if given.terminal && !named {
        all.retain(|tracked| !tracked.as_encoded_bytes().starts_with(b"TERM="));
        all.push(format!("TERM={USUAL_TERMINAL}").into());
    }
    all
}

/// The variable that names the spool, up to its value.
const SPOOL: &str = "PINFOLD_SPOOL=";

/// `TERM` for sessions that were created without a terminal; every current emulator understands it.
const USUAL_TERMINAL: &str = "xterm-256color";

impl Telemetry {
    /// The attributes that OpenTelemetry adds to everything a process exports; the session's own come first.
    fn attributes(&self, own: Option<&str>) -> String {
        let Telemetry { session, session_id, run, host } = self;
        let own = own.filter(|own| !own.is_empty()).map(|own| format!("{own},")).unwrap_or_default();
        format!(
            "OTEL_RESOURCE_ATTRIBUTES={own}pinfold.session={session},pinfold.session.id={session_id},pinfold.run={run},host.name={}",
            escaped(host)
        )
    }

    /// Each run is a trace of its own, within the session's span.
    fn traceparent(&self) -> String {
        let number = |id: Ulid| MessageId::from(id).0;
        // The second half of an id is random, and a span id must not be zero.
        let span = (number(self.session_id) & u128::from(u64::MAX)).max(1);
        format!("TRACEPARENT=00-{:032x}-{span:016x}-01", number(self.run))
    }
}

/// Percent-encodes the bytes that would end an attribute's value.
fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    value.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_a_trace_and_what_the_session_has_of_its_own_goes_first() {
        let telemetry = Telemetry {
            session: "api".into(),
            session_id: Ulid::new(1, 0xAB),
            run: Ulid::new(2, 0xCD),
            host: "a b,c".into(),
        };
        let attributes = telemetry.attributes(Some("team=core"));
        let (name, value) = attributes.split_once('=').unwrap();
        assert_eq!(name, "OTEL_RESOURCE_ATTRIBUTES");
        let pairs: Vec<&str> = value.split(',').collect();
        assert_eq!(
            (pairs[0], pairs[1], pairs[4]),
            ("team=core", "pinfold.session=api", "host.name=a%20b%2Cc")
        );
        let parent = telemetry.traceparent();
        let parts: Vec<&str> = parent.trim_start_matches("TRACEPARENT=").split('-').collect();
        assert_eq!((parts[0], parts[1].len(), parts[2], parts[3]), ("00", 32, "00000000000000ab", "01"));
        assert!(telemetry.attributes(None).starts_with("OTEL_RESOURCE_ATTRIBUTES=pinfold.session=api,"));
    }
}

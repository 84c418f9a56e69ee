//! The daemon as the object of the API.

use crate::define::home::shown;
use crate::engine::EngineView;
use pinfold_api::object::Status;
use serde_json::Value;
use std::collections::BTreeMap;

/// The status of the daemon.
pub(crate) fn status(view: EngineView<'_>, disk_bytes: u64, capabilities: BTreeMap<String, Value>) -> Status {
    let mut sessions: BTreeMap<String, u64> = BTreeMap::new();
    for known in view.sessions() {
        *sessions.entry(known.state().word().into()).or_default() += 1;
    }
    let daemon = view.daemon();
    Status {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").into(),
        uptime_ms: u64::try_from(daemon.up_for.as_millis()).unwrap_or(u64::MAX),
        home: shown(daemon.state),
        socket: shown(daemon.socket),
        sessions,
        capabilities,
        disk_bytes,
        generation: daemon.generation,
        damaged: view.damaged().map(|damaged| damaged.name.clone()).collect(),
        database: daemon.troubles,
        unknown: view.unknown().to_vec(),
        config_refused: daemon.config_refused.map(str::to_owned),
        socket_refused: daemon.socket_refused.map(str::to_owned),
    }
}

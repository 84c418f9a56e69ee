//! `agents`: what can stand behind `new --agent`, and whether it is here. Needs no daemon.

use crate::args::Global;
use crate::connect;
use crate::error::{Failure, Kind};
use crate::verbs::{print_table, say};
use pinfold_daemon::preset::{Preset, Protocol};
use serde_json::{Value, json};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A program that does not tell its version within this is not waited for.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// More than any version has.
const LONGEST: u64 = 4096;

pub(crate) fn agents(global: &Global) -> Result<(), Failure> {
    let home = connect::home(global)?;
    let config = pinfold_daemon::config::load(&home.config)
        .map_err(|error| Failure::from_error(Kind::BadConfig, &error))?;
    let mut all = vec![json!({
        "name": "command", "command": null, "found": null, "version": null, "protocol": "line",
        "interactive": false,
    })];
    all.extend(config.presets().map(|(name, preset)| agent(name, &preset)));
    if global.json {
        say(&Value::Array(all));
        return Ok(());
    }
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|agent| {
            let found = match (agent["command"].is_null(), agent["found"].as_str()) {
                (true, _) => "any program".to_owned(),
                (false, Some(path)) => path.to_owned(),
                (false, None) => "not found".to_owned(),
            };
            vec![text(&agent["name"]), found, text(&agent["version"]), text(&agent["protocol"])]
        })
        .collect();
    print_table(&["NAME", "FOUND", "VERSION", "PROTOCOL"], &rows);
    Ok(())
}

fn agent(name: &str, preset: &Preset) -> Value {
    let found = preset.command.first().and_then(|program| find(program));
    let version = found.as_ref().and_then(version);
    let protocol = Protocol::WORDS.iter().find(|(_, known)| *known == preset.protocol).map(|(word, _)| word);
    json!({
        "name": name,
        "command": preset.command,
        "found": found.map(|path| path.display().to_string()),
        "version": version,
        "protocol": protocol,
        "interactive": preset.interactive.is_some(),
    })
}

/// Where a program is, as the shell would find it.
fn find(program: &str) -> Option<PathBuf> {
    let executable =
        |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(executable);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(executable)
}

/// The first line of what it says of its version, if it says so soon.
fn version(program: &PathBuf) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let until = Instant::now() + PATIENCE;
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.success(),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK_AGAIN),
            Ok(None) | Err(_) => break false,
        }
    };
    _ = child.kill();
    _ = child.wait();
    if !ended {
        return None;
    }
    let mut text = Vec::new();
    child.stdout.take()?.take(LONGEST).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

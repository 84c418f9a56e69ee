//! `agents`: what `new --agent` accepts, and whether it is installed. Needs no daemon.

use crate::check;
use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::home;
use crate::output::{Failure, Kind, Paper, TableCell, plain, print, say};
use crate::system_program::{search_path, system_program};
use clap::Args;
use pinfold_daemon::preset::{self, Preset, protocol_word};
use pinfold_kernel::program;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde_json::{Value, json};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long to wait for a program to print its version.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longer than any version output.
const LONGEST: u64 = 4096;

/// Which, and what of it.
#[derive(Debug, Args)]
pub(crate) struct Agents {
    /// Run one turn of this agent, on your own account; asks first
    #[arg(long, value_name = "NAME")]
    check: Option<String>,
    /// Do not ask
    #[arg(long, requires = "check")]
    yes: bool,
    /// Print what to put into config.toml for the agents of a file of the public ACP registry
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    from_registry: Option<PathBuf>,
    /// Only this one of them
    #[arg(long, value_name = "ID", requires = "from_registry")]
    entry: Option<String>,
}

impl StandaloneVerb for Agents {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        if let Some(file) = &self.from_registry {
            return from_registry(file, self.entry.as_deref(), global);
        }
        let home = home::home(global)?;
        let config = pinfold_daemon::config::load(&home.config)
            .map_err(|error| Failure::from_error(Kind::BadConfig, &error))?;
        if let Some(name) = &self.check {
            return check::check(name, config.preset(name).as_ref(), &home.config, self.yes, global);
        }
        let mut all = vec![json!({
            "name": "command", "command": null, "found": null, "version": null, "protocol": "line",
            "interactive": false, "proven": null,
        })];
        all.extend(at_once(config.presets().collect()));
        if global.json {
            say(&Value::Array(all));
            return Ok(());
        }
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let rows: Vec<[TableCell<'_>; 5]> = all
            .iter()
            .map(|agent| {
                let found = match (agent["command"].is_null(), agent["found"].as_str()) {
                    (true, _) => "any program".to_owned(),
                    (false, Some(path)) => path.to_owned(),
                    (false, None) => "not found".to_owned(),
                };
                [
                    plain(text(&agent["name"])),
                    plain(found),
                    plain(text(&agent["version"])),
                    plain(text(&agent["proven"])),
                    plain(text(&agent["protocol"])),
                ]
            })
            .collect();
        print(&Paper::endless().table(["NAME", "FOUND", "VERSION", "PROVEN", "PROTOCOL"], &rows));
        Ok(())
    }
}

/// Prints the agents of a registry file as `config.toml` tables.
fn from_registry(file: &Path, only: Option<&str>, global: &Global) -> Result<(), Failure> {
    let named = |why: String| Failure::new(Kind::Usage, format!("`{}`: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
    // The registry names platforms as the compiler does.
    let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let tables = preset::from_registry(&text, only, &platform).map_err(|error| named(error.to_string()))?;
    if global.json {
        say(&json!({ "config": tables }));
    } else {
        print(&tables);
    }
    Ok(())
}

/// Asks all programs for their versions at once, so that one without an answer does not hold up the others.
fn at_once(presets: Vec<(&str, Preset)>) -> Vec<Value> {
    std::thread::scope(|scope| {
        let ask = |(name, preset)| scope.spawn(move || agent(name, &preset));
        let asked: Vec<_> = presets.into_iter().map(ask).collect();
        asked.into_iter().filter_map(|answer| answer.join().ok()).collect()
    })
}

fn agent(name: &str, preset: &Preset) -> Value {
    let path = search_path(None);
    let found =
        preset.command.iter().flatten().next().and_then(|program| program::find(program.as_ref(), &path));
    let version = found.as_deref().and_then(version);
    let proven = found.as_ref().map(|_| proven(version.as_deref().unwrap_or_default(), &preset.proven));
    json!({
        "name": name,
        "command": preset.command,
        "found": found.map(|path| path.display().to_string()),
        "version": version,
        "protocol": protocol_word(preset.protocol),
        "interactive": preset.interactive.is_some(),
        "proven": proven,
    })
}

/// Whether pinfold's own tests run with a version: with exactly this one, or with one that differs only in
/// its last number.
fn proven(told: &str, versions: &[String]) -> &'static str {
    let near = |version: &str| version.rsplit_once('.').map(|(begin, _)| begin.to_owned());
    let mut words = told.split_whitespace().map(|word| word.trim_start_matches('v'));
    if words.clone().any(|word| versions.iter().any(|version| version == word)) {
        return "proven";
    }
    let is_near = |word: &str| {
        near(word).is_some_and(|begin| versions.iter().any(|v| near(v).as_ref() == Some(&begin)))
    };
    if words.any(is_near) { "near" } else { "unproven" }
}

/// The first line that a program prints about its version, if it does so soon.
///
/// Some programs take `--version` for an ordinary argument and begin to work: whatever was started is ended here.
fn version(program: &Path) -> Option<String> {
    let mut command = system_program(program.as_os_str());
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.process_group(0).spawn().ok()?;
    let said = first_words(child.stdout.take()?);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw)?;
    let until = Instant::now() + PATIENCE;
    let ended = ends_within(pid, PATIENCE);
    // Before it is reaped: until then no other process group can have its number.
    _ = rustix::process::kill_process_group(pid, Signal::KILL);
    let status = child.wait().ok()?;
    if !ended || !status.success() {
        return None;
    }
    // A grandchild that has left the group may keep the pipe open.
    let text = said.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// The first output of a program, once it has arrived.
fn first_words(from: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        _ = from.take(LONGEST).read_to_end(&mut text);
        _ = sender.send(text);
    });
    receiver
}

fn ends_within(pid: Pid, patience: Duration) -> bool {
    let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let timeout = Timespec::try_from(patience).ok();
    rustix::event::poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], timeout.as_ref()) == Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_proven_near_or_unproven() {
        let versions = ["2.1.325".to_owned()];
        let rows = [
            ("2.1.325 (Claude Code)", "proven"),
            ("claude v2.1.325", "proven"),
            ("2.1.9 (Claude Code)", "near"),
            ("2.2.325", "unproven"),
            ("2.1", "unproven"),
            ("", "unproven"),
        ];
        for (told, expected) in rows {
            assert_eq!(proven(told, &versions), expected, "{told}");
        }
        assert_eq!(proven("2.1.325", &[]), "unproven");
    }
}

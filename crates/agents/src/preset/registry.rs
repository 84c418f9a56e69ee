//! Turns entries of the public registry of ACP agents into presets: how an agent is started, untested here.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Why no preset can be made.
#[derive(Debug, thiserror::Error)]
pub enum NotAnEntry {
    /// It is not the registry's JSON.
    #[error("it is not an entry of the registry, nor a list of them")]
    Unreadable(#[source] serde_json::Error),
    /// No agent has this id.
    #[error("the registry has no agent `{id}`")]
    Unknown {
        /// The id that was asked for.
        id: String,
    },
}

/// A whole registry, or one entry of it.
#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    Registry { agents: Vec<Agent> },
    Entry(Box<Agent>),
}

#[derive(Deserialize)]
struct Agent {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
    distribution: Distribution,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Distribution {
    npx: Option<Package>,
    uvx: Option<Package>,
    /// By platform.
    binary: BTreeMap<String, Binary>,
}

#[derive(Deserialize)]
struct Package {
    package: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Binary {
    archive: String,
    cmd: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// How an agent is started.
struct Start {
    command: Vec<String>,
    env: BTreeMap<String, String>,
    /// What has to be done first, if anything.
    install: Option<String>,
}

/// Returns the tables of `config.toml` for the agents in a registry file, or for one of them. An agent that
/// cannot be started on this platform becomes a comment.
///
/// # Errors
/// It is not such a file, or has no agent with this id.
pub fn from_registry(text: &str, only: Option<&str>, platform: &str) -> Result<String, NotAnEntry> {
    let agents = match serde_json::from_str(text).map_err(NotAnEntry::Unreadable)? {
        File::Registry { agents } => agents,
        File::Entry(agent) => vec![*agent],
    };
    let wanted: Vec<&Agent> = agents.iter().filter(|agent| only.is_none_or(|id| agent.id == id)).collect();
    match only.filter(|_| wanted.is_empty()) {
        Some(id) => Err(NotAnEntry::Unknown { id: id.to_owned() }),
        None => Ok(wanted.into_iter().map(|agent| table(agent, platform)).collect::<Vec<_>>().join("\n")),
    }
}

fn table(agent: &Agent, platform: &str) -> String {
    let about = format!("# {} {}\n", in_a_line(&agent.name), in_a_line(&agent.version));
    let Some(Start { command, env, install }) = start(&agent.distribution, platform) else {
        return format!("{about}# `{}` has nothing for {platform}\n", in_a_line(&agent.id));
    };
    let key = quoted(&agent.id);
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let mut table = format!(
        "{about}[agents.{key}]\ncommand = [{}]\nprotocol = \"acp\"\nsession = \"learn\"\n",
        words.join(", ")
    );
    if let Some(install) = install {
        table.push_str(&format!("install = {}\n", quoted(&install)));
    }
    // A variable without a value is for the user to set.
    let (theirs, set): (Vec<_>, Vec<_>) = env.iter().partition(|(_, value)| value.is_empty());
    if !theirs.is_empty() {
        let names: Vec<String> = theirs.iter().map(|(name, _)| quoted(name)).collect();
        table.push_str(&format!("env = [{}]\n", names.join(", ")));
    }
    if !set.is_empty() {
        let lines = set.iter().map(|(name, value)| format!("{} = {}\n", quoted(name), quoted(value)));
        table.push_str(&format!("\n[agents.{key}.set]\n{}", lines.collect::<String>()));
    }
    table
}

/// Returns how an agent is started here, preferring a program that fetches it.
fn start(distribution: &Distribution, platform: &str) -> Option<Start> {
    let by = |words: &[&str], package: &Package| {
        let words = words.iter().map(|word| (*word).to_owned()).chain([package.package.clone()]);
        Start {
            command: words.chain(package.args.clone()).collect(),
            env: package.env.clone(),
            install: None,
        }
    };
    let npx = distribution.npx.as_ref().map(|package| by(&["npx", "--yes"], package));
    let uvx = || distribution.uvx.as_ref().map(|package| by(&["uvx"], package));
    let binary = || {
        let Binary { archive, cmd, args, env } = distribution.binary.get(platform)?;
        let program = cmd.trim_start_matches("./").to_owned();
        let install = format!("unpack {archive}, and put `{program}` on your PATH");
        let command = std::iter::once(program).chain(args.clone()).collect();
        Some(Start { command, env: env.clone(), install: Some(install) })
    };
    npx.or_else(uvx).or_else(binary)
}

/// Returns a TOML string; a JSON string is one, except for one character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text.replace('\u{7f}', "")).to_string()
}

fn in_a_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::super::{Preset, PresetChanges, Protocol, SessionIds};
    use super::*;

    const REGISTRY: &str = r#"{ "version": "1.0.0", "extensions": [], "agents": [
        { "id": "alpha", "name": "Alpha", "version": "1.2.3", "license": "MIT", "distribution": {
            "npx": { "package": "@example/alpha@1.2.3", "args": ["--acp"], "env": { "MODE": "a\"b", "KEY": "" } },
            "uvx": { "package": "never" } } },
        { "id": "beta", "distribution": { "uvx": { "package": "beta==4.5.6" } } },
        { "id": "gamma", "name": "Gam\nma", "version": "2", "distribution": {
            "binary": { "linux-x86_64": { "archive": "https://example.com/g.tar.gz", "cmd": "./gamma", "args": ["serve"] } } } } ] }"#;

    fn presets(text: &str) -> BTreeMap<String, Preset> {
        #[derive(Deserialize)]
        struct Config {
            #[serde(default)]
            agents: BTreeMap<String, PresetChanges>,
        }
        let config: Config = toml::from_str(text).unwrap();
        config.agents.into_iter().map(|(name, changes)| (name, changes.preset())).collect()
    }

    #[test]
    fn each_entry_becomes_a_preset_that_can_be_read() {
        let all = presets(&from_registry(REGISTRY, None, "linux-x86_64").unwrap());
        let command = |name: &str| all[name].command.clone().unwrap().join(" ");
        assert_eq!(command("alpha"), "npx --yes @example/alpha@1.2.3 --acp");
        assert_eq!(
            (all["alpha"].set["MODE"].as_str(), &all["alpha"].env[..]),
            ("a\"b", &["KEY".to_owned()][..])
        );
        assert_eq!(command("beta"), "uvx beta==4.5.6");
        assert_eq!(command("gamma"), "gamma serve");
        assert!(all["gamma"].install.as_ref().unwrap().contains("https://example.com/g.tar.gz"));
        for preset in all.values() {
            assert_eq!((preset.protocol, preset.session), (Protocol::Acp, SessionIds::Learn));
        }
    }

    #[test]
    fn one_entry_is_chosen_by_its_id_or_is_the_whole_file() {
        let one = from_registry(REGISTRY, Some("beta"), "linux-x86_64").unwrap();
        assert_eq!(presets(&one).keys().collect::<Vec<_>>(), ["beta"]);
        let entry = r#"{ "id": "x", "distribution": { "npx": { "package": "x" } } }"#;
        assert_eq!(presets(&from_registry(entry, None, "any").unwrap()).len(), 1);
        assert!(matches!(from_registry(REGISTRY, Some("x"), "any"), Err(NotAnEntry::Unknown { .. })));
        for odd in ["", "[]", "{}", r#"{"agents":7}"#] {
            assert!(matches!(from_registry(odd, None, "any"), Err(NotAnEntry::Unreadable(_))), "{odd}");
        }
    }

    #[test]
    fn what_there_is_nothing_for_here_is_a_comment() {
        let text = from_registry(REGISTRY, Some("gamma"), "linux-riscv64").unwrap();
        assert!(presets(&text).is_empty() && text.contains("nothing for linux-riscv64"), "{text}");
    }
}

//! Warns of variables that an agent probably needs and is not given: keys, ssh agents, proxies, virtual
//! environments. Without its key an agent only asks for a login, and the reason is hard to find.

use crate::global::Global;
use crate::home;
use crate::output::talk;
use pinfold_api::request::NewSession;
use pinfold_daemon::config::Config;
use pinfold_daemon::preset::Preset;
use std::collections::BTreeSet;
use std::path::Path;

/// Variables that any agent, or a program it starts, can use.
const GENERAL: [&str; 19] = [
    "AWS_SECRET_ACCESS_KEY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GITHUB_TOKEN",
    "GPG_TTY",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSH_AUTH_SOCK",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "NVM_DIR",
];

/// Programs that may run an agent, without showing which one.
const RUNNERS: [&str; 16] = [
    "sh", "bash", "zsh", "fish", "env", "python", "python3", "node", "npx", "npm", "pnpm", "bun", "bunx",
    "deno", "uv", "uvx",
];

/// File extensions of scripts, which such programs run.
const SCRIPTS: [&str; 6] = [".py", ".js", ".mjs", ".ts", ".sh", ".rb"];

/// A longer list of names would not be read.
const SHOWN: usize = 8;

/// Names the caller's variables that are not passed on although agents of this kind need them.
pub(crate) fn say_missed(request: &NewSession, global: &Global) {
    if global.quiet {
        return;
    }
    let config = home::home(global).ok().and_then(|home| pinfold_daemon::config::load(&home.config).ok());
    let here = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    let here: BTreeSet<String> = here.filter_map(|(name, _)| name.into_string().ok()).collect();
    let missed = missed(request, &config.unwrap_or_default(), &here);
    if !missed.is_empty() {
        let more = missed.len().saturating_sub(SHOWN);
        let mut names = missed[..missed.len() - more].join(", ");
        if more > 0 {
            names.push_str(&format!(" and {more} more"));
        }
        talk(&format!(
            "note: not passed on: {names}; `--env {}` passes one, `--env-file FILE` several",
            missed[0]
        ));
    }
}

/// The names of those variables, sorted.
fn missed(request: &NewSession, config: &Config, here: &BTreeSet<String>) -> Vec<String> {
    let taken = |name: &str| request.env.as_ref().is_some_and(|env| env.contains_key(name));
    let given = |name: &str| {
        taken(name)
            || pinfold_daemon::is_harmless(name)
            || other_spelling(name).is_some_and(|name| taken(&name))
    };
    let Some(needs) = needs(request, config) else { return Vec::new() };
    let all = here.iter().filter(|name| !given(name) && !name.starts_with("PINFOLD_"));
    all.filter(|name| GENERAL.contains(&name.as_str()) || needs(name)).cloned().collect()
}

/// The same variable of a proxy in small or in capital letters: programs read either.
fn other_spelling(name: &str) -> Option<String> {
    match name {
        name if name.ends_with("_PROXY") => Some(name.to_ascii_lowercase()),
        name if name.ends_with("_proxy") => Some(name.to_ascii_uppercase()),
        _ => None,
    }
}

/// Whether agents of a kind need the variable of this name.
type Needs<'a> = Box<dyn Fn(&str) -> bool + 'a>;

/// What else agents of this kind need; `None` if the program is not a known agent.
fn needs<'a>(request: &NewSession, config: &'a Config) -> Option<Needs<'a>> {
    let agent = request.agent.as_deref().filter(|agent| *agent != "command");
    let program = request.command.iter().flatten().next().map(|program| base(program));
    let kind = agent.map(str::to_owned).or(program)?;
    if let Some(preset) = preset_of(config, &kind) {
        return Some(Box::new(move |name| preset.takes(name)));
    }
    let runs_any = RUNNERS.contains(&kind.as_str()) || SCRIPTS.iter().any(|end| kind.ends_with(end));
    let presets: Vec<_> = config.presets().map(|(_, preset)| preset).collect();
    runs_any.then(|| -> Needs<'a> {
        Box::new(move |name| is_key(name) && presets.iter().any(|preset| preset.takes(name)))
    })
}

/// The preset of this name, or the one whose program has this name.
fn preset_of(config: &Config, kind: &str) -> Option<Preset> {
    let runs = |preset: &Preset| preset.command.iter().flatten().next().is_some_and(|own| base(own) == kind);
    config.preset(kind).or_else(|| config.presets().map(|(_, preset)| preset).find(runs))
}

fn is_key(name: &str) -> bool {
    ["_API_KEY", "_TOKEN", "_BASE_URL"].iter().any(|end| name.ends_with(end))
}

/// The file name of a program.
fn base(program: &str) -> String {
    Path::new(program).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed_by(agent: Option<&str>, command: &[&str], given: &[&str]) -> String {
        let here =
            ["ANTHROPIC_API_KEY", "AWS_SECRET", "PATH", "SSH_AUTH_SOCK", "https_proxy", "PINFOLD_HOME"];
        let here = here.iter().map(|name| (*name).to_owned()).collect();
        let request = NewSession {
            agent: agent.map(str::to_owned),
            command: Some(command.iter().map(|word| (*word).to_owned()).collect()),
            env: Some(given.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect()),
            ..NewSession::default()
        };
        missed(&request, &Config::default(), &here).join(" ")
    }

    #[test]
    fn an_agent_is_known_by_its_name_or_its_program() {
        let all = "ANTHROPIC_API_KEY SSH_AUTH_SOCK https_proxy";
        assert_eq!(missed_by(None, &["claude"], &[]), all);
        assert_eq!(missed_by(None, &["/usr/local/bin/claude", "-p"], &[]), all);
        assert_eq!(missed_by(None, &["python3", "agent.py"], &[]), all);
        assert_eq!(missed_by(None, &["./agent.py"], &[]), all);
        assert_eq!(missed_by(Some("claude"), &[], &["ANTHROPIC_API_KEY"]), "SSH_AUTH_SOCK https_proxy");
    }

    #[test]
    fn a_proxy_is_given_in_either_spelling() {
        for (given, missed) in [(&["HTTPS_PROXY"][..], ""), (&["HTTP_PROXY"], "https_proxy")] {
            let given: Vec<&str> = [given, &["ANTHROPIC_API_KEY", "SSH_AUTH_SOCK"]].concat();
            assert_eq!(missed_by(None, &["claude"], &given), missed, "{given:?}");
        }
    }

    #[test]
    fn keys_certificates_and_the_desktop_are_named() {
        let here: BTreeSet<String> = GENERAL.iter().map(|name| (*name).to_owned()).collect();
        let request = NewSession { agent: Some("claude".into()), ..NewSession::default() };
        let all = missed(&request, &Config::default(), &here);
        assert_eq!(all, here.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_program_that_is_no_agent_misses_nothing() {
        assert_eq!(missed_by(None, &["sleep", "100"], &[]), "");
        assert_eq!(missed_by(Some("nobody-knows"), &[], &[]), "");
    }

    #[test]
    fn what_is_given_is_not_missed() {
        let given = ["ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "https_proxy"];
        assert_eq!(missed_by(None, &["claude"], &given), "");
    }
}

//! Variables that an agent needs from its caller: keys and addresses, by the names in its preset.

use crate::global::Global;
use crate::home;
use pinfold_api::request::NewSession;
use pinfold_daemon::preset::Preset;
use std::collections::BTreeMap;

/// Adds the variables that the agent's preset takes from the caller; values given with `--env` win.
pub(crate) fn take_from_here(request: &mut NewSession, global: &Global) {
    let Some(agent) = &request.agent else { return };
    // The daemon needs the file too, and reports it if it cannot be read.
    let Some(config) =
        home::home(global).ok().and_then(|home| pinfold_daemon::config::load(&home.config).ok())
    else {
        return;
    };
    let Some(preset) = config.preset(agent) else { return };
    let mut taken = taken(&preset, std::env::vars_os());
    taken.extend(request.env.take().unwrap_or_default());
    request.env = Some(taken).filter(|taken| !taken.is_empty());
}

fn taken(
    preset: &Preset,
    here: impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
) -> BTreeMap<String, String> {
    here.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| preset.takes(name) && !pinfold_daemon::is_harmless(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_takes_what_it_names_and_nothing_else() {
        let preset = pinfold_daemon::config::Config::default().preset("claude").unwrap();
        let here = [("ANTHROPIC_API_KEY", "k"), ("CLAUDECODE", "1"), ("AWS_SECRET", "s"), ("PATH", "/bin")];
        let taken = taken(&preset, here.into_iter().map(|(name, value)| (name.into(), value.into())));
        assert_eq!(taken, BTreeMap::from([("ANTHROPIC_API_KEY".to_owned(), "k".to_owned())]));
    }
}

//! Warns a user whose own agent would read a message that begins with `-` as an option.

use crate::global::Global;
use crate::home;
use crate::output::talk;

/// Warns if a preset of config.toml has `{prompt}` as a word of its own, without `--` before it.
pub(crate) fn warn_of_bare_prompt(agent: Option<&str>, global: &Global) {
    let Some(agent) = agent else { return };
    let config = home::home(global).ok().and_then(|home| pinfold_daemon::config::load(&home.config).ok());
    let preset = config.and_then(|config| config.preset(agent));
    if preset.is_some_and(|preset| preset.reads_prompt_as_option()) {
        talk(&format!("warning: agent `{agent}` reads a message that begins with `-` as an option"));
        talk(&format!(
            "hint: in [agents.{agent}], write `--OPTION={{prompt}}`, write `--` before `{{prompt}}`, or set `prompt = \"stdin\"`"
        ));
    }
}

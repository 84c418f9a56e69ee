//! A unit of the user's systemd.

use super::{Service, ServiceText, remove, run, user_folder, write};
use crate::global::Global;
use crate::home;
use crate::output::Failure;
use crate::send_away::send_away;
use pinfold_api::request::Down;
use pinfold_core::visible::visible;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Makes the user's systemd run without a login.
pub(crate) const LINGER: &str = "loginctl enable-linger";

/// - `KillMode=process` and `ExecStop`: a restart of the unit ends only the daemon, and the new one finds the
///   agents again.
/// - `Delegate=yes`: each run may have its own control group below the unit's.
/// - `OOMPolicy=continue`: when the kernel kills an agent for its memory, the daemon judges it and the unit goes on.
/// - `Restart=on-failure`: `pinfold down` is meant to last. 75 means that this home already has a daemon.
pub(super) fn text(service: &Service) -> Result<ServiceText, Failure> {
    let line = |words: Vec<PathBuf>| {
        words.iter().map(|word| quoted(&word.display(), Setting::Command)).collect::<Vec<_>>().join(" ")
    };
    let variables = service.variables.iter().fold(String::new(), |all, (name, path)| {
        let variable = quoted(&format!("{name}={}", path.display()), Setting::Environment);
        all + &format!("Environment={variable}\n")
    });
    let text = format!(
        "[Unit]\n\
         Description=pinfold: keeps agents alive\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={}\n\
         ExecStop={}\n\
         {}\
         KillMode=process\n\
         Delegate=yes\n\
         OOMPolicy=continue\n\
         Restart=on-failure\n\
         RestartPreventExitStatus=75\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        line(service.up()),
        line(service.keep()),
        variables,
    );
    Ok(ServiceText { file: Some(unit_file(service)?), text })
}

fn unit_file(service: &Service) -> Result<PathBuf, Failure> {
    Ok(user_folder(Some("XDG_CONFIG_HOME"), ".config")?.join("systemd/user").join(unit(service)))
}

fn unit(service: &Service) -> String {
    format!("{}.service", service.name)
}

fn is_hidden(letter: char) -> bool {
    visible(letter.encode_utf8(&mut [0; 4])) != letter.to_string()
}

/// The setting that a word is quoted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    /// Variables are replaced in it.
    Command,
    /// A `$` in it is a `$`.
    Environment,
}

/// Quotes a word for a unit, so that nothing in it is a specifier or a variable.
fn quoted(word: &impl std::fmt::Display, setting: Setting) -> String {
    let mut quoted = String::from("\"");
    for letter in word.to_string().chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '%' => quoted.push_str("%%"),
            '$' if setting == Setting::Command => quoted.push_str("$$"),
            // Characters that a terminal would obey, or that would end the line.
            other if is_hidden(other) => {
                let number = u32::from(other);
                _ = match u16::try_from(number) {
                    Ok(short) => write!(quoted, "\\u{short:04x}"),
                    Err(_) => write!(quoted, "\\U{number:08x}"),
                };
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Writes the unit, enables it, and lets it take over from a running daemon.
pub(super) fn install(
    service: &Service,
    text: &ServiceText,
    global: &Global,
) -> Result<Vec<String>, Failure> {
    let ServiceText { file: Some(file), text } = text else { return Ok(Vec::new()) };
    write(file, text)?;
    let unit = unit(service);
    let hint =
        "the unit is written; call it again in a login of your own (XDG_RUNTIME_DIR says where systemd is)";
    let control = |words: &[&str]| run("systemctl", words).map_err(|failure| failure.hint(hint));
    control(&["--user", "daemon-reload"])?;
    control(&["--user", "enable", &unit])?;
    let home = home::home(global)?;
    // A daemon started by hand makes room and its agents stay; one of the unit is restarted below.
    send_away(&home, Down { keep: true, replace: true })?;
    control(&["--user", "restart", &unit])?;
    Ok(vec![format!("{} is written; {unit} runs, and starts with the machine", file.display())])
}

pub(super) fn uninstall(service: &Service) -> Result<bool, Failure> {
    let file = unit_file(service)?;
    if !file.exists() {
        return Ok(false);
    }
    // Without a systemd that answers, only the file and the link that enables it are left to remove.
    let unit = unit(service);
    if run("systemctl", &["--user", "disable", &unit]).is_err() {
        let wants = file.with_file_name("default.target.wants").join(&unit);
        remove(&wants)?;
    }
    let removed = remove(&file)?;
    drop(run("systemctl", &["--user", "daemon-reload"]));
    Ok(removed)
}

/// Whether this user's systemd runs without a login.
pub(crate) fn lingers() -> bool {
    let user = rustix::process::geteuid().as_raw().to_string();
    run("loginctl", &["show-user", &user, "--property=Linger", "--value"])
        .is_ok_and(|said| said.trim() == "yes")
}

/// Makes this user's systemd run without a login.
pub(crate) fn linger() -> Result<(), Failure> {
    run("loginctl", &["enable-linger"])
        .map(drop)
        .map_err(|failure| failure.hint(format!("`sudo {LINGER} $USER` may")))
}

#[cfg(test)]
mod tests {
    use super::super::service;
    use super::*;

    #[test]
    fn a_unit_says_what_is_started_and_what_is_left_alone() {
        let unit = text(&service(Some("/home/a \"b\" 100%/$x"))).unwrap().text;
        let start =
            r#"ExecStart="/opt/my bin/pinfold" "--home" "/home/a \"b\" 100%%/$$x" "up" "--foreground""#;
        for line in
            [start, "KillMode=process", "Delegate=yes", "OOMPolicy=continue", "WantedBy=default.target"]
        {
            assert!(unit.lines().any(|own| own == line), "{line}\n{unit}");
        }
        assert!(unit.contains(r#""down" "--keep""#), "{unit}");
    }

    #[test]
    fn a_unit_has_the_variables_that_lead_to_the_home() {
        let variables = vec![("HOME", "/h 1".into()), ("XDG_STATE_HOME", "/s%$x\n\u{200b}\u{e0041}".into())];
        let unit = text(&Service { variables, ..service(None) }).unwrap().text;
        let state = r#"Environment="XDG_STATE_HOME=/s%%$x\u000a\u200b\U000e0041""#;
        for line in [r#"Environment="HOME=/h 1""#, state] {
            assert!(unit.lines().any(|own| own == line), "{line}\n{unit}");
        }
    }
}

//! A launchd agent, on macOS. Untested: no machine with macOS was at hand.

use super::{Service, ServiceText, remove, run, user_folder, write};
use crate::output::Failure;
use std::path::PathBuf;

pub(super) fn text(service: &Service) -> Result<ServiceText, Failure> {
    let words: String = service
        .up()
        .iter()
        .map(|word| format!("    <string>{}</string>\n", escaped(&word.display().to_string())))
        .collect();
    let label = label(service);
    let variables: String = service
        .variables
        .iter()
        .map(|(name, path)| {
            let path = escaped(&path.display().to_string());
            format!("    <key>{name}</key><string>{path}</string>\n")
        })
        .collect();
    // Without `AbandonProcessGroup` launchd ends the agents with the daemon.
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- Untested: pinfold has not been run on macOS. -->\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n\
         <dict>\n  \
         <key>Label</key><string>{label}</string>\n  \
         <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n  \
         <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n  \
         <key>RunAtLoad</key><true/>\n  \
         <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n  \
         <key>AbandonProcessGroup</key><true/>\n\
         </dict>\n\
         </plist>\n"
    );
    Ok(ServiceText { file: Some(file(service)?), text })
}

fn file(service: &Service) -> Result<PathBuf, Failure> {
    Ok(user_folder(None, "Library/LaunchAgents")?.join(format!("{}.plist", label(service))))
}

fn label(service: &Service) -> String {
    format!("dev.pinfold.{}", service.name)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) fn install(text: &ServiceText) -> Result<Vec<String>, Failure> {
    let ServiceText { file: Some(file), text } = text else { return Ok(Vec::new()) };
    write(file, text)?;
    run("launchctl", &["load", "-w", &file.display().to_string()])?;
    Ok(vec![format!("{} is loaded; this was never tried on macOS", file.display())])
}

pub(super) fn uninstall(service: &Service) -> Result<bool, Failure> {
    let file = file(service)?;
    if !file.exists() {
        return Ok(false);
    }
    drop(run("launchctl", &["unload", "-w", &file.display().to_string()]));
    remove(&file)
}

#[cfg(test)]
mod tests {
    use super::super::service;
    use super::*;

    #[test]
    fn a_plist_is_marked_as_untested_and_escapes_what_it_must() {
        let plist = text(&service(Some("/a&b<c"))).unwrap().text;
        assert!(plist.contains("Untested") && plist.contains("<string>/a&amp;b&lt;c</string>"), "{plist}");
    }
}

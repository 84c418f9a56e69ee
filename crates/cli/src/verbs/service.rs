//! `service`: makes the daemon start with the machine, or undoes that.

use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::output::{Failure, print, say, talk};
use crate::service::{self, LINGER, Manager, ServiceText};
use crate::{home, inside};
use clap::{Args, Subcommand};
use pinfold_core::visible::visible;
use serde_json::json;

/// What to do.
#[derive(Debug, Clone, Args)]
pub(crate) struct Service {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Start the daemon with the machine: by systemd, by launchd (untested), or by cron where there is neither
    Install(Install),
    /// Undo that; a running daemon goes on
    Uninstall(Uninstall),
}

#[derive(Debug, Clone, Args)]
struct Install {
    /// Only show what would be written
    #[arg(long)]
    print: bool,
    /// Let it run without a login, as after a boot: runs `loginctl enable-linger`
    #[arg(long)]
    linger: bool,
    /// Use this one, whatever this machine has
    #[arg(long, value_enum, value_name = "M")]
    manager: Option<Manager>,
}

#[derive(Debug, Clone, Args)]
struct Uninstall {
    /// Use this one, whatever this machine has
    #[arg(long, value_enum, value_name = "M")]
    manager: Option<Manager>,
}

impl StandaloneVerb for Service {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        match &self.what {
            What::Install(install) => install.act(global),
            What::Uninstall(uninstall) => uninstall.act(global),
        }
    }
}

impl Install {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        let manager = self.manager.unwrap_or_else(Manager::here);
        let service = service::Service::of(global)?;
        let ServiceText { file, text } = service::text(&service, manager)?;
        if self.print {
            match global.json {
                true => say(&json!({ "manager": manager.to_string(), "file": file, "text": text })),
                false => print(&text.lines().fold(String::new(), |all, line| all + &visible(line) + "\n")),
            }
            return Ok(());
        }
        inside::refuse(&home::home(global)?, "service install")?;
        let done = service::install(&service, manager, global)?;
        let lingers = match (manager, self.linger) {
            (Manager::Systemd, true) => service::linger().map(|()| true)?,
            (Manager::Systemd, false) => service::lingers(),
            (Manager::Launchd | Manager::Cron, _) => true,
        };
        if global.json {
            say(&json!({ "manager": manager.to_string(), "file": file, "text": text, "lingers": lingers }));
        } else if !global.quiet {
            done.iter().for_each(talk);
        }
        if !lingers && !global.quiet {
            talk(&format!(
                "it ends when you log out, and starts when you log in: `{LINGER}` changes that (or --linger)"
            ));
        }
        Ok(())
    }
}

impl Uninstall {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        let manager = self.manager.unwrap_or_else(Manager::here);
        let was = service::uninstall(&service::Service::of(global)?, manager)?;
        if global.json {
            say(&json!({ "manager": manager.to_string(), "removed": was }));
        } else if !global.quiet {
            talk(&if was {
                "the daemon does not start with the machine any more; one that runs goes on, `pinfold down` ends it"
            } else {
                "nothing was installed"
            });
        }
        Ok(())
    }
}

//! daemontools, runit and s6: a scanner of a folder, and a process for each service.

use super::site::{Site, launch};
use super::supervisor::Supervisor;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs of one of the three.
pub(crate) struct Tools {
    scanner: &'static str,
    /// Further arguments of the scanner: s6 has room for 500 services unless it is asked for more.
    words: &'static [&'static str],
    status: Status,
    /// How the tool records a child's end, if it does.
    exits: Exits,
}

enum Status {
    /// One command covers all services.
    OfAll(&'static [&'static str]),
    /// One command covers one service.
    OfEach(&'static str),
}

enum Exits {
    NotKept,
    /// A file beside the service, which the tool can read.
    Tally(&'static str),
}

pub(crate) const DAEMONTOOLS: Tools =
    Tools { scanner: "svscan", words: &[], status: Status::OfAll(&["svstat"]), exits: Exits::NotKept };
pub(crate) const RUNIT: Tools = Tools {
    scanner: "runsvdir",
    words: &[],
    status: Status::OfAll(&["sv", "status"]),
    exits: Exits::NotKept,
};
pub(crate) const S6: Tools = Tools {
    scanner: "s6-svscan",
    words: &["-c", "1000"],
    status: Status::OfEach("s6-svstat"),
    exits: Exits::Tally("s6-svdt"),
};

/// A scanner with its folder.
pub(crate) struct Scanned {
    pub(crate) tools: Tools,
    pub(crate) run: Run,
}

/// What the file `run` of a service is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    /// A script that executes the program, as in the manuals of all three.
    Script,
    /// The program itself, which saves a shell.
    Program,
}

fn folder(site: &Site) -> PathBuf {
    site.root.join("services")
}

fn services(site: &Site) -> impl Iterator<Item = PathBuf> {
    let folder = folder(site);
    (0..site.count).map(move |number| folder.join(format!("s{number}")))
}

impl Supervisor for Scanned {
    fn prepare(&mut self, site: &Site) {
        for (number, service) in services(site).enumerate() {
            std::fs::create_dir_all(&service).unwrap();
            let run = service.join("run");
            match self.run {
                Run::Program => symlink(&site.child, run).unwrap(),
                Run::Script => {
                    let text = format!("#!/bin/sh\nexec {}\n", site.words(number).join(" "));
                    std::fs::write(&run, text).unwrap();
                    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
                }
            }
        }
    }

    fn start(&mut self, site: &Site) {
        launch(site.command(self.tools.scanner).args(self.tools.words).arg(folder(site)));
    }

    fn processes(&self, site: &Site) -> Vec<u32> {
        let mut all = site.supervisors();
        let is_scanner = |pid: &u32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim() == self.tools.scanner
        };
        all.sort_by_key(|pid| !is_scanner(pid));
        all
    }

    fn status(&self, site: &Site) -> Option<Command> {
        match self.tools.status {
            Status::OfAll(words) => {
                let mut command = site.command(words[0]);
                command.args(&words[1..]).args(services(site));
                Some(command)
            }
            Status::OfEach(word) => {
                let mut command = site.command("sh");
                command.args(["-c", "program=$1; shift; for each; do $program $each; done", "sh", word]);
                command.args(services(site));
                Some(command)
            }
        }
    }

    fn known_exits(&self, site: &Site) -> Option<usize> {
        let Exits::Tally(reader) = self.tools.exits else { return None };
        let signalled = |service: &Path| {
            let told = site.command(reader).arg(service).stdout(Stdio::piped()).output().unwrap();
            String::from_utf8_lossy(&told.stdout).matches("SIGKILL").count()
        };
        Some(services(site).map(|service| signalled(&service)).sum())
    }
}

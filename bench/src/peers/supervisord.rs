//! supervisord, configured as in its manual.

use super::site::{Site, launch};
use super::supervisor::Supervisor;
use std::fmt::Write;
use std::process::Command;

pub(crate) struct Supervisord;

impl Supervisor for Supervisord {
    fn prepare(&mut self, site: &Site) {
        let root = site.root.display();
        let mut text = format!(
            "[supervisord]\nnodaemon=true\nminfds={}\nlogfile={root}/log\npidfile={root}/pid\n\
             [unix_http_server]\nfile={root}/sock\n[supervisorctl]\nserverurl=unix://{root}/sock\n\
             [rpcinterface:supervisor]\n\
             supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n",
            // Three descriptors per child and no more, because it closes every possible one for every child.
            site.count * 3 + 200
        );
        for number in 0..site.count {
            let command = site.words(number).join(" ");
            writeln!(text, "[program:s{number}]\ncommand={command}\nautorestart=true\nstdout_logfile=NONE\nstderr_logfile=NONE").unwrap();
        }
        std::fs::write(site.root.join("supervisord.conf"), text).unwrap();
    }

    fn start(&mut self, site: &Site) {
        launch(site.command("supervisord").args(["-c", "supervisord.conf"]));
    }

    fn processes(&self, site: &Site) -> Vec<u32> {
        let pid = std::fs::read_to_string(site.root.join("pid")).unwrap_or_default();
        pid.trim().parse().into_iter().collect()
    }

    fn status(&self, site: &Site) -> Option<Command> {
        let mut command = site.command("supervisorctl");
        command.args(["-c", "supervisord.conf", "status"]);
        Some(command)
    }

    fn known_exits(&self, site: &Site) -> Option<usize> {
        let log = std::fs::read_to_string(site.root.join("log")).unwrap_or_default();
        Some(log.matches("SIGKILL; not expected").count())
    }
}

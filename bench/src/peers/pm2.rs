//! pm2, from npm, in a folder of its own.

use super::site::{Site, launch};
use super::supervisor::Supervisor;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Pm2 {
    program: PathBuf,
}

impl Pm2 {
    pub(crate) fn new(cache: &Path) -> Pm2 {
        Pm2 { program: cache.join("node_modules/.bin/pm2") }
    }

    fn command(&self, site: &Site) -> Command {
        let mut command = site.command(&self.program);
        command.env("PM2_HOME", site.root.join("pm2"));
        command
    }
}

impl Supervisor for Pm2 {
    fn prepare(&mut self, site: &Site) {
        let app = |number: usize| {
            let [program, records, number] = site.words(number);
            format!(
                "{{\"name\":\"s{number}\",\"script\":\"{program}\",\"args\":[\"{records}\",\"{number}\"],\
                 \"interpreter\":\"none\",\"out_file\":\"/dev/null\",\"error_file\":\"/dev/null\"}}"
            )
        };
        let apps: Vec<String> = (0..site.count).map(app).collect();
        std::fs::write(site.root.join("apps.json"), format!("{{\"apps\":[{}]}}", apps.join(","))).unwrap();
    }

    fn start(&mut self, site: &Site) {
        launch(self.command(site).args(["start", "apps.json"]));
    }

    fn processes(&self, site: &Site) -> Vec<u32> {
        let pid = std::fs::read_to_string(site.root.join("pm2/pm2.pid")).unwrap_or_default();
        pid.trim().parse().into_iter().collect()
    }

    fn status(&self, site: &Site) -> Option<Command> {
        let mut command = self.command(site);
        command.arg("ls");
        Some(command)
    }

    fn known_exits(&self, site: &Site) -> Option<usize> {
        let log = std::fs::read_to_string(site.root.join("pm2/pm2.log")).unwrap_or_default();
        Some(log.matches("via signal [SIGKILL]").count())
    }
}

//! pinfold, through its own command and socket; every session is `always`.

use super::site::{Site, beside, fail, launch, wait_for};
use super::supervisor::Supervisor;
use pinfold_api::client::Client;
use pinfold_api::object::Session;
use pinfold_api::request::NewSession;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Short, so that a crash after a run of a second is the first of its streak.
const CONFIG: &str = "[policy]\nstable_after = \"1s\"\n";
/// How many sessions are created at a time, as scripts would.
const MAKERS: usize = 4;

#[derive(Default)]
pub(crate) struct Pinfold {
    /// How many of the sessions have a memory limit.
    pub(crate) limited: usize,
    /// The folder of its binaries, if it is not the version that was built with this program.
    pub(crate) folder: Option<PathBuf>,
}

fn binary(folder: Option<&Path>) -> PathBuf {
    let path = folder.map_or_else(|| beside("pinfold"), |folder| folder.join("pinfold"));
    assert!(path.exists(), "{} is missing: cargo build --release", path.display());
    path
}

pub(crate) fn home(site: &Site) -> PathBuf {
    site.root.join("home")
}

fn client(site: &Site) -> Client {
    Client::new(find_socket(&home(site)))
}

fn find_socket(home: &Path) -> PathBuf {
    let beside = |folder: &Path| Some(folder.join("pinfold.sock")).filter(|path| path.exists());
    let found = wait_for(Duration::from_millis(5), || {
        beside(home)
            .or_else(|| std::fs::read_dir(home).ok()?.flatten().find_map(|entry| beside(&entry.path())))
    });
    found.unwrap_or_else(|| fail("no daemon listens"))
}

pub(crate) fn sessions(site: &Site) -> Vec<Session> {
    client(site).get("/v1/sessions").unwrap()
}

/// Returns the process from which shims are forked: the daemon's only child.
fn nursery(daemon: u32) -> Option<u32> {
    let threads = std::fs::read_dir(format!("/proc/{daemon}/task")).ok()?;
    let texts =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    texts
        .flat_map(|text| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .find_map(|pid| pid.parse().ok())
}

impl Pinfold {
    pub(crate) fn command(&self, site: &Site, words: &[&str]) -> Command {
        let mut command = site.command(binary(self.folder.as_deref()));
        command.args(words).env("PINFOLD_HOME", home(site)).env("PINFOLD_LOCKS", site.root.join("locks"));
        command
    }

    pub(crate) fn said(&self, site: &Site, words: &[&str]) {
        let status = self.command(site, words).status().unwrap();
        assert!(status.success(), "pinfold {words:?}: {status}");
    }

    fn create(&self, site: &Site, number: usize) {
        let wanted = NewSession {
            name: format!("s{number}"),
            mode: Some("always".into()),
            memory: (number < self.limited).then(|| "1G".into()),
            command: Some(site.words(number).to_vec()),
            caller_dir: Some(site.root.display().to_string()),
            ..NewSession::default()
        };
        client(site).post::<serde_json::Value>("/v1/sessions", &wanted).unwrap();
    }
}

impl Supervisor for Pinfold {
    fn prepare(&mut self, site: &Site) {
        std::fs::create_dir_all(home(site)).unwrap();
        std::fs::write(home(site).join("config.toml"), CONFIG).unwrap();
        self.said(site, &["up"]);
        std::thread::scope(|scope| {
            for maker in 0..MAKERS {
                let own = (maker..site.count).step_by(MAKERS);
                let this = &*self;
                scope.spawn(move || own.for_each(|number| this.create(site, number)));
            }
        });
        self.said(site, &["down"]);
    }

    fn start(&mut self, site: &Site) {
        launch(&mut self.command(site, &["up"]));
    }

    fn stop(&mut self, site: &Site) {
        self.said(site, &["down"]);
    }

    fn processes(&self, site: &Site) -> Vec<u32> {
        let status: serde_json::Value = client(site).get("/v1/status").unwrap();
        let daemon = status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let shims = sessions(site).into_iter().filter_map(|session| session.shim_pid);
        daemon.into_iter().chain(daemon.and_then(nursery)).chain(shims).collect()
    }

    fn status(&self, site: &Site) -> Option<Command> {
        Some(self.command(site, &["ls"]))
    }

    fn page(&self, site: &Site) -> Option<Command> {
        Some(self.command(site, &["show", &format!("s{}", site.count / 2)]))
    }

    fn known_exits(&self, site: &Site) -> Option<usize> {
        let output =
            self.command(site, &["events", "--json"]).stdout(std::process::Stdio::piped()).output().unwrap();
        let events: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        Some(events.iter().filter(|event| event["kind"] == "run_exited" && event["signal"] == 9).count())
    }
}

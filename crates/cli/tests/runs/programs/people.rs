//! Where people's verbs come from: terminals of tmux and of editors, ssh, cron, containers. Each asks a real
//! daemon for a session and is classified correctly.

use crate::processes::PATIENCE;
use crate::rights::needs;
use crate::world::World;
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A home with a daemon, and a script that asks it for a given session.
struct Place {
    world: World,
    script: PathBuf,
}

/// Ends a process when dropped, whatever happens to the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Place {
    fn new() -> Place {
        let world = World::new();
        world.ok(&["up"]);
        let script = world.path("ask");
        let (root, home, binary) = (world.root.display(), world.home.display(), world.binary.display());
        let words = format!(
            "#!/bin/sh\nPINFOLD_HOME={home} PINFOLD_LOCKS={root}/locks XDG_STATE_HOME={root}/state \
             {binary} new \"$1\" --mode on-demand -- /bin/cat >{root}/said-$1 2>&1\necho $? >{root}/half-$1\n\
             mv {root}/half-$1 {root}/code-$1\n"
        );
        fs::write(&script, words).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        Place { world, script }
    }

    fn asks(&self, name: &str) -> String {
        format!("{} {name}", self.script.display())
    }

    /// The exit code of the script's verb, and its output.
    fn answer(&self, name: &str) -> (String, String) {
        let (code, begun) = (self.world.path(&format!("code-{name}")), Instant::now());
        while !code.exists() {
            assert!(begun.elapsed() < PATIENCE, "`{name}` did not ask within {PATIENCE:?}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let said = fs::read_to_string(self.world.path(&format!("said-{name}"))).unwrap();
        (fs::read_to_string(code).unwrap().trim().to_owned(), said)
    }

    fn assert_person(&self, name: &str) {
        let (code, said) = self.answer(name);
        assert_eq!(code, "0", "{name}: {said}");
        assert_eq!(self.world.events_of(name, "session_created")[0]["by"]["kind"], "person", "{name}");
    }

    fn run(&self, program: &str, words: &[&str]) {
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.world.root).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{program} {words:?}: {output:?}");
    }
}

#[test]
fn a_window_of_tmux_is_a_persons() {
    let place = Place::new();
    let socket = place.world.path("tmux").display().to_string();
    place.run("tmux", &["-S", &socket, "-f", "/dev/null", "new-session", "-d", &place.asks("window")]);
    place.assert_person("window");
}

#[test]
fn a_terminal_of_an_editor_is_a_persons() {
    let place = Place::new();
    // The library with which VS Code opens its terminals; `./test programs` installs it beside the build.
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../node/node_modules/@lydell/node-pty");
    assert!(library.exists(), "{} is missing: `./test programs` installs it", library.display());
    let script = format!(
        "const pty = require({:?}).spawn({:?}, ['editor'], {{}}); pty.onExit(() => process.exit(0));",
        library.display().to_string(),
        place.script.display().to_string()
    );
    place.run("node", &["-e", &script]);
    place.assert_person("editor");
}

#[test]
fn a_login_over_ssh_is_a_persons() {
    logs_in("-T");
}

#[test]
fn a_login_over_ssh_with_a_terminal_is_a_persons() {
    // A server for logins gives the terminal to its user.
    needs!(Root);
    logs_in("-tt");
}

fn logs_in(terminal: &str) {
    let place = Place::new();
    let path = |name: &str| place.world.path(name).display().to_string();
    for key in ["host", "key"] {
        place.run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &path(key)]);
    }
    // Another process may take the port before sshd does: then the connection fails, and so does this test.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let settings = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
         StrictModes no\nUsePAM no\n",
        path("host"),
        path("key.pub")
    );
    fs::write(place.world.path("sshd"), settings).unwrap();
    // The directory for sshd's privilege separation; Debian's service makes it at every start.
    _ = fs::create_dir("/run/sshd");
    let mut server = Command::new("/usr/sbin/sshd");
    server.args(["-D", "-e", "-f", &path("sshd")]).stdin(Stdio::null());
    let _server = Ended(server.stderr(Stdio::null()).spawn().unwrap());
    let key = path("key");
    let options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "ConnectionAttempts=20"];
    let mut words = vec![terminal, "-p", &port, "-i", &key];
    options.iter().for_each(|option| words.extend(["-o", option]));
    let asks = place.asks("remote");
    words.extend(["127.0.0.1", &asks]);
    place.run("ssh", &words);
    place.assert_person("remote");
}

/// Waits for the next full minute, so only the long mode runs it.
#[test]
#[ignore = "waits for up to a minute: `./test --full`"]
fn a_job_of_cron_is_a_persons() {
    let place = Place::new();
    let table = place.world.path("crontabs");
    fs::create_dir(&table).unwrap();
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    fs::write(table.join(user.trim()), format!("* * * * * {}\n", place.asks("cron"))).unwrap();
    let mut cron = Command::new("busybox");
    cron.args(["crond", "-f", "-c", table.to_str().unwrap()]).stdin(Stdio::null());
    let _cron = Ended(cron.stderr(Stdio::null()).spawn().unwrap());
    let begun = Instant::now();
    while !place.world.path("code-cron").exists() {
        assert!(begun.elapsed().as_secs() < 90, "cron did not run its job");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    place.assert_person("cron");
}

#[test]
fn a_container_is_confined_although_it_has_the_same_user() {
    needs!(Root);
    let place = Place::new();
    let bundle = place.world.path("bundle");
    fs::create_dir_all(bundle.join("rootfs")).unwrap();
    let words = ["--root", &place.world.path("runc").display().to_string()].map(str::to_owned);
    let run = |more: &[&str]| {
        let mut command = Command::new("runc");
        command.args(&words).args(more).current_dir(&bundle).stdin(Stdio::null()).output().unwrap()
    };
    assert!(run(&["spec"]).status.success());
    let file = bundle.join("config.json");
    let mut spec: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    spec["process"]["terminal"] = false.into();
    spec["process"]["noNewPrivileges"] = false.into();
    spec["process"]["args"] = [place.script.to_str().unwrap(), "inside"].as_slice().into();
    spec["root"] = serde_json::json!({ "path": "rootfs", "readonly": false });
    let seen = ["/usr", "/bin", "/lib", "/lib64", "/etc"].map(Path::new);
    let own = [place.world.root.as_path(), place.world.binary.parent().unwrap()];
    for folder in seen.into_iter().filter(|folder| folder.exists()).chain(own) {
        let mount = serde_json::json!({
            "destination": folder, "type": "bind", "source": folder, "options": ["rbind", "rw"],
        });
        spec["mounts"].as_array_mut().unwrap().push(mount);
    }
    fs::write(&file, spec.to_string()).unwrap();
    let name = format!("pinfold-test-{}", std::process::id());
    let ran = run(&["run", &name]);
    let (code, said) = place.answer("inside");
    assert_eq!(code, "77", "{said}: {ran:?}");
    assert!(said.contains("you are confined (mnt, pid, net)"), "{said}");
    assert!(!place.world.sessions().contains_key("inside"));
}

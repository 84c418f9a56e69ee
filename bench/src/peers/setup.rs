//! Prepares what is measured: builds pinfold, and installs its peers.

use super::site::{beside, fail};
use std::path::PathBuf;
use std::process::Command;

/// Debian's packages, each with one of its programs.
const PACKAGES: [(&str, &str); 4] =
    [("daemontools", "svscan"), ("runit", "runsvdir"), ("s6", "s6-svscan"), ("supervisor", "supervisord")];

/// Prepares everything; returns the folder of pm2.
pub(crate) fn everything() -> PathBuf {
    raise_open_files();
    build();
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(_, program)| !is_there(program)).map(|(package, _)| *package).collect();
    if !missing.is_empty() {
        install(&missing);
    }
    pm2()
}

/// Returns the folder of another version's binaries, after building this one.
pub(crate) fn version(folder: &std::path::Path) -> PathBuf {
    raise_open_files();
    build();
    for program in ["pinfold", "pinfold-shim"] {
        let path = folder.join(program);
        if !path.is_file() {
            fail(&format!("{} is missing: build that version and name its folder", path.display()));
        }
    }
    folder.canonicalize().unwrap()
}

/// A thousand children need descriptors, with every supervisor.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Builds what is measured. If this program was not started by cargo, that was done before.
fn build() {
    let Some(cargo) = std::env::var_os("CARGO") else { return };
    let words = [
        "build",
        "--release",
        "--locked",
        "-p",
        "pinfold",
        "-p",
        "pinfold-shim",
        "-p",
        "pinfold-bench",
        "--bins",
    ];
    run(Command::new(cargo).args(words));
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn install(packages: &[&str]) {
    eprintln!("installing {} with apt-get; none of their services is started", packages.join(", "));
    // Debian asks this file whether an installation may start a service.
    let policy = PathBuf::from("/usr/sbin/policy-rc.d");
    let ours = !policy.exists();
    if ours {
        std::fs::write(&policy, "#!/bin/sh\nexit 101\n").unwrap();
        run(Command::new("chmod").args(["+x", "/usr/sbin/policy-rc.d"]));
    }
    let words = ["install", "-y", "--no-install-recommends"];
    let installed =
        Command::new("apt-get").args(words).args(packages).env("DEBIAN_FRONTEND", "noninteractive").status();
    if ours {
        _ = std::fs::remove_file(&policy);
    }
    if !installed.is_ok_and(|status| status.success()) {
        fail(&format!("apt-get install {} failed: install them by hand", packages.join(" ")));
    }
}

fn pm2() -> PathBuf {
    let cache = beside("pinfold-bench-pm2");
    if !cache.join("node_modules/.bin/pm2").exists() {
        eprintln!("installing pm2 with npm into {}", cache.display());
        run(Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--prefix"])
            .arg(&cache)
            .arg("pm2"));
    }
    cache
}

fn run(command: &mut Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{command:?}: {status}")),
        Err(error) => fail(&format!("{command:?}: {error}")),
    }
}

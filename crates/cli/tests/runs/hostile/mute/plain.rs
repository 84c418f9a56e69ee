//! A world run by a user without rights: no groups, and signals only to its own processes.

use crate::world::World;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// The user without rights.
const NOBODY: u32 = 65534;

pub(super) struct Plain {
    pub(super) world: World,
}

impl Plain {
    pub(super) fn new() -> Plain {
        let mut world = World::new();
        let binaries = world.path("bin");
        std::fs::create_dir(&binaries).unwrap();
        let built = world.binary.parent().unwrap().to_owned();
        for name in ["pinfold", "pinfold-shim"] {
            // The checkout may be in a folder that others cannot enter.
            let (from, to) = (built.join(name), binaries.join(name));
            crate::program::link(&from, &to);
        }
        let wrapper = world.path("pinfold");
        let line = format!("#!/bin/sh\n{} '{}' \"$@\"\n", as_nobody(), binaries.join("pinfold").display());
        std::fs::write(&wrapper, line).unwrap();
        std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
        world.binary = wrapper;
        std::os::unix::fs::chown(&world.root, Some(NOBODY), Some(NOBODY)).unwrap();
        Plain { world }
    }

    /// Compiles a C program.
    pub(super) fn build(&self, text: &str, program: &Path) {
        let source = self.world.path("program.c");
        std::fs::write(&source, text).unwrap();
        let built = Command::new("cc").arg("-o").arg(program).arg(&source).status().unwrap();
        assert!(built.success(), "cc: {built}");
    }
}

/// The beginning of a shell command that runs as the user without rights.
pub(super) fn as_nobody() -> String {
    format!("exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --")
}

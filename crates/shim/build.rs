//! How the shim is linked.
//!
//! There is one for each live session, and a program without shared libraries has half the private memory: nothing
//! is relocated, so nothing of it is copied. rustc decides about static programs for a whole build, macros
//! included; so the linker is told here, for one binary.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What rustc asks for, and which archive has it.
const LIBRARIES: [(&str, &str); 7] = [
    ("gcc_s", "gcc_eh"),
    ("c", "c"),
    ("m", "m"),
    ("rt", "rt"),
    ("pthread", "pthread"),
    ("dl", "dl"),
    ("util", "util"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    // Without the archives (some systems have them in a package of their own) the shim is larger, and as good.
    if is_plain_linux() && archives(&out).is_some() && links(&out) {
        let folder = out.display();
        for argument in [format!("-L{folder}"), "-static".to_owned(), "-no-pie".to_owned()] {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
        println!("cargo::metadata=archives={folder}");
    }
}

/// Linux with the GNU library, built where it will run, with the usual linker.
fn is_plain_linux() -> bool {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let same = std::env::var("HOST").ok() == std::env::var("TARGET").ok();
    is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && same
}

/// Puts archives where the linker looks first: it finds them under the names of the shared libraries.
fn archives(out: &Path) -> Option<()> {
    for (wanted, has) in LIBRARIES {
        let found = Command::new("cc").arg(format!("-print-file-name=lib{has}.a")).output().ok()?;
        let path = PathBuf::from(String::from_utf8(found.stdout).ok()?.trim());
        // A compiler that has none repeats the name.
        let path = path.canonicalize().ok().filter(|path| path.is_absolute())?;
        std::fs::write(out.join(format!("lib{wanted}.a")), format!("INPUT({})\n", path.display())).ok()?;
    }
    Some(())
}

/// Whether a static program can be made and run here.
fn links(out: &Path) -> bool {
    let (source, program) = (out.join("static.c"), out.join("static"));
    let written =
        std::fs::write(&source, "#include <stdlib.h>\nint main(void) { return malloc(1) == NULL; }\n");
    let linked = Command::new("cc")
        .args(["-static", "-no-pie"])
        .arg(format!("-L{}", out.display()))
        .arg("-o")
        .args([&program, &source])
        .output();
    written.is_ok()
        && linked.is_ok_and(|linked| linked.status.success())
        && Command::new(&program).status().is_ok_and(|status| status.success())
}

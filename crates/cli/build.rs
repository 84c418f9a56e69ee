//! How the two programs are linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        // No shared libraries at all, where the archives for it are there: they are a third of a verb's time, and half of
        // a shim's memory.
        let archives = std::env::var("DEP_PINFOLD_STATIC_ARCHIVES").ok();
        program(archives.as_deref());
        if let Some(archives) = archives {
            link("pinfold-shim", &[&format!("-L{archives}"), "-static", "-no-pie"]);
        }
    }
}

/// A fixed address and lazy binding: most verbs live for milliseconds, and relocating nine megabytes of server, database
/// and command line would be a third of that.
fn program(archives: Option<&str>) {
    link("pinfold", &["-no-pie"]);
    let Some(archives) = archives else { return link("pinfold", &["-Wl,-z,lazy"]) };
    link("pinfold", &[&format!("-L{archives}"), "-static"]);
    // The standard library uses these where they are there, and an archive gives only what is asked for. Without them
    // a process is started by a fork, which copies the tables of all our memory.
    for function in ["gnu_get_libc_version", "posix_spawn_file_actions_addchdir_np"] {
        link("pinfold", &[&format!("-Wl,-u,{function}")]);
    }
}

fn link(program: &str, arguments: &[&str]) {
    for argument in arguments {
        println!("cargo::rustc-link-arg-bin={program}={argument}");
    }
}

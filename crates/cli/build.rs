//! How the program is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A fixed address and lazy binding: most verbs live for milliseconds, and relocating nine megabytes of server,
    // database and command line would be a third of that.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        match std::env::var("DEP_PINFOLD_STATIC_ARCHIVES") {
            // No shared libraries at all, where the shim has none either: they are another third.
            Ok(archives) => {
                println!("cargo::rustc-link-arg-bins=-L{archives}");
                println!("cargo::rustc-link-arg-bins=-static");
                // The standard library uses these where they are there, and an archive gives only what is asked for.
                // Without them a process is started by a fork, which copies the tables of all our memory.
                for function in ["gnu_get_libc_version", "posix_spawn_file_actions_addchdir_np"] {
                    println!("cargo::rustc-link-arg-bins=-Wl,-u,{function}");
                }
            }
            Err(_) => println!("cargo::rustc-link-arg-bins=-Wl,-z,lazy"),
        }
    }
}

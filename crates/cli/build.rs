//! How the program is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A fixed address and lazy binding: most verbs live for milliseconds, and relocating nine megabytes of server,
    // database and command line would be a third of that.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-bins=-Wl,-z,lazy");
    }
}

//! The command `pinfold-shim`: started by a daemon, never by hand.
//!
//! It is built here so that one `cargo install` installs both programs. All of its code is in the crate
//! `pinfold-shim`; nothing else of this package is linked.

fn main() -> std::process::ExitCode {
    pinfold_shim::process::main()
}

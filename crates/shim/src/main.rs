//! The command `pinfold-shim`: started by a daemon, never by hand.

fn main() -> std::process::ExitCode {
    pinfold_shim::process::main()
}

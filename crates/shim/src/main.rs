//! The shim as a program, for the tests of this crate. The one that people get is `pinfold-shim` of the package `pinfold`.

fn main() -> std::process::ExitCode {
    pinfold_shim::process::main()
}

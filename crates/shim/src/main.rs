//! The shim as a program, for the tests of this crate. Users get `pinfold-shim` from the package `pinfold`.

fn main() -> std::process::ExitCode {
    pinfold_shim::process::main()
}

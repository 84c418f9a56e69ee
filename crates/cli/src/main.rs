//! The command `pinfold`.
fn main() {}

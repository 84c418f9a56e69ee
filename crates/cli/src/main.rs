//! The command `pinfold`.
#![deny(unsafe_code)]
// What is printed leaves through `edge`, which makes it safe to look at.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod attach;
mod audit;
mod connect;
mod damage;
mod demo;
mod edge;
mod error;
mod full;
mod homes;
mod inside;
mod json;
mod paint;
mod places;
mod under;
mod verbs;

use error::{Failure, Kind};
use std::process::ExitCode;

/// The word that makes this program a shim, where the small one is not beside it.
const SHIM: &str = "__shim";

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == SHIM) {
        return pinfold_shim::process::main();
    }
    if pinfold_kernel::own::has_borrowed_rights() {
        let failure =
            Failure::new(Kind::NotPermitted, "pinfold runs commands, so it is never set-uid or set-gid")
                .hint("install it without these bits and without capabilities; sudo runs it as root");
        return error::report(&failure, &args::Global::default());
    }
    match args::parse().and_then(|args| verbs::run(&args).map_err(|failure| (failure, args.global))) {
        Ok(code) => code,
        Err((failure, global)) => error::report(&failure, &global),
    }
}

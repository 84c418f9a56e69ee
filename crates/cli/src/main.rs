//! The command `pinfold`.

mod args;
mod audit;
mod duration;
mod error;
mod json;
mod places;
mod under;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    match args::parse().and_then(|args| verbs::run(&args).map_err(|failure| (failure, args.global))) {
        Ok(code) => code,
        Err((failure, global)) => error::report(&failure, &global),
    }
}

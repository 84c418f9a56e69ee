//! `demo`: shows what pinfold does, in a throw-away home of its own.

use crate::demo;
use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::output::Failure;
use clap::Args;

/// Nothing to choose.
#[derive(Debug, Args)]
pub(crate) struct Demo {}

impl StandaloneVerb for Demo {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        demo::play(global)
    }
}

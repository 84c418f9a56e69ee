//! `version`: prints the version.

use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::output::{Failure, say};
use clap::Args;
use serde_json::json;

/// Nothing to choose.
#[derive(Debug, Args)]
pub(crate) struct Version {}

impl StandaloneVerb for Version {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        let version = env!("CARGO_PKG_VERSION");
        if global.json {
            say(&json!({
                "version": version,
                "api": pinfold_api::VERSION,
                "frames": pinfold_shim::VERSION,
                "store": pinfold_store::SCHEMA_VERSION,
            }));
        } else {
            say(&format!("pinfold {version}"));
        }
        Ok(())
    }
}

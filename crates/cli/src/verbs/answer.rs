//! `answer`: answers a permission request.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, say};
use clap::{Args, ValueEnum};
use pinfold_api::{endpoint, request};
use serde_json::json;

/// Which request, and what to say.
#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// Its name, or a unique beginning of its id
    session: String,
    /// What to say
    answer: Permission,
    /// Which request [default: the oldest]
    id: Option<String>,
    /// Say this to the agent, too
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// Answer all similar requests the same way, where the agent offers that
    #[arg(long)]
    always: bool,
}

/// The answer to a permission request.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Permission {
    Allow,
    Deny,
}

impl DaemonVerb for Answer {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let word = match self.answer {
            Permission::Allow => "allow",
            Permission::Deny => "deny",
        };
        let permission = request::Permission {
            answer: word.to_owned(),
            id: self.id.clone(),
            message: self.message.clone(),
            always: self.always,
        };
        let object = daemon.client()?.ask(&endpoint::AnswerPermission::call(&self.session, &permission))?;
        if daemon.global.json {
            say(&json!(object));
        }
        Ok(())
    }
}

//! `help`: lists the verbs, or explains one.

use crate::doing::HelpVerb;
use crate::global::Global;
use crate::help::{Length, help_page};
use crate::mistakes::no_such_verb;
use crate::output::{Failure, Paper, print, say};
use clap::{Args, Command};
use serde_json::json;

/// What about.
#[derive(Debug, Args)]
pub(crate) struct Help {
    /// The verb [default: all of them]
    verb: Option<String>,
}

impl HelpVerb for Help {
    fn explain(&self, program: &Command, global: &Global) -> Result<(), Failure> {
        if let Some(unknown) = self.verb.as_ref().filter(|verb| program.find_subcommand(verb).is_none()) {
            return Err(no_such_verb(program, unknown, &[]));
        }
        let verb = self.verb.as_deref();
        if global.json {
            say(&json!({ "verb": verb, "text": help_page(program, verb, Length::Long, Paper::endless()) }));
        } else {
            print(&help_page(program, verb, Length::Long, Paper::stdout()));
        }
        Ok(())
    }
}

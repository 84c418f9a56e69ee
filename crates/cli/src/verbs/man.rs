//! `man`: prints man pages, in roff.

use crate::doing::HelpVerb;
use crate::global::Global;
use crate::help::{all_pages, man_page};
use crate::mistakes::no_such_verb;
use crate::output::{Failure, Kind, print, say};
use clap::{Args, Command, ValueHint};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Which page, and where to.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The verb [default: the page of the program]
    verb: Option<String>,
    /// Write all pages into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "verb", value_hint = ValueHint::DirPath)]
    into: Option<PathBuf>,
}

impl HelpVerb for Man {
    fn explain(&self, program: &Command, global: &Global) -> Result<(), Failure> {
        if let Some(unknown) = self.verb.as_ref().filter(|verb| program.find_subcommand(verb).is_none()) {
            return Err(no_such_verb(program, unknown, &[]));
        }
        if let Some(folder) = &self.into {
            let pages = all_pages(program);
            pages.iter().try_for_each(|(name, page)| write(&folder.join(name), page))?;
            if global.json {
                say(&json!(pages.iter().map(|(name, _)| name).collect::<Vec<_>>()));
            }
            return Ok(());
        }
        let page = man_page(program, self.verb.as_deref());
        if global.json {
            say(&json!({ "verb": self.verb, "roff": page }));
        } else {
            print(&page);
        }
        Ok(())
    }
}

fn write(path: &Path, page: &str) -> Result<(), Failure> {
    std::fs::write(path, page)
        .map_err(|error| Failure::new(Kind::Failed, format!("{}: {error}", path.display())))
}

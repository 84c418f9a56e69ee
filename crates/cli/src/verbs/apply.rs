//! `apply`: makes sessions what a file says.
//!
//! First everything is compared and shown, then it is done: a file with something wrong in it changes nothing.

use crate::daemon::Daemon;
use crate::definition;
use crate::doing::Asks;
use crate::global::Global;
use crate::output::{Failure, Kind, say, talk};
use clap::Args;
use pinfold_api::object::{Difference, Session};
use pinfold_api::{Client, endpoint, query, request::NewSession};
use pinfold_core::quoted::quoted;
use pinfold_daemon::declared::{self, DeclaredSession};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which file, and how much of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Apply {
    /// The file: [sessions.NAME] with the fields of POST /v1/sessions
    file: PathBuf,
    /// Archive sessions that the file does not have, unless they are in use
    #[arg(long)]
    prune: bool,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

/// What is to be done.
#[derive(Default)]
struct Plan {
    create: Vec<NewSession>,
    change: Vec<(NewSession, Vec<Difference>)>,
    same: Vec<String>,
    archive: Vec<String>,
    skip: Vec<(String, String)>,
}

impl Asks for Apply {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let (wanted, global) = (self.read()?, &daemon.global);
        let client = daemon.client()?;
        let plan = self.plan(&client, wanted, global)?;
        if !global.quiet {
            plan.show(self.dry_run);
        }
        let mut failed = None;
        if !self.dry_run {
            failed = plan.carry_out(&client, global);
        }
        if global.json {
            say(&plan.object());
        }
        failed.map_or(Ok(()), |failure: Failure| Err(failure.once_told()))
    }
}

impl Apply {
    fn read(&self) -> Result<Vec<DeclaredSession>, Failure> {
        let shown = self.file.display();
        let bad =
            |problem: &dyn std::fmt::Display| Failure::new(Kind::BadConfig, format!("{shown}: {problem}"));
        let text = std::fs::read_to_string(&self.file).map_err(|error| bad(&error))?;
        let mut all = declared::read(&text).map_err(|error| bad(&error))?;
        let file = std::path::absolute(&self.file).map_err(|error| bad(&error))?;
        let folder = file.parent().unwrap_or(Path::new("/"));
        for declared in &mut all {
            let dir = &mut declared.request.dir;
            *dir = dir.take().map(|dir| folder.join(dir).to_string_lossy().into_owned());
        }
        // A child is made after its parent.
        let parents: BTreeMap<String, Option<String>> =
            all.iter().map(|one| (one.request.name.clone(), one.request.parent.clone())).collect();
        all.sort_by_key(|one| depth(&one.request.name, &parents));
        Ok(all)
    }

    fn plan(&self, client: &Client, wanted: Vec<DeclaredSession>, global: &Global) -> Result<Plan, Failure> {
        let known = query::Sessions { known: true, brief: true, ..query::Sessions::default() };
        let sessions: Vec<Session> = client.ask(&endpoint::Sessions::call(&known))?;
        let there: BTreeMap<&str, &Session> =
            sessions.iter().map(|session| (session.name.as_str(), session)).collect();
        let names: BTreeSet<String> = wanted.iter().map(|one| one.request.name.clone()).collect();
        let mut plan = Plan::default();
        for one in wanted {
            match there.get(one.request.name.as_str()) {
                Some(session) => plan.compare(client, session, one, &self.file)?,
                None => {
                    let mut request = new(one, &self.file)?;
                    definition::take_from_here(&mut request, global);
                    plan.create.push(request);
                }
            }
        }
        for session in sessions.iter().filter(|session| self.prune && !names.contains(&session.name)) {
            match in_use(session) {
                Some(why) => plan.skip.push((session.name.clone(), why)),
                None => plan.archive.push(session.name.clone()),
            }
        }
        Ok(plan)
    }
}

/// How many sessions of the file are above one; in a circle, which the daemon refuses, no more than there are.
fn depth(name: &str, parents: &BTreeMap<String, Option<String>>) -> usize {
    let above = std::iter::successors(Some(name), |name| parents.get(*name)?.as_deref());
    above.take(parents.len() + 1).count()
}

/// Why a session that the file does not have is left alone: as `purge` does it, and what runs is in use too.
fn in_use(session: &Session) -> Option<String> {
    let inbox = &session.inbox;
    match () {
        () if session.consumers > 0 => Some("a client is connected".to_owned()),
        () if inbox.in_flight > 0 => Some("a turn is under way".to_owned()),
        () if inbox.queued > 0 => Some("a message waits".to_owned()),
        () if session.pid.is_some() => Some("it runs; `stop` it, or `archive` it".to_owned()),
        () => None,
    }
}

/// A session that is not there yet: what it is only given by name must be known here.
fn new(declared: DeclaredSession, file: &Path) -> Result<NewSession, Failure> {
    let DeclaredSession { mut request, env_names } = declared;
    let mut env = request.env.take().unwrap_or_default();
    for name in env_names {
        let Ok(value) = std::env::var(&name) else {
            let (file, session) = (file.display(), &request.name);
            let message = format!(
                "{file}: session `{session}` is new, and there is no value for its variable `{name}`"
            );
            return Err(Failure::new(Kind::BadConfig, message).hint(format!(
                "set `{name}` where you call `apply`, or write env = {{ {name} = \"...\" }}"
            )));
        };
        env.insert(name, value);
    }
    request.env = Some(env).filter(|env| !env.is_empty());
    definition::from_here(request)
}

impl Plan {
    fn compare(
        &mut self,
        client: &Client,
        session: &Session,
        declared: DeclaredSession,
        file: &Path,
    ) -> Result<(), Failure> {
        let DeclaredSession { mut request, env_names } = declared;
        // Values that are there are kept; those that are not must be known here.
        let missing = env_names.into_iter().filter(|name| !session.env.contains(name)).collect();
        let named = DeclaredSession { request: request.clone(), env_names: missing };
        request.env = new(named, file)?.env;
        let differences = client.ask(&endpoint::Differs::call(&request.name, &request))?;
        match differences.is_empty() {
            true => self.same.push(request.name),
            false => self.change.push((request, differences)),
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.create.is_empty() && self.change.is_empty() && self.archive.is_empty()
    }

    /// What differs, as a diff shows it.
    fn show(&self, dry_run: bool) {
        for request in &self.create {
            talk(&format!("+ {}", request.name));
        }
        for (request, differences) in &self.change {
            talk(&format!("~ {}", request.name));
            differences.iter().for_each(|difference| talk(&line(difference)));
        }
        self.archive.iter().for_each(|name| talk(&format!("- {name} (to the archive)")));
        self.skip.iter().for_each(|(name, why)| talk(&format!("{name} is left alone: {why}")));
        if self.is_empty() {
            talk(&"nothing to do");
        } else if dry_run {
            talk(&"nothing was changed");
        }
    }

    /// Does it, one after another; the first failure, which was told.
    fn carry_out(&self, client: &Client, global: &Global) -> Option<Failure> {
        let mut first = None;
        let mut done = |name: &str, came: Result<String, Failure>| match came {
            Ok(words) if !global.quiet => talk(&format!("{name} {words}")),
            Ok(_) => {}
            Err(failure) => {
                failure.tell(global);
                first.get_or_insert(failure);
            }
        };
        for request in &self.create {
            let made = client.ask(&endpoint::New::call(request)).map_err(Failure::from);
            done(&request.name, made.map(|session: Session| format!("is created: {}", session.why)));
        }
        for (request, _) in &self.change {
            let set = client.ask(&endpoint::Set::call(&request.name, request)).map_err(Failure::from);
            done(&request.name, set.map(|session: Session| when(&session)));
        }
        for name in &self.archive {
            let archived = client.ask(&endpoint::Archive::call(name)).map_err(Failure::from);
            done(name, archived.map(|_: Session| "is archived".to_owned()));
        }
        first
    }

    fn object(&self) -> Value {
        let names = |all: &[NewSession]| all.iter().map(|request| request.name.clone()).collect::<Vec<_>>();
        let changed: Vec<Value> = self
            .change
            .iter()
            .map(|(request, differences)| json!({ "name": request.name, "differences": differences }))
            .collect();
        let skipped: Vec<Value> =
            self.skip.iter().map(|(name, why)| json!({ "name": name, "why": why })).collect();
        json!({
            "created": names(&self.create), "changed": changed, "unchanged": self.same,
            "archived": self.archive, "skipped": skipped,
        })
    }
}

fn when(session: &Session) -> String {
    match session.pid {
        Some(_) => "is changed, from its next run on".to_owned(),
        None => "is changed".to_owned(),
    }
}

fn line(difference: &Difference) -> String {
    let shown = |value: &Option<String>| {
        value.as_deref().map_or_else(|| "none".to_owned(), |text| quoted(text).to_string())
    };
    format!("    {}: {} -> {}", difference.field, shown(&difference.from), shown(&difference.to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_comes_after_its_parent_and_a_circle_ends() {
        let parents = BTreeMap::from([
            ("a".to_owned(), Some("c".to_owned())),
            ("b".to_owned(), Some("b".to_owned())),
            ("c".to_owned(), Some("elsewhere".to_owned())),
        ]);
        assert!(depth("a", &parents) > depth("c", &parents));
        assert_eq!(depth("b", &parents), 4);
    }
}

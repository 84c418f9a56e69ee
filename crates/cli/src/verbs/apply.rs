//! `apply`: makes sessions match a file.
//!
//! The daemon checks the whole file in one request: a mistake anywhere in it changes nothing.

use crate::daemon::Daemon;
use crate::definition;
use crate::doing::DaemonVerb;
use crate::global::Global;
use crate::inside;
use crate::leftovers::none_left;
use crate::output::{Failure, Kind, say, talk};
use clap::Args;
use pinfold_api::object::{Applied, ChangedSession, Difference, Session};
use pinfold_api::request::{self, NewSession};
use pinfold_api::{ClientError, endpoint, query};
use pinfold_core::quoted::quoted;
use pinfold_daemon::declared::{self, DeclaredSession};
use rustix::fs::{Mode, OFlags};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Larger files come only by mistake.
const LARGEST: u64 = 8 << 20;

/// Which file, and how much of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Apply {
    /// The file: [sessions.NAME] with the fields of POST /v1/sessions
    file: PathBuf,
    /// Archive sessions that are not in the file; running ones are stopped first
    #[arg(long)]
    prune: bool,
    /// Check the file and show what would be done
    #[arg(long)]
    dry_run: bool,
}

impl DaemonVerb for Apply {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let (declared, global) = (self.read()?, &daemon.global);
        let client = daemon.client()?;
        let known = query::Sessions { known: true, brief: true, ..query::Sessions::default() };
        let sessions: Vec<Session> = client.ask(&endpoint::Sessions::call(&known))?;
        let request = self.request(declared, &sessions, global)?;
        let mut applied =
            client.ask(&endpoint::Apply::call(&request)).map_err(|error| self.of_file(error))?;
        let now = std::mem::take(&mut applied.sessions);
        if !global.quiet {
            let runs = sessions.iter().filter(|session| session.pid.is_some());
            tell(&applied, &runs.map(|session| session.name.as_str()).collect());
            if !self.dry_run {
                tell_result(&applied, &now);
            } else if !is_empty(&applied) {
                talk(&"nothing was changed");
            }
        }
        if global.json {
            say(&json!(applied));
        }
        let hint = "they are archived as soon as that has ended";
        none_left(&applied.left, "not everything could be archived", hint)
    }
}

impl Apply {
    fn read(&self) -> Result<Vec<DeclaredSession>, Failure> {
        let shown = self.file.display();
        let bad =
            |problem: &dyn std::fmt::Display| Failure::new(Kind::BadConfig, format!("{shown}: {problem}"));
        let text = text_of(&self.file).map_err(|error| bad(&error))?;
        let mut all = declared::read(&text).map_err(|error| bad(&error))?;
        let file = std::path::absolute(&self.file).map_err(|error| bad(&error))?;
        let folder = file.parent().unwrap_or(Path::new("/"));
        for declared in &mut all {
            let dir = &mut declared.request.dir;
            *dir = dir.take().map(|dir| folder.join(dir).to_string_lossy().into_owned());
        }
        Ok(all)
    }

    /// What the daemon is asked: it checks everything, and does all of it or nothing.
    fn request(
        &self,
        declared: Vec<DeclaredSession>,
        sessions: &[Session],
        global: &Global,
    ) -> Result<request::Apply, Failure> {
        let there: BTreeMap<&str, &Session> =
            sessions.iter().map(|session| (session.name.as_str(), session)).collect();
        let mut request = request::Apply {
            prune: self.prune,
            dry_run: self.dry_run,
            caller: inside::caller(),
            ..request::Apply::default()
        };
        for one in declared {
            if let Some(session) = there.get(one.request.name.as_str()) {
                request.change.push(self.changed(session, one)?);
            } else {
                let mut new = definition::from_here(with_values(one, &self.file)?)?;
                definition::take_from_here(&mut new, global);
                request.create.push(new);
            }
        }
        Ok(request)
    }

    /// A session that exists keeps the values that it has; the others must be set here.
    fn changed(&self, session: &Session, declared: DeclaredSession) -> Result<NewSession, Failure> {
        let DeclaredSession { request, env_names } = declared;
        let missing = env_names.into_iter().filter(|name| !session.env.contains(name)).collect();
        with_values(DeclaredSession { request, env_names: missing }, &self.file)
    }

    /// An error about something in the file, with its name.
    fn of_file(&self, mut error: ClientError) -> Failure {
        if let ClientError::Refused(body) = &mut error
            && body.message.starts_with("session `")
        {
            body.message = format!("{}: {}; nothing was changed", self.file.display(), body.message);
        }
        Failure::from(error)
    }
}

/// The text of the file. Nothing is waited for: only a regular file ends.
fn text_of(path: &Path) -> std::io::Result<String> {
    let bad = |problem| Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, problem));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return bad("it is not a regular file");
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return bad("it has more than 8 MiB");
    }
    String::from_utf8(bytes).or_else(|_| bad("it is not UTF-8"))
}

/// The request, with the values here of the variables that the file only names.
fn with_values(declared: DeclaredSession, file: &Path) -> Result<NewSession, Failure> {
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
    Ok(request)
}

/// Shows the differences like a diff; `running` are the sessions that an archive stops.
fn tell(applied: &Applied, running: &BTreeSet<&str>) {
    applied.created.iter().for_each(|name| talk(&format!("+ {name}")));
    for ChangedSession { name, differences } in &applied.changed {
        talk(&format!("~ {name}"));
        differences.iter().for_each(|difference| talk(&line(difference)));
    }
    for name in applied.archived.iter().chain(applied.left.iter().map(|left| &left.session)) {
        let first = if running.contains(name.as_str()) { "stopped, then " } else { "" };
        talk(&format!("- {name} ({first}to the archive)"));
    }
    applied
        .skipped
        .iter()
        .for_each(|skipped| talk(&format!("{} is left alone: {}", skipped.name, skipped.why)));
    if is_empty(applied) {
        talk(&"nothing to do");
    }
}

fn is_empty(applied: &Applied) -> bool {
    let Applied { created, changed, archived, left, .. } = applied;
    created.is_empty() && changed.is_empty() && archived.is_empty() && left.is_empty()
}

fn tell_result(applied: &Applied, now: &[Session]) {
    for session in now {
        let name = &session.name;
        match (applied.created.contains(name), session.pid) {
            (true, _) => talk(&format!("{name} is created: {}", session.why)),
            (false, Some(_)) => talk(&format!("{name} is changed, from its next run on")),
            (false, None) => talk(&format!("{name} is changed")),
        }
    }
    applied.archived.iter().for_each(|name| talk(&format!("{name} is archived")));
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
    fn only_a_regular_file_of_a_bounded_size_is_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        std::fs::write(path("good"), "[sessions.a]\n").unwrap();
        std::fs::write(path("bytes"), b"\xff").unwrap();
        std::fs::File::create(path("large")).unwrap().set_len(LARGEST + 1).unwrap();
        std::fs::File::create(path("largest")).unwrap().set_len(LARGEST).unwrap();
        assert_eq!(text_of(&path("good")).unwrap(), "[sessions.a]\n");
        assert_eq!(text_of(&path("largest")).unwrap().len() as u64, LARGEST);
        let rows = [
            (path("fifo"), "not a regular file"),
            (folder.path().to_owned(), "not a regular file"),
            ("/dev/zero".into(), "not a regular file"),
            (path("large"), "more than 8 MiB"),
            (path("bytes"), "not UTF-8"),
            (path("nowhere"), "No such file"),
        ];
        for (file, problem) in rows {
            let error = text_of(&file).unwrap_err().to_string();
            assert!(error.contains(problem), "{}: {error}", file.display());
        }
    }
}

//! An error as the user sees it: one line, a hint, an exit code, and JSON on request.

use super::edge::{say, talk};
use super::full_disk;
use crate::global::Global;
use pinfold_api::{ClientError, ErrorBody, Mute};
use pinfold_core::quoted::quoted;
use pinfold_daemon::objects;
use pinfold_lock::{AcquireError, BusyBecause, DirectoryError, FolderError, NotAResource};
use serde_json::{Value, json};
use std::error::Error;
use std::process::ExitCode;

pub(crate) use pinfold_api::ErrorKind as Kind;

/// An error for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
    holder: Option<Box<Value>>,
    /// An object shown next to the error in JSON.
    beside: Option<Box<Value>>,
    /// Already reported to the user.
    told: bool,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, holder: None, beside: None, told: false }
    }

    /// A failure with an error and its causes as the message.
    pub(crate) fn from_error(kind: Kind, error: &(dyn Error + 'static)) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            message = format!("{message}: {next}");
            cause = next.source();
        }
        let failure = Self::new(kind, message);
        if full_disk::is_full(error) { failure.hint(full_disk::HINT) } else { failure }
    }

    /// Prints the error for people: one line, and a hint.
    pub(crate) fn tell(&self, global: &Global) {
        // Several threads may report at once; the lines of one error stay together.
        let _whole = std::io::stderr().lock();
        talk(&format!("error: {}", self.message));
        if let Some(hint) = self.hint.as_ref().filter(|_| !global.quiet) {
            talk(&format!("hint: {hint}"));
        }
    }

    /// Marks it as reported: only its exit code is still of use.
    pub(crate) fn once_told(mut self) -> Self {
        self.told = true;
        self
    }

    /// The error object of the contract, without its envelope.
    pub(crate) fn object(&self) -> Value {
        json!({ "kind": self.kind.word(), "message": self.message, "hint": self.hint, "holder": self.holder })
    }

    /// The error object in its envelope, with the object next to it.
    fn whole(&self) -> Value {
        let mut object = self.beside.as_deref().cloned().unwrap_or_else(|| json!({}));
        object["error"] = self.object();
        object
    }

    /// Adds an object to show next to the error in JSON.
    pub(crate) fn with(mut self, object: Value) -> Self {
        self.beside = Some(Box::new(object));
        self
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Removes a hint that would not help.
    pub(crate) fn without_hint(self) -> Self {
        Self { hint: None, ..self }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text.write_str(&self.message)
    }
}

/// Reports the failure and returns its exit code.
pub(crate) fn report(failure: &Failure, global: &Global) -> ExitCode {
    if failure.told {
        return ExitCode::from(failure.kind.exit_code());
    }
    failure.tell(global);
    if global.json {
        say(&failure.whole());
    }
    ExitCode::from(failure.kind.exit_code())
}

impl From<NotAResource> for Failure {
    fn from(error: NotAResource) -> Self {
        Self::from_error(Kind::Usage, &error).hint("a resource is a directory, session:NAME or key:ANY")
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        let (kind, hint) = match &error {
            FolderError::NotOurs { .. } | FolderError::NotPermitted { .. } | FolderError::Replaceable(_) => {
                (Kind::NotPermitted, "PINFOLD_LOCKS names another lock folder")
            }
            FolderError::Foreign { .. } => {
                (Kind::BadConfig, "nothing was changed; PINFOLD_LOCKS names a new or an empty folder")
            }
            FolderError::NoExclusion { .. } => (
                Kind::BadConfig,
                "set PINFOLD_LOCKS to a folder on a local file system, the same for all of them",
            ),
            FolderError::NotADirectory { .. } => (Kind::BadConfig, "PINFOLD_LOCKS names another lock folder"),
            FolderError::Failed { .. } => (Kind::Failed, "PINFOLD_LOCKS names another lock folder"),
        };
        Self::from_error(kind, &error).hint(hint)
    }
}

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Self {
        match &error {
            DirectoryError::Missing { path } => {
                let failure = Self::from_error(Kind::BadConfig, &error);
                match path.to_str().filter(|name| !name.contains('/')) {
                    Some(name) => failure.hint(format!(
                        "`{}` locks a name, without a directory",
                        quoted(&format!("key:{name}"))
                    )),
                    None => failure,
                }
            }
            DirectoryError::NotADirectory { .. } => Self::from_error(Kind::Failed, &error)
                .hint("only directories are locked by path; key:ANY locks a name"),
            DirectoryError::NotPermitted { .. } => Self::from_error(Kind::NotPermitted, &error),
            DirectoryError::Moved { .. } | DirectoryError::Failed { .. } => {
                Self::from_error(Kind::Failed, &error)
            }
        }
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Busy(busy) => {
                let mut failure = Self::from_error(Kind::Busy, &AcquireError::Busy(busy.clone()));
                failure.holder =
                    busy.lock.as_ref().map(|lock| Box::new(json!(objects::holder(&lock.holder))));
                let held = busy.lock.as_ref().map_or(busy.resource.as_str(), |lock| lock.resource.as_str());
                failure.hint(match busy.because {
                    BusyBecause::Held | BusyBecause::Removed | BusyBecause::Survivor(_) => {
                        format!(
                            "`--wait 10s` waits for it; `pinfold unlock {} --kill` ends its holder",
                            quoted(held)
                        )
                    }
                    BusyBecause::Awaited => "`--wait 10s` waits for it".to_owned(),
                })
            }
            AcquireError::AlreadyYours { .. } => Self::from_error(Kind::Busy, &error)
                .hint("you hold it already: run the command without `pinfold lock`"),
            AcquireError::NotAFile { .. } => Self::from_error(Kind::Damaged, &error)
                .hint("nothing was changed; move it out of the lock folder"),
            AcquireError::File { source, .. } => Self::from_error(kind_of(source), &error),
            AcquireError::Directory(error) => error.into(),
            AcquireError::Folder(error) => error.into(),
            AcquireError::Cancelled { .. } | AcquireError::Restless { .. } | AcquireError::Identity(_) => {
                Self::from_error(Kind::Failed, &error)
            }
        }
    }
}

fn kind_of(errno: rustix::io::Errno) -> Kind {
    use rustix::io::Errno;
    if [Errno::ACCESS, Errno::PERM, Errno::ROFS].contains(&errno) { Kind::NotPermitted } else { Kind::Failed }
}

impl From<ErrorBody> for Failure {
    fn from(body: ErrorBody) -> Self {
        Self {
            kind: body.kind,
            message: body.message,
            hint: body.hint,
            holder: body.holder.map(Box::new),
            beside: None,
            told: false,
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(body) => (*body).into(),
            ClientError::Down { .. } => {
                Self::from_error(Kind::Unavailable, &error).hint("`pinfold up` starts the daemon")
            }
            ClientError::Mute(mute) => mute.into(),
            ClientError::Stranger { .. } => Self::from_error(Kind::NotPermitted, &error)
                .hint("nothing was said to it; --home DIR or PINFOLD_HOME names a home that is yours alone"),
            ClientError::Broken(_) => Self::from_error(Kind::Unavailable, &error).hint(
                "the agents go on, and the next verb starts a daemon; what was asked for may have been done or not",
            ),
            ClientError::Garbled(_) => Self::from_error(Kind::Unavailable, &error),
        }
    }
}

impl From<Mute> for Failure {
    fn from(mute: Mute) -> Self {
        let failure = Self::from_error(Kind::Unavailable, &mute);
        let Some(pid) = mute.pid else {
            return failure.hint("its process cannot be seen from here: it is reached where it was started");
        };
        let instead =
            format!("`kill -9 {pid}`, then `pinfold up`, has another take over, and the agents go on");
        failure.hint(match pinfold_kernel::proc::stat::state(pid) {
            Some('T' | 't') => format!("it is stopped: `kill -CONT {pid}` lets it go on; {instead}"),
            Some(_) | None => format!("nothing was changed; {instead}"),
        })
    }
}

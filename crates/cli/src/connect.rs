//! Finds the daemon of a home, and starts it where that is wanted.

use crate::args::Global;
use crate::error::{Failure, Kind};
use crate::places;
use pinfold_api::error::ErrorEnvelope;
use pinfold_api::{Client, ClientError, ErrorBody};
use pinfold_daemon::{Home, Options, StartError};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Another daemon that has the home answers within this, or something is wrong with it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);
/// A daemon that is starting is asked again after this.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// Where everything of a home lives.
pub(crate) fn home(global: &Global) -> Result<Home, Failure> {
    Ok(Home {
        state: places::home(global)?,
        runtime: places::runtime(global)?,
        user_locks: places::user_locks()?,
        config: places::config(global)?,
    })
}

/// Asks at once: whether a daemon answers is seen by its answer. One is started where none does, unless that was
/// forbidden.
pub(crate) fn at_once<T>(
    global: &Global,
    ask: impl Fn(&Client) -> Result<T, ClientError>,
) -> Result<T, Failure> {
    match ask(&Client::new(home(global)?.socket())) {
        Err(ClientError::Down { .. } | ClientError::Broken(_)) => Ok(ask(&client(global)?)?),
        answer => Ok(answer?),
    }
}

/// A client of the daemon; it is started if it does not run, unless that was forbidden.
pub(crate) fn client(global: &Global) -> Result<Client, Failure> {
    let home = home(global)?;
    let client = Client::new(home.socket());
    match client.reach() {
        Ok(()) | Err(ClientError::Refused(_) | ClientError::Garbled(_)) => Ok(client),
        Err(ClientError::Down { .. } | ClientError::Broken(_)) if global.no_start => Err(down(&home)),
        // A daemon that an agent started would be part of the agent's tree, and end with it.
        Err(ClientError::Down { .. } | ClientError::Broken(_))
            if std::env::var_os("PINFOLD_RUN").is_some() =>
        {
            Err(down(&home).hint("inside a run no daemon is started; `pinfold up` outside of it does"))
        }
        Err(ClientError::Down { .. } | ClientError::Broken(_)) => start(&home, global).map(|()| client),
    }
}

/// A client of a daemon that must run already.
pub(crate) fn running(global: &Global) -> Result<Client, Failure> {
    client(&never_starting(global))
}

/// What was asked for, with the daemon left as it is.
pub(crate) fn never_starting(global: &Global) -> Global {
    Global { no_start: true, ..global.clone() }
}

pub(crate) fn down(home: &Home) -> Failure {
    let message = format!("no daemon of {} answers at {}", home.state.display(), home.socket().display());
    Failure::new(Kind::Unavailable, message)
        .hint("`pinfold up` starts it; --home or PINFOLD_HOME names another home")
}

/// Starts the daemon and returns when it answers. When several try, one of them is it and all return.
pub(crate) fn start(home: &Home, global: &Global) -> Result<(), Failure> {
    let until = Instant::now() + ANSWERS_WITHIN;
    while Instant::now() < until {
        // Where one has the home already, none is started to find that out.
        let another = !is_free(home) || matches!(start_one(home, global)?, Started::Another);
        if !another || wait_for_another(home, until) {
            return Ok(());
        }
    }
    Err(down(home))
}

enum Started {
    Up,
    /// Another one was faster.
    Another,
}

fn start_one(home: &Home, global: &Global) -> Result<Started, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::from_error(Kind::Failed, error);
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut command = Command::new(&program);
    if let Some(home) = global.home.as_ref() {
        command.arg("--home").arg(std::path::absolute(home).unwrap_or_else(|_| home.clone()));
    }
    // What keeps it from starting comes back as an object: its log may be what cannot be written.
    command.args(["--json", "up", "--foreground", "--detached"]).current_dir("/");
    // Whoever starts it may itself be part of a run; the daemon is not.
    for variable in ["PINFOLD_RUN", "PINFOLD_SESSION", "PINFOLD_FENCE", "PINFOLD_SOCKET", "NOTIFY_SOCKET"] {
        command.env_remove(variable);
    }
    let log = open_log(home).map_or_else(|_| Stdio::null(), Stdio::from);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        _ = BufReader::new(stdout).read_line(&mut said);
    }
    if said.trim() == "up" {
        return Ok(Started::Up);
    }
    let status = child.wait().map_err(|error| failed(&error))?;
    if status.code() == Some(75) {
        return Ok(Started::Another);
    }
    Err(did_not_start(home, &said, status))
}

/// Waits until the daemon that has the home answers; `false` when there is none any more.
fn wait_for_another(home: &Home, until: Instant) -> bool {
    let client = Client::new(home.socket());
    while Instant::now() < until {
        if client.reach().is_ok() {
            return true;
        }
        if is_free(home) {
            return false;
        }
        std::thread::sleep(ASK_AGAIN);
    }
    false
}

/// Whether no daemon has the home's lock; it is only looked at for a moment.
fn is_free(home: &Home) -> bool {
    use rustix::fs::{FlockOperation, Mode, OFlags};
    let file = rustix::fs::open(home.daemon_lock(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    match file {
        Ok(file) => rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok(),
        Err(_) => true,
    }
}

fn did_not_start(home: &Home, said: &str, status: ExitStatus) -> Failure {
    match serde_json::from_str::<ErrorEnvelope>(said) {
        Ok(ErrorEnvelope { error }) => {
            let message = format!("the daemon did not start: {}", error.message);
            Failure::from(ErrorBody { message, ..error })
        }
        Err(_) => Failure::new(Kind::Failed, format!("the daemon did not start: it ended with {status}"))
            .hint(format!("its log is {}", home.daemon_log().display())),
    }
}

fn open_log(home: &Home) -> std::io::Result<std::fs::File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(home.daemon_log())
}

/// Runs the daemon in this process.
pub(crate) fn run_daemon(global: &Global, detached: bool) -> Result<(), Failure> {
    let home = home(global)?;
    if detached {
        // Fails only for a process that leads a group, which a spawned one does not.
        _ = rustix::process::setsid();
    }
    let umask = Some(rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077)).as_raw_mode());
    let log = detached.then(|| home.daemon_log());
    let shim = shim_program().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    let up = move || {
        if detached {
            crate::verbs::say(&"up");
            close_stdout();
        }
    };
    pinfold_daemon::run(Options { home, shim, umask, log }, up).map_err(|error| failure(&error))
}

/// Whoever waits for our word must not wait for our end.
fn close_stdout() {
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// The small shim beside this program, or this program as shim.
pub(crate) fn shim_program() -> std::io::Result<(PathBuf, Vec<OsString>)> {
    let own = std::env::current_exe()?;
    let small = own.parent().unwrap_or(Path::new("/")).join("pinfold-shim");
    if small.is_file() { Ok((small, Vec::new())) } else { Ok((own, vec![crate::SHIM.into()])) }
}

pub(crate) fn failure(error: &StartError) -> Failure {
    match error {
        StartError::Running => Failure::from_error(Kind::Busy, error).hint("`pinfold status` tells about it"),
        StartError::Store(
            pinfold_store::OpenError::Damaged { .. } | pinfold_store::OpenError::TooNew { .. },
        )
        | StartError::Missing { .. }
        | StartError::Read(pinfold_store::ReadError::Damaged { .. } | pinfold_store::ReadError::Row { .. }) => {
            Failure::from_error(Kind::Damaged, error).hint(crate::damage::hint(error))
        }
        StartError::Place { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Failure::from_error(Kind::NotPermitted, error)
        }
        StartError::Locks(_) | StartError::Config(_) => Failure::from_error(Kind::BadConfig, error),
        StartError::Place { .. }
        | StartError::Store(_)
        | StartError::Read(_)
        | StartError::Commit(_)
        | StartError::System(_) => Failure::from_error(Kind::Failed, error),
    }
}

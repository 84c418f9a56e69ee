//! Finds the daemon of a home, and starts it where that is wanted.

use crate::args::Global;
use crate::error::{Failure, Kind};
use crate::{inside, places};
use pinfold_api::error::ErrorEnvelope;
use pinfold_api::place::Squatter;
use pinfold_api::{Client, ClientError, ErrorBody, Mute, place};
use pinfold_daemon::config::LoadError;
use pinfold_daemon::{Home, Options, StartError};
use pinfold_lock::LOCK_RUNS_VARIABLE;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A daemon that has the home answers within this, or is mute.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// Daemons that come and go before they answer are tried again for so long.
const GIVE_UP: Duration = Duration::from_secs(20);
/// Whoever has the lock and does not answer within this is looked at.
const LOOKED_AT_AFTER: Duration = Duration::from_millis(300);
/// A daemon that is starting is asked again after this.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// Where everything of a home lives.
pub(crate) fn home(global: &Global) -> Result<Home, Failure> {
    let state = places::home(global)?;
    let (runtime, refused) = places::runtime(global)?;
    Ok(Home {
        state,
        runtime,
        user_locks: places::user_locks()?,
        config: places::config(global)?,
        variables: places::variables(global)?,
        refused,
    })
}

/// A client of a home's daemon, wherever that is. Nothing is asked yet.
pub(crate) fn at(home: &Home) -> Client {
    Client::of_home(&home.state, home.socket())
}

/// Asks at once: whether a daemon answers is seen by its answer. One is started where none does, unless that was
/// forbidden.
pub(crate) fn at_once<T>(
    global: &Global,
    ask: impl Fn(&Client) -> Result<T, ClientError>,
) -> Result<T, Failure> {
    match ask(&at(&home(global)?)) {
        Err(ClientError::Down { .. } | ClientError::Broken(_)) => Ok(ask(&client(global)?)?),
        answer => Ok(answer?),
    }
}

/// A client of the daemon; it is started if it does not run, unless that was forbidden.
pub(crate) fn client(global: &Global) -> Result<Client, Failure> {
    let home = home(global)?;
    match find(&home)? {
        Found::Up(client) => Ok(client),
        Found::Down if global.no_start => Err(down(&home)),
        Found::Down => {
            refuse_inside(&home)?;
            start(&home, global)
        }
    }
}

/// What was found of a home's daemon.
pub(crate) enum Found {
    /// It answers.
    Up(Client),
    /// The kernel says that there is none.
    Down,
}

/// Looks for the daemon of a home. Its lock says whether there is one, whatever its socket says; one that is there
/// and does not answer is a failure.
pub(crate) fn find(home: &Home) -> Result<Found, Failure> {
    let begun = Instant::now();
    let until = begun + ANSWERS_WITHIN;
    let client = at(home);
    let mut looked = false;
    loop {
        match client.ping() {
            Ok(_) | Err(ClientError::Refused(_) | ClientError::Garbled(_)) => return Ok(Found::Up(client)),
            Err(ClientError::Mute(mute)) => return Err(mute.into()),
            Err(error @ ClientError::Stranger { .. }) => return Err(error.into()),
            Err(ClientError::Down { .. } | ClientError::Broken(_)) => {}
        }
        // It starts, or its socket was removed and it makes another.
        match place::is_held(&home.state) {
            false => return Ok(Found::Down),
            true if !looked && begun.elapsed() >= LOOKED_AT_AFTER => {
                looked = true;
                refuse_squatter(home)?;
            }
            true if Instant::now() >= until => return Err(mute(home).into()),
            true => std::thread::sleep(ASK_AGAIN),
        }
    }
}

/// A lock that is held proves that somebody has it, not that it is a daemon.
fn refuse_squatter(home: &Home) -> Result<(), Failure> {
    let Some(Squatter { pid, command }) = place::squatter(&home.state) else { return Ok(()) };
    let lock = home.daemon_lock();
    let message = format!("pid {pid} (`{command}`) has {} and is not a daemon", lock.display());
    Err(Failure::new(Kind::Unavailable, message)
        .hint(format!("no daemon can start meanwhile; `kill {pid}` ends it, if it is yours to end")))
}

/// What is said of a daemon that has the home and does not answer.
pub(crate) fn mute(home: &Home) -> Mute {
    Mute { pid: place::holder(&home.state), socket: home.socket() }
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
    let message = format!("no daemon of {} runs", home.state.display());
    Failure::new(Kind::Unavailable, message)
        .hint("`pinfold up` starts it; --home or PINFOLD_HOME names another home")
}

/// A daemon that an agent started would be part of the agent's tree, and end with it.
fn refuse_inside(home: &Home) -> Result<(), Failure> {
    if !inside::is_inside() {
        return Ok(());
    }
    Err(down(home).hint("inside a run no daemon is started; `pinfold up` outside of it does"))
}

/// Starts the daemon and returns when it answers. When several try, one of them is it and all return.
fn start(home: &Home, global: &Global) -> Result<Client, Failure> {
    let until = Instant::now() + GIVE_UP;
    while Instant::now() < until {
        if let Started::Up = start_one(home, global)? {
            return Ok(at(home));
        }
        if let Found::Up(client) = find(home)? {
            return Ok(client);
        }
        refuse_squatter(home)?;
    }
    Err(down(home))
}

enum Started {
    Up,
    /// Another one was faster.
    Another,
}

fn start_one(home: &Home, global: &Global) -> Result<Started, Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::from_error(Kind::Failed, error);
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut command = Command::new(&program);
    if global.home.is_some() {
        command.arg("--home").arg(&home.state);
    }
    // What keeps it from starting comes back as an object: its log may be what cannot be written.
    command.args(["--json", "up", "--foreground", "--detached"]).current_dir("/");
    // What it has in its environment, every agent can read, for as long as it lives.
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_the_daemons(name)));
    // It runs in another directory: what is relative is the caller's.
    command.envs(places::named()?);
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

/// The variables that a daemon keeps from whoever started it: what says where things are, and our own. Not those of a
/// run: whoever starts it may be part of one, the daemon is not.
fn is_the_daemons(name: &OsStr) -> bool {
    const OF_A_RUN: [&str; 5] =
        ["PINFOLD_RUN", "PINFOLD_SESSION", "PINFOLD_FENCE", "PINFOLD_SOCKET", LOCK_RUNS_VARIABLE];
    let Some(name) = name.to_str() else { return false };
    let ours = name.starts_with("PINFOLD_") && !OF_A_RUN.contains(&name);
    ours || name.starts_with("XDG_") || name == "RUST_BACKTRACE" || pinfold_daemon::is_harmless(name)
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
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(no_link).open(home.daemon_log())
}

/// Runs the daemon in this process.
pub(crate) fn run_daemon(global: &Global, detached: bool) -> Result<(), Failure> {
    // Files and locks of whoever started it would stay open for as long as it lives.
    pinfold_kernel::own::close_inherited();
    let home = home(global)?;
    refuse_inside(&home)?;
    if detached {
        // Fails only for a process that leads a group, which a spawned one does not.
        _ = rustix::process::setsid();
    }
    let umask = Some(rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077)).as_raw_mode());
    let log = detached.then(|| home.daemon_log());
    let shim = shim_program().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    let up = move || {
        if detached {
            crate::edge::say(&"up");
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
        StartError::Config(LoadError::NotOurs { .. }) => Failure::from_error(Kind::BadConfig, error)
            .hint("it says which programs run as you: look into it, make it yours, and `chmod go-w` it"),
        StartError::Config(_) => Failure::from_error(Kind::BadConfig, error)
            .hint("correct it, or move it aside: then everything has its usual value"),
        StartError::Locks(_) => Failure::from_error(Kind::BadConfig, error),
        StartError::Place { .. }
        | StartError::Store(_)
        | StartError::Read(_)
        | StartError::Commit(_)
        | StartError::System(_) => Failure::from_error(Kind::Failed, error),
    }
}

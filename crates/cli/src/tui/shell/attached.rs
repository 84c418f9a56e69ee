//! Attaches, and comes back to the same place. It is `pinfold attach` in a process of its own: what counts it as a
//! consumer, and gives the terminal back, is its end, whatever ends it.

use super::terminal::Terminal;
use crate::global::Global;
use crate::signals::Signals;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// Attaches to a session by its name; what was said last, or what went wrong.
pub(super) fn attach(
    name: &str,
    global: &Global,
    terminal: &mut Terminal,
    signals: &Signals,
    mouse: bool,
) -> Result<String, String> {
    terminal.lend();
    let said = run(name, global, signals);
    terminal.resume(mouse).map_err(|error| error.to_string())?;
    said
}

fn run(name: &str, global: &Global, signals: &Signals) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("attach cannot be started: {error}");
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    if let Some(home) = &global.home {
        command.arg("--home").arg(home);
    }
    let mut child = command.args(["attach", "--", name]).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let said = child.stderr.take().map(pass_on);
    wait(&child, signals);
    let status = child.wait().map_err(failed)?;
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    if status.success() { Ok(said) } else { Err(said) }
}

/// Shows what is said while one waits, and remembers the last of it; of an error, what went wrong.
fn pass_on(stderr: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut last, mut error) = (String::new(), None);
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            _ = writeln!(std::io::stderr(), "{line}");
            if let Some(wrong) = line.strip_prefix("error: ") {
                error = Some(wrong.to_owned());
            }
            last = line;
        }
        error.unwrap_or(last)
    })
}

/// Waits for its end; when we are asked to end, it is asked too.
fn wait(child: &Child, signals: &Signals) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some((pid, pidfd)) = pid.and_then(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)))
    else {
        return;
    };
    let mut asked = false;
    loop {
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        // Once it was asked there is nothing more to hear.
        let heard = if asked { &mut fds[..1] } else { &mut fds[..] };
        _ = rustix::event::poll(heard, None);
        if !fds[0].revents().is_empty() {
            return;
        }
        if !asked && signals.end_asked() {
            asked = true;
            _ = kill_process(pid, Signal::TERM);
        }
    }
}

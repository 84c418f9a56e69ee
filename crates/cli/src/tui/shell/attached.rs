//! Attaches to a session, and returns to the UI. This runs `pinfold attach` as a process of its own: when
//! that ends, for whatever reason, it stops being a consumer and the terminal is restored.

use super::terminal::UiTerminal;
use crate::global::Global;
use crate::signals::Signals;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// Attaches to a session by name. Returns the last thing said, or what went wrong.
pub(super) fn attach(
    name: &str,
    global: &Global,
    terminal: &mut UiTerminal,
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

/// Shows what attach says while the user waits, and remembers its last line; of an error, the message.
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

/// Waits for the process to end; if we are asked to end, it is asked too.
fn wait(child: &Child, signals: &Signals) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some((pid, pidfd)) = pid.and_then(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)))
    else {
        return;
    };
    let mut asked = false;
    loop {
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        // Once it was asked, only its end matters.
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

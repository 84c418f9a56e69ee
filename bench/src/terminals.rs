//! Terminals: how soon an attach shows the screen, how long a key takes there and back, how fast a flood
//! passes. Beside tmux, dtach and abduco, as far as they are installed, in turns; what is told are the medians of five rounds.

use crate::table::{Table, median, part};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
/// In each round.
const ATTACHES: usize = 20;
const KEYS: usize = 500;
/// A key is typed this long after the last one was seen.
const PAUSE: Duration = Duration::from_millis(2);
const FLOOD: usize = 100 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// A program that keeps terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeper {
    Pinfold,
    Tmux,
    Dtach,
    Abduco,
}

struct Bench {
    root: PathBuf,
    pinfold: PathBuf,
}

pub(crate) fn run() {
    let temp = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let bench = Bench { root: temp.path().to_owned(), pinfold: own.parent().unwrap().join("pinfold") };
    assert!(bench.pinfold.is_file(), "build it first: cargo build --release --workspace");
    let flood = bench.root.join("flood.txt");
    write_flood(&flood);
    let heads =
        ["", "attach to screen, p50", "key and back, p50", "p99", "100 MiB seen in", "MiB/s", "memory"];
    let here = Keeper::ALL.map(|keeper| (keeper, bench.is_here(keeper)));
    let mut rounds: [Vec<Round>; 4] = [const { Vec::new() }; 4];
    for round in 0..ROUNDS {
        for ((keeper, _), rounds) in here.iter().zip(&mut rounds).filter(|((_, is_here), _)| *is_here) {
            rounds.push(bench.measure(*keeper, &flood, round));
        }
    }
    let mut table = Table::new(heads);
    for ((keeper, is_here), rounds) in here.iter().zip(rounds) {
        match is_here {
            true => table.row(medians(*keeper, rounds)),
            false => table.row([keeper.name().to_owned(), "not here".into()]),
        }
    }
    table.print();
    bench.end();
    println!(
        "must: attach < 50 ms, key p50 < 2 ms, memory bounded; memory: private, of the process that keeps the terminal"
    );
}

/// What one round has measured, in milliseconds and seconds.
struct Round {
    attach: Option<f64>,
    key: f64,
    slow_key: f64,
    flood: f64,
    memory: String,
}

fn medians(keeper: Keeper, mut rounds: Vec<Round>) -> Vec<String> {
    let of = |number: fn(&Round) -> f64| median(rounds.iter().map(number).collect());
    let took = of(|round| round.flood);
    let attached = match keeper.repaints() {
        true => format!("{:.1} ms", of(|round| round.attach.unwrap_or(f64::NAN))),
        false => "shows nothing".into(),
    };
    vec![
        keeper.name().into(),
        attached,
        format!("{:.2} ms", of(|round| round.key)),
        format!("{:.2} ms", of(|round| round.slow_key)),
        format!("{took:.2} s"),
        format!("{:.0}", FLOOD as f64 / took / f64::from(1 << 20)),
        rounds.pop().map(|last| last.memory).unwrap_or_default(),
    ]
}

/// Writes lines as programs print them, with colours and wide characters.
fn write_flood(path: &Path) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let mut written = 0;
    let mut number = 0_u64;
    while written < FLOOD {
        let line = format!("\x1b[3{}m{number:>8}\x1b[m the quick brown fox jumps, wörld 日本\n", number % 8);
        written += line.len();
        number += 1;
        file.write_all(line.as_bytes()).unwrap();
    }
}

impl Keeper {
    const ALL: [Keeper; 4] = [Keeper::Pinfold, Keeper::Tmux, Keeper::Dtach, Keeper::Abduco];

    fn name(self) -> &'static str {
        match self {
            Keeper::Pinfold => "pinfold",
            Keeper::Tmux => "tmux",
            Keeper::Dtach => "dtach",
            Keeper::Abduco => "abduco",
        }
    }

    /// Returns whether it shows what was printed before a client attached.
    fn repaints(self) -> bool {
        matches!(self, Keeper::Pinfold | Keeper::Tmux)
    }
}

impl Bench {
    fn is_here(&self, keeper: Keeper) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        keeper == Keeper::Pinfold || std::env::split_paths(&path).any(|dir| dir.join(keeper.name()).is_file())
    }

    fn command(&self, keeper: Keeper, words: &[&str]) -> Command {
        let program = if keeper == Keeper::Pinfold { self.pinfold.clone() } else { keeper.name().into() };
        let mut command = Command::new(program);
        if keeper == Keeper::Tmux {
            command.args(["-f", "/dev/null", "-S"]).arg(self.root.join("tmux"));
        }
        command.args(words).current_dir(&self.root).env("TERM", "xterm-256color").env_remove("TMUX");
        command.env("PINFOLD_HOME", self.root.join("home")).env("PINFOLD_LOCKS", self.root.join("locks"));
        command.env("ABDUCO_SOCKET_DIR", &self.root);
        command
    }

    /// Starts a shell script in a terminal that stays.
    fn start(&self, keeper: Keeper, name: &str, script: &str) {
        let words: &[&str] = match keeper {
            Keeper::Pinfold => &["new", name, "--pty", "--mode", "once", "--", "sh", "-c", script],
            Keeper::Tmux => &["new-session", "-d", "-s", name, "-x", "80", "-y", "24", script],
            Keeper::Dtach => &["-n", name, "sh", "-c", script],
            Keeper::Abduco => &["-n", name, "sh", "-c", script],
        };
        let mut command = self.command(keeper, words);
        assert!(command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success(), "{keeper:?}");
    }

    fn attach(&self, keeper: Keeper, name: &str) -> Tty {
        let words: &[&str] = match keeper {
            Keeper::Pinfold => &["attach", name],
            Keeper::Tmux => &["attach-session", "-t", name],
            Keeper::Dtach => &["-a", name, "-E", "-z"],
            Keeper::Abduco => &["-a", name],
        };
        Tty::start(self.command(keeper, words))
    }

    fn measure(&self, keeper: Keeper, flood: &Path, round: usize) -> Round {
        // A session of its own for each round: the keys of a round scroll the first line away.
        let (echo, name) = (&format!("echo-{round}"), &format!("flood-{round}"));
        self.start(keeper, echo, "stty raw -echo; echo the-screen-is-here; exec cat");
        std::thread::sleep(Duration::from_millis(300));
        let once = || (0..ATTACHES).map(|_| self.attach_once(keeper, echo)).collect();
        let attach = keeper.repaints().then(|| median(once()));
        let tty = self.attach(keeper, echo);
        tty.quiet();
        let keys: Vec<f64> = (0..KEYS).map(|number| tty.key(b'a' + (number % 26) as u8)).collect();
        drop(tty);
        let script = format!("stty -echo; read x; cat {}; echo the-flood-is-over; read x", flood.display());
        self.start(keeper, name, &script);
        std::thread::sleep(Duration::from_millis(300));
        let tty = self.attach(keeper, name);
        tty.quiet();
        let begun = Instant::now();
        tty.write(b"\r");
        tty.until(b"the-flood-is-over");
        let flood = begun.elapsed().as_secs_f64();
        let memory = self.memory(keeper, name);
        // Its script ends with this.
        tty.write(b"\r");
        tty.quiet();
        Round { attach, key: median(keys.clone()), slow_key: part(keys, 0.99), flood, memory }
    }

    fn attach_once(&self, keeper: Keeper, name: &str) -> f64 {
        let begun = Instant::now();
        let tty = self.attach(keeper, name);
        tty.until(b"the-screen-is-here");
        begun.elapsed().as_secs_f64() * 1e3
    }

    fn memory(&self, keeper: Keeper, name: &str) -> String {
        let pid = match keeper {
            Keeper::Pinfold => {
                let output = self.command(keeper, &["--json", "show", name]).output().unwrap();
                let session: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                session["shim_pid"].as_u64()
            }
            Keeper::Tmux => {
                let output = self.command(keeper, &["display-message", "-p", "#{pid}"]).output().unwrap();
                String::from_utf8_lossy(&output.stdout).trim().parse().ok()
            }
            Keeper::Dtach | Keeper::Abduco => None,
        };
        let Some(pid) = pid else { return "-".into() };
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("RssAnon:")).unwrap_or_default();
        line.split_ascii_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    }

    fn end(&self) {
        _ = self.command(Keeper::Pinfold, &["--quiet", "down"]).status();
        _ = self.command(Keeper::Tmux, &["kill-server"]).stderr(Stdio::null()).status();
        // What dtach and abduco keep of it is one `cat`.
        end_by_name(&self.root);
    }
}

/// Ends the `cat` that echoes: it is the only one that runs in our own folder.
fn end_by_name(root: &Path) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let ours = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == root);
        if let Some(pid) = rustix::process::Pid::from_raw(pid).filter(|_| ours) {
            _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// A terminal with a client in it.
pub(crate) struct Tty {
    master: OwnedFd,
    child: Child,
}

impl Tty {
    fn start(command: Command) -> Tty {
        Tty::start_at(command, 24, 80)
    }

    /// Starts a command on a terminal of another size.
    #[expect(unsafe_code, reason = "a child takes its terminal between fork and exec")]
    pub(crate) fn start_at(mut command: Command, ws_row: u16, ws_col: u16) -> Tty {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: two system calls that are allowed between fork and exec, and nothing else.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        Tty { child: command.spawn().unwrap(), master }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        rustix::io::write(&self.master, bytes).unwrap();
    }

    pub(crate) fn read(&self, within: Duration) -> Option<Vec<u8>> {
        let timeout =
            Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: within.subsec_nanos().into() };
        let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
        if rustix::event::poll(&mut fds, Some(&timeout)).unwrap() == 0 {
            return None;
        }
        let mut bytes = vec![0; 1 << 16];
        let count = rustix::io::read(&self.master, &mut bytes).unwrap_or(0);
        bytes.truncate(count);
        Some(bytes)
    }

    /// Waits until nothing comes any more.
    pub(crate) fn quiet(&self) {
        while self.read(Duration::from_millis(300)).is_some_and(|bytes| !bytes.is_empty()) {}
    }

    pub(crate) fn until(&self, wanted: &[u8]) {
        let mut seen = Vec::new();
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            seen.extend(self.read(Duration::from_secs(1)).unwrap_or_default());
            // Most of a flood is passed over by its letters: the reader must not be what is measured.
            let may = wanted.iter().all(|letter| seen.contains(letter));
            if may && seen.windows(wanted.len()).any(|part| part == wanted) {
                return;
            }
            let kept = seen.len().saturating_sub(wanted.len());
            seen.drain(..kept);
        }
        unreachable!("it never came: {}", String::from_utf8_lossy(wanted));
    }

    /// Milliseconds from a key to its echo.
    fn key(&self, key: u8) -> f64 {
        std::thread::sleep(PAUSE);
        let begun = Instant::now();
        self.write(&[key]);
        let until = begun + PATIENCE;
        while !self.read(Duration::from_secs(1)).is_some_and(|bytes| bytes.contains(&key)) {
            assert!(Instant::now() < until, "no echo");
        }
        begun.elapsed().as_secs_f64() * 1e3
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

//! The last limit for everything that a test waits for: if it never comes, the test program ends and says so.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Far more than any test takes on the slowest machine; a long mode asks for more seconds.
const PATIENCE: u64 = 600;
const VARIABLE: &str = "PINFOLD_TEST_LIMIT";

/// A limit in force, until this is dropped.
pub(crate) struct Limit {
    _ends: Sender<()>,
}

impl Limit {
    /// Sets a limit for the test that runs on this thread.
    pub(crate) fn of_test() -> Limit {
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        let asked = std::env::var(VARIABLE).ok().and_then(|seconds| seconds.parse().ok());
        let patience = Duration::from_secs(asked.unwrap_or(PATIENCE));
        let (_ends, end) = channel();
        std::thread::spawn(move || {
            if end.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                // A panic of this thread would not end the test, which waits for something that does not come.
                eprintln!("`{name}` has waited for {patience:?}; its threads wait in:\n{}", waits());
                std::process::exit(101);
            }
        });
        Limit { _ends }
    }
}

/// Returns what each thread of this process waits in, in the kernel's words.
fn waits() -> String {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let lines = tasks.map(|task| {
        let (name, call) = (read(task.path().join("comm")), read(task.path().join("syscall")));
        format!("  {}: in {}, system call {}", name.trim(), read(task.path().join("wchan")), call.trim())
    });
    lines.collect::<Vec<_>>().join("\n")
}

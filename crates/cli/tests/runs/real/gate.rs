//! A gate where a tool or an agent waits for the test.

use super::stage::Stage;
use std::io::Write;
use std::path::PathBuf;

/// A FIFO whose reader waits until the test opens the gate.
pub(crate) struct Gate {
    fifo: PathBuf,
    here: PathBuf,
    open: PathBuf,
}

impl Gate {
    pub(crate) fn new(stage: &Stage) -> Gate {
        // A place where a sandboxed tool may write, too.
        let path = |name: &str| stage.world.path("work").join(name);
        let gate = Gate { fifo: path("gate"), here: path("gate-here"), open: path("gate-open") };
        rustix::fs::mkfifoat(rustix::fs::CWD, &gate.fifo, 0o600.into()).unwrap();
        gate
    }

    /// The shell command that waits there.
    pub(crate) fn wait(&self) -> String {
        let Gate { fifo, here, open } = self;
        let (fifo, here, open) = (fifo.display(), here.display(), open.display());
        format!("touch {here}; [ -e {open} ] || cat {fifo}")
    }

    /// Waits until a process waits at the gate.
    pub(crate) fn is_reached(&self, stage: &Stage) {
        stage.world.until("somebody at the gate", || self.here.exists().then_some(()));
    }

    /// Waits until no process waits any more although the gate is closed: the one that did was ended.
    pub(crate) fn is_left(&self, stage: &Stage) {
        use rustix::fs::{CWD, Mode, OFlags};
        let (write, mode) = (OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
        // A FIFO without a reader cannot be opened for writing.
        let reads = || rustix::fs::openat(CWD, &self.fifo, write, mode).is_ok();
        stage.world.until("nobody at the gate", || (!reads()).then_some(()));
    }

    /// Lets every process through from now on.
    pub(crate) fn open(&self) {
        std::fs::write(&self.open, "").unwrap();
    }

    /// Lets the waiting process through.
    pub(crate) fn let_go(&self) {
        self.open();
        let mut fifo = std::fs::OpenOptions::new().write(true).open(&self.fifo).unwrap();
        fifo.write_all(b"go\n").unwrap();
    }
}

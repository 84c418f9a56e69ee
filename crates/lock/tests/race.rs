//! Starters race for one lock while holders are killed, lock files are damaged, and a sweeper removes them
//! when they are free.
//!
//! Real processes: this program starts itself as a worker. Every worker checks inside the lock, through a
//! file that only holders touch, that no other is inside and that the fence is larger than every one before.
//! `PINFOLD_RACE_ROUNDS` sets the rounds (500), `PINFOLD_RACE_SEED` repeats a run.
#![expect(clippy::unwrap_used, clippy::panic, reason = "whatever fails here fails the test")]

use pinfold_lock::{Folder, Request, Resource, RunName, Survivors, process};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// No regular wait in here lasts longer, however loaded the machine is.
const WEDGED: Duration = Duration::from_secs(240);
const ROOT: &str = "PINFOLD_RACE_ROOT";

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    match std::env::var_os(ROOT) {
        Some(root) => work(Path::new(&root)),
        // A runner that lists tests before it runs them: this is one test, and it is never ignored.
        None if has("--list") => {
            if !has("--ignored") {
                println!("race: test");
            }
        }
        None => {
            race();
            println!("test result: ok. 1 passed; 0 failed");
        }
    }
}

// ---- the worker ------------------------------------------------------------------------------------------

/// Takes the lock once for every line on stdin: `once` releases it, `stay` waits inside to be killed.
fn work(root: &Path) {
    let folder = Folder::open(root.join("locks")).unwrap();
    let witness = Witness::open(root);
    // The pid may have belonged to an earlier victim.
    witness.sentence(u64::from(std::process::id()), false);
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let run = Some(RunName::fresh(&process::own().unwrap()));
        let survivors = if line.len().is_multiple_of(2) { Survivors::End } else { Survivors::Ignore };
        let request = Request { run, survivors, ..Request::default() };
        let guard = folder.acquire(&Resource::Key("race".into()), &request).unwrap();
        witness.enter(guard.fence().0);
        println!("in {}", guard.fence());
        if line == "stay" {
            std::thread::park();
        }
        witness.leave();
        let receipt = guard.release();
        assert!(receipt.trouble.is_none(), "{receipt:?}");
        println!("out");
    }
}

/// A file that says which worker is inside, which fence was the last, and which workers were sentenced to death.
struct Witness(File);

const INSIDE: u64 = 0;
const FENCE: u64 = 8;
/// One byte per pid from here on.
const SENTENCED: u64 = 16;

impl Witness {
    fn open(root: &Path) -> Self {
        let options =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(root.join("witness"));
        Self(options.unwrap())
    }

    fn read(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        let _ = self.0.read_at(&mut bytes, at).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn write(&self, at: u64, value: u64) {
        self.0.write_all_at(&value.to_le_bytes(), at).unwrap();
    }

    fn sentence(&self, pid: u64, sentenced: bool) {
        self.0.write_all_at(&[u8::from(sentenced)], SENTENCED + pid).unwrap();
    }

    fn is_sentenced(&self, pid: u64) -> bool {
        let mut byte = [0];
        let _ = self.0.read_at(&mut byte, SENTENCED + pid).unwrap();
        byte[0] == 1
    }

    fn enter(&self, fence: u64) {
        let own = u64::from(std::process::id());
        let other = self.read(INSIDE);
        assert!(other == 0 || self.is_sentenced(other), "DOUBLE: {own} entered while {other} was inside");
        self.write(INSIDE, own);
        let last = self.read(FENCE);
        assert!(fence > last, "FENCE: {fence} was granted after {last}");
        self.write(FENCE, fence);
        self.still_alone();
    }

    fn leave(&self) {
        self.still_alone();
        self.write(INSIDE, 0);
    }

    fn still_alone(&self) {
        let own = u64::from(std::process::id());
        for _ in 0..20 {
            let inside = self.read(INSIDE);
            assert!(inside == own, "DOUBLE: {inside} came in beside {own}");
        }
    }
}

// ---- the race --------------------------------------------------------------------------------------------

fn race() {
    let rounds: u64 = std::env::var("PINFOLD_RACE_ROUNDS").map_or(500, |text| text.parse().unwrap());
    let seed = std::env::var("PINFOLD_RACE_SEED").map_or_else(|_| fresh_seed(), |text| text.parse().unwrap());
    println!("race: {rounds} rounds, seed {seed}");
    let mut dice = Dice(seed);
    let mut swept_in_all = 0;
    for (starters, sweeper) in
        [2, 4, 8].into_iter().flat_map(|starters| [(starters, false), (starters, true)])
    {
        let began = Instant::now();
        let mut arena = Arena::new(starters);
        let sweeper = sweeper.then(|| Sweeper::start(arena.temp.path()));
        // The rest of the division goes to the smallest race, where a double grant is most likely.
        let share = rounds / 3 + if starters == 2 { rounds % 3 } else { 0 };
        // With a sweeper every grant has to search for holders of removed files.
        let share = if sweeper.is_some() { share / 4 } else { share };
        for _ in 0..share {
            arena.round(&mut dice);
        }
        let (killed, damaged, grants) = (arena.killed, arena.damaged, arena.grants);
        let swept = sweeper.map_or(0, Sweeper::end);
        swept_in_all += swept;
        arena.end();
        println!(
            "race: {starters} starters: {share} rounds, {grants} grants, {killed} killed, {damaged} damaged, \
             {swept} times swept, 0 doubles, 0 wedges, fences grew ({:.1} s)",
            began.elapsed().as_secs_f64()
        );
    }
    assert!(swept_in_all > 0, "the sweepers never found the file free");
}

fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap() | 1
}

/// Removes the lock file whenever it is free.
struct Sweeper {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<usize>,
}

impl Sweeper {
    fn start(root: &Path) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, folder) = (Arc::clone(&stop), Folder::open(root.join("locks")).unwrap());
        let thread = std::thread::spawn(move || {
            let mut swept = 0;
            while !stopped.load(Ordering::Relaxed) {
                swept += folder.sweep(Duration::ZERO, 16).unwrap();
                // A process that opens the file has to get to its flock once in a while.
                std::thread::sleep(Duration::from_micros(200));
            }
            swept
        });
        Self { stop, thread }
    }

    fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

struct Worker {
    child: Child,
    stdin: ChildStdin,
}

enum Told {
    In(u32),
    Out(u32),
    Gone(u32),
}

struct Arena {
    temp: tempfile::TempDir,
    workers: Vec<Worker>,
    tell: Sender<Told>,
    told: Receiver<Told>,
    killed: u64,
    damaged: u64,
    grants: u64,
}

impl Arena {
    fn new(starters: usize) -> Self {
        let (tell, told) = channel();
        let temp = tempfile::tempdir().unwrap();
        let mut arena = Self { temp, workers: Vec::new(), tell, told, killed: 0, damaged: 0, grants: 0 };
        for _ in 0..starters {
            arena.hire();
        }
        arena
    }

    fn hire(&mut self) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(ROOT, self.temp.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (pid, tell) = (child.id(), self.tell.clone());
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let told = if line.unwrap().starts_with("in") { Told::In(pid) } else { Told::Out(pid) };
                let _ = tell.send(told);
            }
            let _ = tell.send(Told::Gone(pid));
        });
        let stdin = child.stdin.take().unwrap();
        self.workers.push(Worker { child, stdin });
    }

    /// All workers start at once. In some rounds one is killed: inside the lock, or on its way.
    fn round(&mut self, dice: &mut Dice) {
        let fate = dice.below(4);
        let victim = usize::try_from(dice.below(self.workers.len() as u64)).unwrap();
        for (at, worker) in self.workers.iter_mut().enumerate() {
            let order = if at == victim && fate == 0 { "stay" } else { "once" };
            writeln!(worker.stdin, "{order}").unwrap();
        }
        if dice.below(3) == 0 {
            self.damage(dice);
        }
        let mut left: Vec<u32> = self.workers.iter().map(|worker| worker.child.id()).collect();
        let victim_pid = left[victim];
        if fate == 1 {
            for _ in 0..dice.below(3000) {
                std::hint::spin_loop();
            }
            self.kill(victim, &mut left);
        }
        while !left.is_empty() {
            match self.told.recv_timeout(WEDGED) {
                Ok(Told::In(pid)) => {
                    self.grants += 1;
                    if pid == victim_pid && fate == 0 {
                        self.kill(victim, &mut left);
                    }
                }
                Ok(Told::Out(pid)) => left.retain(|other| *other != pid),
                Ok(Told::Gone(pid)) => assert!(!left.contains(&pid), "worker {pid} failed; see above"),
                Err(_) => panic!("WEDGED: {left:?} got no answer"),
            }
        }
        if fate < 2 {
            self.hire();
        }
    }

    fn kill(&mut self, victim: usize, left: &mut Vec<u32>) {
        let mut worker = self.workers.remove(victim);
        let pid = worker.child.id();
        Witness::open(self.temp.path()).sentence(u64::from(pid), true);
        worker.child.kill().unwrap();
        ended(&mut worker.child);
        left.retain(|other| *other != pid);
        self.killed += 1;
    }

    /// Writes garbage over a part of the lock file: a record, one slot, or the mark.
    fn damage(&mut self, dice: &mut Dice) {
        let Some(path) = lock_file(&self.temp.path().join("locks")) else { return };
        // A sweeper may have been faster.
        let Ok(file) = OpenOptions::new().write(true).open(path) else { return };
        let (from, length) = [(3600, 400), (4048, 48), (4096, 24), (4176, 48), (4224, 400)]
            [usize::try_from(dice.below(5)).unwrap()];
        let at = from + dice.below(length);
        let bytes: Vec<u8> = (0..=dice.below(from + length - at)).map(|_| dice.below(256) as u8).collect();
        file.write_all_at(&bytes, at).unwrap();
        self.damaged += 1;
    }

    fn end(self) {
        for mut worker in self.workers {
            drop(worker.stdin);
            assert!(ended(&mut worker.child).success());
        }
    }
}

/// Waits for the end of a worker.
fn ended(child: &mut std::process::Child) -> std::process::ExitStatus {
    let until = std::time::Instant::now() + WEDGED;
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status,
            None => assert!(std::time::Instant::now() < until, "WEDGED: worker {} does not end", child.id()),
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn lock_file(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    entries
        .into_iter()
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("k-")))
}

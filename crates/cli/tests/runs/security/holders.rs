//! A forged lock ends no process: a user who may mount shows a folder of their own at the path of ours, with
//! arbitrary records.

use crate::processes::{self, PATIENCE, lives};
use crate::rights::needs;
use crate::world::{World, held};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SOON: Duration = crate::processes::PATIENCE;
/// A user id that the machine need not know.
const STRANGER: u32 = 12_345;

/// A process that ends with the test, with everything below it.
struct Ours(Child);

impl Ours {
    fn start(command: &mut Command) -> Ours {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        Ours(command.process_group(0).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        _ = self.0.wait();
    }
}

fn until(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The file of the only key that was ever locked in a folder.
fn key_file(folder: &Path) -> Option<PathBuf> {
    let mut files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("k-")))
}

/// A process that has nothing to do with the world's lock, and a file with a record that names it, byte for
/// byte the one that it wrote itself in another folder.
fn innocent(world: &World) -> (Ours, PathBuf) {
    let elsewhere = world.path("elsewhere");
    let mut command = world.command(&["lock", "key:deploy", "--", "sleep", "100000"]);
    let innocent = Ours::start(command.env("PINFOLD_LOCKS", &elsewhere));
    until("it has its own lock", || {
        let own = processes::open_files(innocent.pid());
        own.iter().any(|(_, file)| file.starts_with(elsewhere.join("k-").to_str().unwrap()))
            && processes::children(innocent.pid()).len() == 1
    });
    let forged = world.path("forged");
    std::fs::create_dir(&forged).unwrap();
    let original = key_file(&elsewhere).unwrap();
    let copy = forged.join(original.file_name().unwrap());
    std::fs::copy(original, &copy).unwrap();
    (innocent, copy)
}

/// The user who wants the world to believe the forged record.
#[derive(Debug, Clone, Copy)]
struct Forger {
    user: u32,
    namespaces: &'static str,
    /// What to do in the forged folder once the flock is held.
    then: &'static str,
}

impl Forger {
    /// Binds the forged file's folder over the world's lock folder, in its own namespaces, and takes the flock.
    fn start(self, world: &World, forged: &Path) -> Ours {
        let open =
            |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let folder = forged.parent().unwrap();
        [&world.root, folder].into_iter().for_each(open);
        if self.user != rustix::process::geteuid().as_raw() {
            let given =
                chown(folder, Some(self.user), None).and_then(|()| chown(forged, Some(self.user), None));
            given.expect("a second user");
        }
        let script = "mount --bind \"$1\" \"$2\" && exec 9<>\"$2/$3\" && flock -n 9 && eval \"$4\" && : >\"$2/held\" && \
                      exec sleep 100000";
        let mut command = Command::new("unshare");
        command.args([self.namespaces, "sh", "-c", script, "forger"]);
        command.args([folder, &world.path("locks")]).arg(forged.file_name().unwrap()).arg(self.then);
        command.uid(self.user).current_dir("/");
        let forger = Ours::start(&mut command);
        until("it has the flock", || folder.join("held").exists());
        forger
    }
}

/// Checks that no verb names the innocent process as the holder, and that `unlock --kill` spares it and the forger.
fn nobody_is_fooled(forger: Forger) {
    let world = World::new();
    world.ok(&["lock", "key:deploy", "--", "true"]);
    let (innocent, forged) = innocent(&world);
    let forging = forger.start(&world, &forged);
    let spared = held(innocent.pid());

    let locks = world.json(&["locks"]);
    assert_eq!(locks, serde_json::json!([]), "{forger:?}");
    let said = world.within(SOON, &["--json", "unlock", "key:deploy", "--kill"]);
    assert_eq!((said.code, &said.json()["ended"]), (0, &serde_json::json!([])), "{forger:?} {said:?}");
    assert!(!spared.ends_within(Duration::from_millis(50)), "{forger:?}: the innocent process was ended");
    assert!(lives(forging.pid()), "{forger:?} does not hold it either");
    let taken = world.within(SOON, &["lock", "key:deploy", "--", "true"]);
    assert_eq!(taken.code, 0, "{forger:?}: {taken:?}");
}

#[test]
fn a_folder_bound_over_ours_by_another_user_fools_nobody() {
    needs!(OtherUsersMount);
    nobody_is_fooled(Forger { user: STRANGER, namespaces: "-Urm", then: ":" });
}

#[test]
fn a_folder_bound_over_ours_by_the_same_user_in_a_pid_namespace_fools_nobody() {
    needs!(UserNamespaces);
    let user = rustix::process::geteuid().as_raw();
    nobody_is_fooled(Forger { user, namespaces: "-Urmpf", then: ":" });
}

#[test]
fn a_removed_file_of_a_folder_bound_over_ours_fools_nobody() {
    needs!(UserNamespaces);
    let user = rustix::process::geteuid().as_raw();
    nobody_is_fooled(Forger { user, namespaces: "-Urm", then: "rm \"$2/$3\"" });
}

/// A process of ours holds the real lock while the forged one names the innocent process: the texts name the
/// real holder.
#[test]
fn beside_a_forged_lock_the_real_holder_is_named_and_ended() {
    needs!(UserNamespaces);
    let world = World::new();
    let real = Ours::start(&mut world.command(&["lock", "key:deploy", "--", "sleep", "100000"]));
    until("it is held", || world.json(&["locks"]).as_array().unwrap().len() == 1);
    let (innocent, forged) = innocent(&world);
    let user = rustix::process::geteuid().as_raw();
    let _forging = Forger { user, namespaces: "-Urm", then: ":" }.start(&world, &forged);
    let busy = world.within(SOON, &["--json", "lock", "key:deploy", "--", "true"]);
    assert_eq!((busy.code, &busy.error()["holder"]["pid"]), (75, &real.pid().into()), "{busy:?}");
    let (spared, ended) = (held(innocent.pid()), held(real.pid()));
    let said = world.within(SOON, &["unlock", "key:deploy", "--kill"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(ended.ends_within(SOON));
    assert!(!spared.ends_within(Duration::from_millis(50)), "the innocent process was ended: {said:?}");
}

/// A process that may read a lock file can take its flock. The record there is of the previous holder, which
/// lives and has let go.
#[test]
fn a_reader_that_takes_the_flock_is_the_holder_and_not_whom_the_record_names() {
    let world = World::new();
    let (innocent, forged) = innocent(&world);
    let locks = world.path("locks");
    world.ok(&["lock", "key:deploy", "--", "true"]);
    let file = locks.join(forged.file_name().unwrap());
    std::fs::copy(&forged, &file).unwrap();
    let script = "exec 9<\"$1\" && flock -n 9 && exec sleep 100000";
    let reader = Ours::start(Command::new("sh").args(["-c", script, "reader"]).arg(&file).env_clear());
    until("it has the flock", || world.json(&["locks"]).as_array().unwrap().len() == 1);
    assert_eq!(world.json(&["locks"])[0]["holder"]["pid"], reader.pid());
    let (spared, ended) = (held(innocent.pid()), held(reader.pid()));
    let said = world.within(SOON, &["unlock", "key:deploy", "--kill"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(ended.ends_within(SOON));
    assert!(!spared.ends_within(Duration::from_millis(50)), "the innocent process was ended: {said:?}");
}

/// A command under a lock may become another user; it keeps the lock, and only its own user or root can end
/// it by hand.
#[test]
fn unlock_signals_nobody_of_another_user() {
    needs!(OtherUser);
    let world = World::new();
    let mut command = world.command(&["lock", "key:deploy", "--"]);
    let user = STRANGER.to_string();
    command.args(["setpriv", "--reuid", &user, "--clear-groups", "--", "sleep", "100000"]);
    let holder = Ours::start(&mut command);
    let other = || processes::children(holder.pid()).first().copied();
    let is_another = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", other()?)).ok()?;
        status.lines().any(|line| line.starts_with(&format!("Uid:\t{user}"))).then_some(())
    };
    until("it is another user's", || is_another().is_some());
    let other = held(other().unwrap());
    let said = world.within(SOON, &["unlock", "key:deploy", "--kill"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("another user"), "{said:?}");
    assert!(!other.ends_within(Duration::from_millis(50)), "{said:?}");
    other.kill();
}

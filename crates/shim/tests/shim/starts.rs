//! Starts that fail, starts that are repeated, and what an agent finds when it begins.

use crate::world::{Daemon, Ends, PATIENCE, World, command, lives, shell, wait_for_end};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_lock::{Request, Resource};
use pinfold_shim::client::spawn;
use pinfold_shim::log::Stream;
use pinfold_shim::{Command, Directory, Report, Start, StartFailure};
use std::os::unix::fs::PermissionsExt;

fn failed(daemon: &mut Daemon) -> (u64, StartFailure) {
    daemon.expect("StartFailed", |report| match report {
        Report::StartFailed { run, why } => Some((run.0, *why)),
        Report::Started { run, .. } => panic!("{run} started"),
        _ => None,
    })
}

#[test]
fn a_program_that_cannot_be_executed_is_never_said_to_run() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let plain = world.path("plain");
    std::fs::write(&plain, "text").unwrap();
    let orphan = world.path("orphan");
    std::fs::write(&orphan, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&orphan, PermissionsExt::from_mode(0o755)).unwrap();
    let program = |name: &str, bytes: &[u8]| {
        let file = world.path(name);
        std::fs::write(&file, bytes).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        file.into_os_string().into_string().unwrap()
    };
    let mut own = std::fs::read("/proc/self/exe").unwrap();
    // No machine has this number.
    own[18..20].copy_from_slice(&[0xfe, 0xfe]);
    let foreign = program("foreign", &own);
    let bytes = program("bytes", b"MZ\x90\0\x03\0\0\0exit 5\n");
    let rows = [
        ("/no/such/program", StartFailure::ProgramMissing),
        ("no-such-program", StartFailure::ProgramMissing),
        ("/etc/passwd/x", StartFailure::ProgramMissing),
        ("/tmp", StartFailure::NotExecutable { errno: 13 }),
        (plain.to_str().unwrap(), StartFailure::NotExecutable { errno: 13 }),
        (orphan.to_str().unwrap(), StartFailure::NotExecutable { errno: 2 }),
        (&foreign, StartFailure::NotExecutable { errno: 8 }),
        (&bytes, StartFailure::NotExecutable { errno: 8 }),
    ];
    for (number, (program, why)) in rows.into_iter().enumerate() {
        let run = number as u64 + 1;
        daemon.start(command(run, &[program]));
        assert_eq!(failed(&mut daemon), (run, why), "{program}");
        let record = world.records("api").pop().unwrap();
        assert_eq!((record.run.0, record.ended.exit), (run, Exit::NeverStarted));
    }
    // A failed start leaves the shim ready for the next.
    daemon.start(command(10, &["true"]));
    daemon.started();
}

#[test]
fn a_script_without_an_interpreter_line_is_the_shells() {
    let world = World::new();
    let script = world.path("script");
    std::fs::write(&script, "echo $1 from $0; exit 5\n").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let mut daemon = world.shim("api");
    daemon.start(command(1, &[script.to_str().unwrap(), "hello"]));
    assert_eq!(daemon.exited().ended.exit, Exit::Code(5));
    assert!(world.log("api", Stream::Out).starts_with(b"hello from"));
}

#[test]
fn a_missing_directory_is_named_as_such() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(Start { directory: Directory::Path("/no/such".into()), ..command(1, &["true"]) });
    assert_eq!(failed(&mut daemon), (1, StartFailure::DirectoryMissing));
    daemon.start(Start { directory: Directory::Locked, ..command(2, &["true"]) });
    assert_eq!(failed(&mut daemon), (2, StartFailure::DirectoryMissing));
}

/// Starts a shim that has a directory's lock besides that of its session.
fn shim_in(world: &World, directory: &Resource) -> Daemon {
    let session = world.lock("api");
    let directory = world.folder.acquire(directory, &Request::default()).unwrap();
    let locks = [(&world.folder, &session), (&world.folder, &directory)];
    let (child, mut link) = spawn(&world.opening("api"), &locks).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let welcome = crate::world::welcome(&mut link);
    let mut daemon = Daemon { child, link, welcome, passed: Vec::new() };
    drop((session.surrender(), directory.surrender()));
    daemon.send(&Command::Go);
    daemon
}

#[test]
fn every_lock_names_the_run_and_by_each_its_survivors_are_found() {
    let world = World::new();
    let directory = Resource::Directory(world.path("work"));
    let mut daemon = shim_in(&world, &directory);
    let start = shell(1, "setsid sh -c 'echo survivor $$; exec sleep 1000' & while :; do sleep 1000; done");
    let run = start.run_id.clone();
    daemon.start(start);
    let (_, agent, _) = daemon.started();
    daemon.printed("survivor ");
    for resource in [&World::session("api"), &directory] {
        let seen = world.folder.holder_of(resource).unwrap().unwrap();
        assert_eq!(seen.run.map(|run| run.to_string()).as_deref(), Some(&*run), "{resource}");
        assert_eq!(seen.holder.identity.unwrap().pid, agent, "{resource}");
    }
    let left = crate::stops::marked(&run);
    assert!(left.len() > 1, "the agent and its child carry the run: {left:?}");
    daemon.child.kill().unwrap();
    daemon.child.ended();
    wait_for_end(agent);
    // Taking the directory, for another session, ends what is left of the run.
    let until = std::time::Instant::now() + PATIENCE;
    let request = Request { survivors: pinfold_lock::Survivors::End, ..Request::default() };
    let guard = world.folder.acquire_until(&directory, &request, until).unwrap();
    assert_eq!(crate::stops::marked(&run), [] as [u32; 0]);
    drop(guard);
}

#[test]
fn an_agent_starts_in_the_locked_directory_wherever_its_path_leads_by_now() {
    let world = World::new();
    let work = world.path("work");
    let mut daemon = shim_in(&world, &Resource::Directory(work.clone()));
    std::fs::rename(&work, world.path("moved")).unwrap();
    std::fs::create_dir(&work).unwrap();
    let start = Start { directory: Directory::Locked, ..shell(1, "pwd -P; touch here") };
    daemon.start(start.clone());
    assert_eq!(daemon.exited().ended.exit, Exit::Code(0));
    assert!(world.path("moved/here").exists());

    std::fs::remove_dir_all(world.path("moved")).unwrap();
    daemon.start(Start { run: RunNumber(2), ..start });
    assert_eq!(failed(&mut daemon), (2, StartFailure::DirectoryMissing));
}

#[test]
fn a_start_counts_once_and_an_older_one_not_at_all() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let start = command(5, &["sleep", "1000"]);
    daemon.start(start.clone());
    let first = daemon.started();
    daemon.start(start.clone());
    assert_eq!(daemon.started(), first);
    daemon.start(command(4, &["true"]));
    assert_eq!(failed(&mut daemon), (4, StartFailure::Outdated { last: RunNumber(5) }));
    daemon.start(command(6, &["true"]));
    assert_eq!(failed(&mut daemon), (6, StartFailure::Occupied { run: RunNumber(5) }));
    daemon.send(&Command::Stop { run: RunNumber(5), grace: PATIENCE });
    let exited = daemon.exited();
    assert!(!lives(first.1));
    // The end of a run is reported again if it is started or stopped again.
    daemon.start(start);
    assert_eq!(daemon.exited(), exited);
    daemon.send(&Command::Stop { run: RunNumber(5), grace: PATIENCE });
    assert_eq!(daemon.exited(), exited);
    daemon.start(command(3, &["true"]));
    assert_eq!(failed(&mut daemon), (3, StartFailure::Outdated { last: RunNumber(5) }));
    daemon.send(&Command::Stop { run: RunNumber(99), grace: PATIENCE });
    daemon.expect("NoSuchRun", |report| (*report == Report::NoSuchRun { run: RunNumber(99) }).then_some(()));
}

#[test]
fn a_run_that_an_earlier_shim_recorded_is_not_started_again() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(7, "exit 3"));
    let exited = daemon.exited();
    daemon.send(&Command::Release);
    daemon.gone();
    let mut daemon = world.shim("api");
    assert_eq!(daemon.welcome.exits, std::slice::from_ref(&exited));
    daemon.start(shell(7, "exit 4"));
    assert_eq!(daemon.exited(), exited);
    daemon.send(&Command::Ack { run: RunNumber(7) });
    daemon.start(shell(8, "exit 5"));
    assert_eq!(daemon.exited().run, RunNumber(8));
    let mut link = world.connect("api", 2);
    let exits = crate::world::welcome(&mut link).exits;
    assert_eq!(exits.iter().map(|exited| exited.run.0).collect::<Vec<_>>(), [8]);
}

#[test]
fn the_environment_is_what_was_given_and_what_pinfold_says() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let mut start = Start { socket: Some("/run/api.sock".into()), ..command(1, &["env"]) };
    start.environment.push("PINFOLD_RUN=of-another".into());
    start.environment.push("PINFOLD_SESSION=another".into());
    let run_id = start.run_id.clone();
    daemon.start(start);
    let (_, _, fence) = daemon.started();
    daemon.exited();
    let text = String::from_utf8(world.log("api", Stream::Out)).unwrap();
    let mut lines: Vec<_> = text.lines().filter(|line| !line.starts_with("NOTIFY_SOCKET=@")).collect();
    lines.sort_unstable();
    let (fence, run) = (format!("PINFOLD_FENCE={fence}"), format!("PINFOLD_RUN={run_id}"));
    let expected = [
        "GIVEN=yes",
        "PATH=/usr/local/bin:/usr/bin:/bin",
        &fence,
        &run,
        "PINFOLD_SESSION=api",
        "PINFOLD_SOCKET=/run/api.sock",
    ];
    assert_eq!(lines, expected);
    assert_eq!(text.lines().count(), 7);
}

#[test]
fn an_agent_begins_with_clean_signals_its_own_session_and_the_limits_it_was_given() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let script = "grep -E '^Sig(Blk|Ign|Cgt)|^ShdPnd' /proc/self/status; ulimit -n; umask; \
                  cut -d' ' -f5,6 /proc/self/stat; echo $$";
    let start = Start { open_files: Some((333, 444)), umask: Some(0o027), ..shell(1, script) };
    daemon.start(start);
    daemon.exited();
    let text = String::from_utf8(world.log("api", Stream::Out)).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let pid = lines[lines.len() - 1];
    assert!(lines.contains(&"333") && lines.contains(&"0027"), "{text}");
    assert!(lines.contains(&format!("{pid} {pid}").as_str()), "{text}");
    assert!(lines.contains(&"SigBlk:\t0000000000000000"), "{text}");
    assert!(lines.contains(&"SigIgn:\t0000000000000000"), "{text}");
}

#[test]
fn fences_grow_with_every_run_and_are_in_the_lock_before_the_agent_is() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let mut last = 0;
    for run in 1..=3 {
        let start = command(run, &["sleep", "1000"]);
        let run_id = start.run_id.clone();
        daemon.start(start);
        let (_, pid, fence) = daemon.started();
        assert!(fence > last);
        last = fence;
        let seen = world.holder("api").unwrap();
        assert_eq!(seen.fence.unwrap().0, fence);
        assert_eq!(seen.run.unwrap().as_str(), run_id);
        assert_eq!(seen.holder.identity.unwrap().pid, pid);
        daemon.send(&Command::Stop { run: RunNumber(run), grace: PATIENCE });
        daemon.exited();
        wait_for_end(pid);
        assert!(world.holder("api").is_some(), "the lock is kept over the gap");
    }
}

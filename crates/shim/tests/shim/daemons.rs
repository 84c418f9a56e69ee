//! Daemons come, go, die and come back.

use crate::world::{Daemon, Ends, PATIENCE, World, command, lives, shell, wait_until, welcome};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::{Command, Keeping, Report};
use std::time::{Duration, Instant};

#[test]
fn a_daemon_that_comes_back_finds_the_same_run() {
    let world = World::new();
    let mut old = world.shim("api");
    old.start(command(1, &["sleep", "1000"]));
    let (_, pid, fence) = old.started();
    let mut link = world.connect("api", 2);
    let seen = welcome(&mut link);
    let Keeping::Running { run, process, .. } = seen.keeping else { panic!("{seen:?}") };
    assert_eq!((run, process.pid, process.fence), (RunNumber(1), pid, fence));
    assert_eq!((seen.shim, seen.generation), (old.child.id(), 2));
    // The older connection is dropped with everything unread in it.
    assert!(matches!(old.link.receive(Some(Instant::now() + PATIENCE)), Ok(None)));
    link.send(&Command::Stop { run, grace: PATIENCE }).unwrap();
    let mut new = Daemon { link, passed: Vec::new(), welcome: seen, child: take_child(old) };
    assert_eq!(new.exited().ended.exit, Exit::Signal(15));
}

/// Returns the child of a daemon that is no longer needed.
fn take_child(mut daemon: Daemon) -> std::process::Child {
    let nobody = std::process::Command::new("true").spawn().unwrap();
    std::mem::replace(&mut daemon.child, nobody)
}

#[test]
fn an_older_daemon_is_refused_and_disturbs_nobody() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(command(1, &["cat"]));
    daemon.started();
    let mut newer = world.connect("api", 7);
    welcome(&mut newer);
    let mut older = world.connect("api", 6);
    let until = Some(Instant::now() + PATIENCE);
    assert_eq!(older.receive(until).unwrap(), Some(Report::Refused { generation: 7 }));
    assert_eq!(older.receive(until).unwrap(), None);
    newer.send(&Command::CloseInput { run: RunNumber(1) }).unwrap();
    loop {
        if let Some(Report::Exited(exited)) = newer.receive(until).unwrap() {
            assert_eq!(exited.ended.exit, Exit::Code(0));
            break;
        }
    }
}

#[test]
fn the_same_daemon_may_connect_again() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(command(1, &["sleep", "1000"]));
    let (_, pid, _) = daemon.started();
    for _ in 0..2 {
        let mut again = world.connect("api", 1);
        let answer = again.receive(Some(Instant::now() + PATIENCE)).unwrap();
        let Some(Report::Welcome(seen)) = answer else { panic!("{answer:?} instead of a welcome") };
        let Keeping::Running { process, .. } = seen.keeping else { panic!("{seen:?}") };
        assert_eq!((process.pid, seen.generation), (pid, 1));
    }
}

#[test]
fn commands_of_an_older_daemon_that_were_not_read_are_never_obeyed() {
    let world = World::new();
    let mut old = world.shim("api");
    old.start(command(1, &["cat"]));
    let (_, pid, _) = old.started();
    // The shim is stopped while both daemons speak, so both are there when it goes on.
    let shim = rustix::process::Pid::from_child(&old.child);
    rustix::process::kill_process(shim, rustix::process::Signal::STOP).unwrap();
    let stat = format!("/proc/{}/stat", old.child.id());
    wait_until("the shim sleeps", || crate::world::read(stat.as_ref()).contains(") T "));
    old.send(&Command::Stop { run: RunNumber(1), grace: Duration::ZERO });
    let mut new = world.connect("api", 2);
    rustix::process::kill_process(shim, rustix::process::Signal::CONT).unwrap();
    welcome(&mut new);
    assert!(matches!(old.link.receive(Some(Instant::now() + PATIENCE)), Ok(None)));
    assert!(lives(pid));
    new.send(&Command::CloseInput { run: RunNumber(1) }).unwrap();
    let until = Some(Instant::now() + PATIENCE);
    loop {
        if let Some(Report::Exited(exited)) = new.receive(until).unwrap() {
            assert_eq!(exited.ended.exit, Exit::Code(0), "the older daemon's stop was obeyed");
            break;
        }
    }
}

#[test]
fn an_agent_that_ends_while_no_daemon_is_there_is_recorded_and_the_locks_go() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(shell(1, "read line; echo last words; exit 9"));
    let (_, pid, _) = daemon.started();
    let shim = daemon.child.id();
    // The daemon dies; the shim has its own copy of the agent's stdin, so the agent lives on.
    let nobody = std::process::Command::new("true").spawn().unwrap();
    let mut child = std::mem::replace(&mut daemon.child, nobody);
    drop(daemon);
    assert!(lives(pid) && lives(shim));
    let mut link = world.connect("api", 2);
    welcome(&mut link);
    link.send(&Command::CloseInput { run: RunNumber(1) }).unwrap();
    drop(link);
    child.ended();
    let records = world.records("api");
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].ended.exit, Exit::Code(9));
    assert!(world.log("api", pinfold_shim::log::Stream::Out).ends_with(b"last words\n"));
    assert!(world.holder("api").is_none());
    assert!(!world.opening("api").listen.exists());
}

#[test]
fn a_shim_whose_parent_vanishes_before_go_leaves_and_starts_nothing() {
    let world = World::new();
    let mut daemon = world.waiting_shim("api");
    daemon.start(command(1, &["true"]));
    daemon.expect("a refusal", |report| {
        matches!(report, Report::StartFailed { run: RunNumber(1), .. }).then_some(())
    });
    assert!(world.holder("api").is_some());
    let nobody = std::process::Command::new("true").spawn().unwrap();
    let mut child = std::mem::replace(&mut daemon.child, nobody);
    drop(daemon);
    child.ended();
    assert!(world.holder("api").is_none());
    assert_eq!(world.records("api"), []);
}

#[test]
fn a_release_while_a_run_lives_is_without_effect() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(command(1, &["cat"]));
    daemon.started();
    daemon.send(&Command::Release);
    daemon.send(&Command::CloseInput { run: RunNumber(1) });
    assert_eq!(daemon.exited().ended.exit, Exit::Code(0));
    assert!(world.holder("api").is_some());
    daemon.send(&Command::Release);
    daemon.gone();
    assert!(world.holder("api").is_none());
}

#[test]
fn everything_may_be_said_at_once() {
    let world = World::new();
    let guard = world.lock("api");
    let (child, mut link) =
        pinfold_shim::client::spawn(&world.opening("api"), &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    link.send(&Command::Go).unwrap();
    link.send(&Command::Start(Box::new(shell(1, "exit 2")))).unwrap();
    let seen = welcome(&mut link);
    drop(guard.surrender());
    let mut daemon = Daemon { child, link, welcome: seen, passed: Vec::new() };
    daemon.started();
    assert_eq!(daemon.exited().ended.exit, Exit::Code(2));
}

#[test]
fn whoever_does_not_say_hello_is_not_listened_to() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(command(1, &["cat"]));
    daemon.started();
    let listen = world.opening("api").listen;
    let mut rude = pinfold_shim::client::ShimConnection::connect(&listen).unwrap();
    rude.send(&Command::Stop { run: RunNumber(1), grace: Duration::ZERO }).unwrap();
    assert!(matches!(rude.receive(Some(Instant::now() + PATIENCE)), Ok(None)));
    // Many silent connections crowd out no daemon.
    let silent: Vec<_> =
        (0..30).map(|_| pinfold_shim::client::ShimConnection::connect(&listen).unwrap()).collect();
    let mut link = world.connect("api", 2);
    assert!(matches!(welcome(&mut link).keeping, Keeping::Running { .. }));
    drop(silent);
}

#[test]
fn a_run_that_is_tied_to_whoever_started_it_ends_with_it() {
    let world = World::new();
    let guard = world.lock("api");
    let opening = pinfold_shim::client::Opening { tie: pinfold_shim::Tie::ToParent, ..world.opening("api") };
    let (mut child, mut link) = pinfold_shim::client::spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    welcome(&mut link);
    drop(guard.surrender());
    link.send(&Command::Go).unwrap();
    link.send(&Command::Start(Box::new(shell(1, "setsid sleep 1000 & exec sleep 1000")))).unwrap();
    let until = Some(Instant::now() + PATIENCE);
    while !matches!(link.receive(until).unwrap(), Some(Report::Started { .. })) {}
    drop(link);
    child.ended();
    assert_eq!(world.records("api")[0].ended.exit, Exit::Signal(15));
    assert!(world.holder("api").is_none());
}

#[test]
fn a_shim_listens_at_a_path_of_any_length_in_a_socket_of_its_users_own() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let folder = world.path(&format!("{}/{}", "a".repeat(100), "b".repeat(100)));
    std::fs::create_dir_all(&folder).unwrap();
    let guard = world.lock("api");
    let opening = pinfold_shim::client::Opening { listen: folder.join("api.sock"), ..world.opening("api") };
    let (child, mut link) = pinfold_shim::client::spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let seen = welcome(&mut link);
    let _daemon = Daemon { child, link, welcome: seen, passed: Vec::new() };
    let mode = std::fs::metadata(&opening.listen).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let mut later = pinfold_shim::client::ShimConnection::connect(&opening.listen).unwrap();
    later.send(&Command::Hello { generation: 2 }).unwrap();
    welcome(&mut later);
}

#[test]
fn a_shim_without_descriptors_refuses_a_start_and_goes_on() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let shim = rustix::process::Pid::from_child(&daemon.child);
    let open = std::fs::read_dir(format!("/proc/{}/fd", daemon.child.id())).unwrap().count() as u64;
    let limit = |soft| rustix::process::Rlimit { current: Some(soft), maximum: Some(4096) };
    let set = |soft| {
        rustix::process::prlimit(Some(shim), rustix::process::Resource::Nofile, limit(soft)).unwrap();
    };
    set(open);
    daemon.start(command(1, &["true"]));
    let why = daemon.expect("StartFailed", |report| match report {
        Report::StartFailed { why, .. } => Some(*why),
        _ => None,
    });
    assert_eq!(why, pinfold_shim::StartFailure::Refused { errno: rustix::io::Errno::MFILE.raw_os_error() });
    // A newcomer that cannot be taken waits, and costs no processor time meanwhile.
    let mut newcomer = world.connect("api", 2);
    set(4096);
    welcome(&mut newcomer);
    newcomer.send(&Command::Start(Box::new(command(2, &["true"])))).unwrap();
    let until = Some(Instant::now() + PATIENCE);
    while !matches!(newcomer.receive(until).unwrap(), Some(Report::Exited(_))) {}
}

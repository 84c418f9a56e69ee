//! Guests: a second process in a run, with its own terminal and its own end.

use crate::taped::{say, taped, word};
use crate::world::{
    Daemon, Ends, PATIENCE, World, children_of, command, kill, lives, read, wait_for_end, wait_until, welcome,
};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_shim::attach::{Join, Keyboard, Seat, Shown, ViewerInput, connect};
use pinfold_shim::{
    Command, Decoder, Directory, GuestReport, GuestStanding, GuestStart, JoinRights, Presence, Report,
    Rights, Size, Start, StartFailure,
};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const RUN: RunNumber = RunNumber(1);
/// An agent that answers each line, and has left behind a child that is now the shim's.
const AGENT: &str = "(setsid sleep 1000 & echo $! >{dir}/orphan); \
                     n=0; while read -r line; do n=$((n+1)); echo \"$n $line\"; done; echo end";

pub(crate) fn guest(number: u64, script: &str) -> GuestStart {
    GuestStart {
        run: RUN,
        number,
        arguments: ["/bin/sh", "-c", script].map(Into::into).to_vec(),
        environment: vec!["PATH=/usr/local/bin:/usr/bin:/bin".into(), "GIVEN=guest".into()],
        directory: Directory::Path("/usr".into()),
        terminal: Size::new(24, 80),
        joins: JoinRights::default(),
        run_id: "the-run".into(),
        socket: Some("/api.sock".into()),
        rights: Rights { umask: Some(0o77), ..Rights::default() },
    }
}

/// An attached client.
struct Viewer {
    stream: UnixStream,
    decoder: Decoder,
    seen: Vec<u8>,
    ended: bool,
}

impl Viewer {
    fn join(world: &World, size: Size) -> Self {
        let (stream, decoder) = connect(&world.opening("api").listen).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut viewer = Self { stream, decoder, seen: Vec::new(), ended: false };
        viewer.say(&ViewerInput::Join(Join { run: RUN, size, seat: Seat::Waits }));
        viewer
    }

    fn say(&mut self, said: &ViewerInput) {
        let mut bytes = Vec::new();
        said.encode(&mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }

    fn types(&mut self, keys: &str) {
        self.say(&ViewerInput::Typed(keys.into()));
    }

    fn hear(&mut self) {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes).unwrap() {
            0 => self.ended = true,
            count => self.decoder.feed(&bytes[..count]),
        }
        while let Some(frame) = self.decoder.frame().unwrap() {
            match Shown::decode(&frame).unwrap() {
                Some(Shown::Output(bytes)) => self.seen.extend(bytes),
                Some(Shown::Keyboard(Keyboard::Yours | Keyboard::Others(_))) | None => {}
                Some(Shown::Ended) => self.ended = true,
            }
        }
    }

    #[track_caller]
    fn sees(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            let seen = String::from_utf8_lossy(&self.seen).into_owned();
            assert!(!self.ended, "it ended without {text:?}: {seen:?}");
            self.hear();
        }
    }

    fn until_ended(&mut self) {
        while !self.ended {
            self.hear();
        }
    }
}

pub(crate) fn start_guest(daemon: &mut Daemon, guest: GuestStart) {
    daemon.send(&Command::Guest(Box::new(guest)));
}

/// Returns the pid of a guest that was started.
#[track_caller]
pub(crate) fn guest_started(daemon: &mut Daemon) -> u32 {
    daemon.expect("GuestStarted", |report| match report {
        Report::Guest(GuestReport::Started { pid, .. }) => Some(*pid),
        Report::Guest(ended @ GuestReport::Ended { .. }) => panic!("{ended:?}"),
        _ => None,
    })
}

#[track_caller]
fn guest_ended(daemon: &mut Daemon) -> (u64, Exit, Option<StartFailure>) {
    daemon.expect("GuestEnded", |report| match report {
        Report::Guest(GuestReport::Ended { guest, exit, why, .. }) => Some((*guest, *exit, *why)),
        Report::Exited(exited) => panic!("the run ended: {exited:?}"),
        _ => None,
    })
}

/// Starts a shim with an agent that has left a child behind; returns the pids of both.
fn at_work(world: &World) -> (Daemon, u32, u32) {
    let mut daemon = world.shim("api");
    assert!(daemon.welcome.can.guest);
    let script = AGENT.replace("{dir}", &world.path("work").display().to_string());
    daemon.start(taped(1, 1 << 20, &script));
    let (_, agent, _) = daemon.started();
    let file = world.path("work/orphan");
    wait_until("the agent has left a child behind", || read(&file).ends_with('\n'));
    let orphan = read(&file).trim().parse().unwrap();
    (daemon, agent, orphan)
}

/// Checks that the agent still answers what is said to it.
#[track_caller]
fn answers(world: &World, daemon: &mut Daemon, number: u64) {
    say(daemon, word(number, "hello\n"));
    let wanted = format!("{number} hello\n");
    wait_until("the agent answers", || {
        String::from_utf8_lossy(&world.tape("api").out).contains(wanted.as_str())
    });
}

#[test]
fn a_guest_is_seen_typed_to_and_ends_alone() {
    let world = World::new();
    let (mut daemon, agent, orphan) = at_work(&world);
    answers(&world, &mut daemon, 1);
    start_guest(
        &mut daemon,
        guest(1, "stty size; pwd; umask; env; echo ready; read line; stty size; echo \"got $line\"; exit 3"),
    );
    let pid = guest_started(&mut daemon);
    assert_ne!(pid, agent);
    let mut viewer = Viewer::join(&world, Size::new(30, 100));
    viewer.sees("ready");
    let seen = String::from_utf8_lossy(&viewer.seen).into_owned();
    for expected in ["/usr", "0077", "GIVEN=guest", "PINFOLD_SESSION=api", "PINFOLD_RUN=the-run"] {
        assert!(seen.contains(expected), "{expected} is not in {seen}");
    }
    // What it says does not count as the agent's word.
    assert!(seen.contains("PINFOLD_SOCKET=/api.sock") && !seen.contains("NOTIFY_SOCKET"), "{seen}");
    viewer.say(&ViewerInput::Resized(Size::new(33, 111)));
    viewer.types("some words\n");
    viewer.sees("got some words");
    viewer.sees("33 111");
    viewer.until_ended();
    assert_eq!(guest_ended(&mut daemon), (1, Exit::Code(3), None));
    answers(&world, &mut daemon, 2);
    assert!(lives(agent) && lives(orphan));
    // Only viewers get what it printed.
    assert!(!daemon.passed.iter().any(|report| matches!(report, Report::Output(_))));
    assert!(!String::from_utf8_lossy(&world.tape("api").out).contains("got"));
    assert_eq!(world.records("api"), []);
}

#[test]
fn the_same_guest_twice_is_one_and_a_second_one_waits_until_the_first_is_gone() {
    let world = World::new();
    let (mut daemon, _, _) = at_work(&world);
    let shell = "read line; exit 1";
    start_guest(&mut daemon, guest(1, shell));
    start_guest(&mut daemon, guest(1, shell));
    let pid = guest_started(&mut daemon);
    start_guest(&mut daemon, guest(1, shell));
    assert_eq!(guest_started(&mut daemon), pid);
    start_guest(&mut daemon, guest(2, shell));
    let occupied = Some(StartFailure::Occupied { run: RUN });
    assert_eq!(guest_ended(&mut daemon), (2, Exit::NeverStarted, occupied));
    let mut viewer = Viewer::join(&world, Size::new(24, 80));
    viewer.types("\n");
    viewer.until_ended();
    assert_eq!(guest_ended(&mut daemon), (1, Exit::Code(1), None));
    // A guest that has been is not started again, and how it ended is still known.
    start_guest(&mut daemon, guest(1, shell));
    assert_eq!(guest_ended(&mut daemon), (1, Exit::Code(1), None));
    start_guest(&mut daemon, guest(3, shell));
    let third = guest_started(&mut daemon);
    start_guest(&mut daemon, guest(2, shell));
    assert_eq!(guest_ended(&mut daemon).1, Exit::NeverStarted);
    assert!(lives(third) && !lives(pid));
}

#[test]
fn the_end_of_a_guest_ends_what_it_left_behind_and_nothing_of_the_agents() {
    let world = World::new();
    let (mut daemon, agent, orphan) = at_work(&world);
    let file = world.path("work/left");
    // Two forks away from the guest, in a session of its own, without the guest's environment.
    let leaves = format!(
        "(setsid env -i /bin/sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >{}); exit 0",
        file.display()
    );
    start_guest(&mut daemon, guest(1, &leaves));
    guest_started(&mut daemon);
    assert_eq!(guest_ended(&mut daemon), (1, Exit::Code(0), None));
    let left: u32 = read(&file).trim().parse().unwrap();
    assert!(!lives(left), "the guest's end is told when nothing of it is left");
    assert!(lives(agent) && lives(orphan));
    answers(&world, &mut daemon, 1);
}

#[test]
fn a_guest_that_is_stopped_has_its_grace_and_no_more() {
    let world = World::new();
    let (mut daemon, agent, orphan) = at_work(&world);
    // This one ends when asked to.
    start_guest(
        &mut daemon,
        guest(1, "trap 'exit 7' TERM HUP; echo up; while :; do sleep 1000 & wait; done"),
    );
    guest_started(&mut daemon);
    Viewer::join(&world, Size::new(24, 80)).sees("up");
    daemon.send(&Command::GuestStop { run: RUN, guest: 1, grace: PATIENCE });
    assert_eq!(guest_ended(&mut daemon), (1, Exit::Code(7), None));
    // This one does not.
    let deaf = "trap '' TERM HUP; (trap '' TERM HUP; exec setsid sleep 1000) & echo up; while :; do sleep 1000; done";
    start_guest(&mut daemon, guest(2, deaf));
    let pid = guest_started(&mut daemon);
    Viewer::join(&world, Size::new(24, 80)).sees("up");
    let below = crate::world::children_of(pid);
    daemon.send(&Command::GuestStop { run: RUN, guest: 2, grace: Duration::from_millis(50) });
    assert_eq!(guest_ended(&mut daemon), (2, Exit::Signal(9), None));
    assert!(below.iter().all(|process| !lives(*process)));
    assert!(lives(agent) && lives(orphan));
    // Asked again after it is gone.
    daemon.send(&Command::GuestStop { run: RUN, guest: 2, grace: PATIENCE });
    assert_eq!(guest_ended(&mut daemon), (2, Exit::Signal(9), None));
    answers(&world, &mut daemon, 1);
}

#[test]
fn the_end_of_the_run_ends_its_guest_before_that_is_told() {
    for stopped in [true, false] {
        let world = World::new();
        let (mut daemon, agent, orphan) = at_work(&world);
        start_guest(&mut daemon, guest(1, "trap '' TERM HUP; echo up; while :; do sleep 1000; done"));
        let pid = guest_started(&mut daemon);
        let mut viewer = Viewer::join(&world, Size::new(24, 80));
        viewer.sees("up");
        match stopped {
            true => daemon.send(&Command::Stop { run: RUN, grace: Duration::from_millis(50) }),
            false => kill(agent),
        }
        let exited = daemon.exited();
        assert_eq!(exited.ended.exit, Exit::Signal(if stopped { 15 } else { 9 }));
        let ended = daemon.passed.iter().filter(|report| matches!(report, Report::Guest(_))).count();
        assert_eq!(ended, 1, "{:?}", daemon.passed);
        viewer.until_ended();
        assert!(!lives(pid) && !lives(orphan));
        assert_eq!(children_of(daemon.child.id()), [] as [u32; 0]);
    }
}

#[test]
fn the_next_daemon_finds_the_guest_and_whoever_types_notices_nothing() {
    let world = World::new();
    let (mut daemon, agent, _) = at_work(&world);
    start_guest(&mut daemon, guest(4, "read one; echo \"one $one\"; read two; exit 5"));
    let pid = guest_started(&mut daemon);
    let mut viewer = Viewer::join(&world, Size::new(24, 80));
    rustix::net::shutdown(&daemon.link, rustix::net::Shutdown::Both).unwrap();
    viewer.types("first\n");
    viewer.sees("one first");
    daemon.link = world.connect("api", 2);
    let seen = welcome(&mut daemon.link);
    assert_eq!(seen.guest, Some(GuestStanding { guest: 4, presence: Presence::Here(pid) }));
    rustix::net::shutdown(&daemon.link, rustix::net::Shutdown::Both).unwrap();
    viewer.types("second\n");
    viewer.until_ended();
    wait_for_end(pid);
    daemon.link = world.connect("api", 3);
    let seen = welcome(&mut daemon.link);
    assert_eq!(seen.guest, Some(GuestStanding { guest: 4, presence: Presence::Gone(Exit::Code(5)) }));
    assert!(lives(agent));
    answers(&world, &mut daemon, 1);
}

#[test]
fn a_killed_shim_takes_guest_and_agent_along() {
    let world = World::new();
    let (mut daemon, agent, _) = at_work(&world);
    start_guest(&mut daemon, guest(1, "while :; do sleep 1000; done"));
    let pid = guest_started(&mut daemon);
    kill(daemon.child.id());
    daemon.child.ended();
    for process in [agent, pid] {
        wait_for_end(process);
    }
    // No copy of the lock is left.
    drop(world.lock("api"));
}

#[test]
fn a_killed_usher_takes_the_guest_along_and_not_the_agent() {
    let world = World::new();
    let (mut daemon, agent, orphan) = at_work(&world);
    start_guest(&mut daemon, guest(1, "while :; do sleep 1000; done"));
    let pid = guest_started(&mut daemon);
    let usher = children_of(daemon.child.id()).into_iter().find(|child| children_of(*child).contains(&pid));
    let usher = usher.expect("the guest is below its usher");
    assert_eq!(read(format!("/proc/{usher}/comm").as_ref()).trim(), "pinfold-guest");
    kill(usher);
    assert_eq!(guest_ended(&mut daemon), (1, Exit::Signal(9), None));
    wait_for_end(pid);
    assert!(lives(agent) && lives(orphan));
}

#[test]
fn an_usher_keeps_none_of_the_shims_descriptors() {
    let world = World::new();
    let (mut daemon, _, _) = at_work(&world);
    start_guest(&mut daemon, guest(1, "while :; do sleep 1000; done"));
    let pid = guest_started(&mut daemon);
    let all = children_of(daemon.child.id());
    let usher = all.into_iter().find(|child| children_of(*child).contains(&pid)).unwrap();
    // The null device twice, the pipe it speaks on, and the one that wakes it.
    wait_until("it has closed the rest", || {
        std::fs::read_dir(format!("/proc/{usher}/fd")).unwrap().count() == 4
    });
}

#[test]
fn a_guest_that_cannot_be_says_why() {
    let world = World::new();
    let (mut daemon, agent, _) = at_work(&world);
    let missing = GuestStart { arguments: vec!["/no/such/program".into()], ..guest(1, "") };
    start_guest(&mut daemon, missing);
    let missing = Some(StartFailure::ProgramMissing);
    assert_eq!(guest_ended(&mut daemon), (1, Exit::NeverStarted, missing));
    let nowhere = GuestStart { directory: Directory::Path("/no/such".into()), ..guest(2, "exit 0") };
    start_guest(&mut daemon, nowhere);
    let missing = Some(StartFailure::DirectoryMissing);
    assert_eq!(guest_ended(&mut daemon), (2, Exit::NeverStarted, missing));
    assert!(lives(agent));
    start_guest(&mut daemon, guest(3, "exit 0"));
    guest_started(&mut daemon);
    assert_eq!(guest_ended(&mut daemon), (3, Exit::Code(0), None));
}

#[test]
fn a_run_with_a_terminal_has_no_guest_and_neither_has_one_that_is_not_there() {
    let world = World::new();
    let mut daemon = world.shim("api");
    daemon.start(Start { terminal: Some(Size::new(24, 80)), ..command(1, &["sleep", "1000"]) });
    daemon.started();
    start_guest(&mut daemon, guest(1, "exit 0"));
    assert!(matches!(guest_ended(&mut daemon), (1, Exit::NeverStarted, Some(StartFailure::Refused { .. }))));
    start_guest(&mut daemon, GuestStart { run: RunNumber(9), ..guest(1, "exit 0") });
    daemon.expect("NoSuchRun", |report| matches!(report, Report::NoSuchRun { .. }).then_some(()));
}

//! Only senders of the run's tree are believed: any process can find out the name of a notify socket.

use crate::processes::{self, PATIENCE};
use crate::rights::needs;
use crate::teller;
use crate::world::{World, held, number};
use rustix::process::Signal;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Waits for a file, and then goes on with the rest of the script.
const WAITS: &str = "echo ready; until test -e \"$ROOT/go\"; do sleep 0.02; done; ";

/// Starts a session of one run that waits for the file `go`; returns its notify socket.
fn waiting(world: &World, then: &str) -> String {
    let script = format!("{WAITS}{then}");
    let says = teller::says("READY=1\nX_PINFOLD_EXIT=drained");
    let options = ["--mode", "once", "--env", "ROOT", "--env", &says];
    world.json(&[&["new", "s"], &options[..], &["--", "sh", "-c", &script]].concat());
    world.printed("s", "ready");
    processes::variable(world.pid("s"), "NOTIFY_SOCKET").unwrap()
}

/// Lets the agent go on, and returns the verdict on its run.
fn verdict(world: &World) -> String {
    std::fs::write(world.path("go"), "").unwrap();
    world.wait("s", "stopped,failed");
    let ends = world.events_of("s", "run_exited");
    assert_eq!(ends.len(), 1, "{ends:?}");
    ends[0]["verdict"].as_str().unwrap().to_owned()
}

/// The shell command that sends a notice.
fn tell() -> String {
    teller::words().iter().map(|word| format!("'{word}' ")).collect::<String>()
}

fn address(socket: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(socket.trim_start_matches('@')).unwrap()
}

#[test]
fn a_stranger_that_has_ended_decides_nothing() {
    let world = World::new();
    let socket = waiting(&world, "exit 0");
    // The shim reads only when the sender is long gone.
    let shim = held(number(&world.show("s")["shim_pid"]));
    shim.signal(Signal::STOP);
    let mut stranger = Command::new(&teller::words()[0]);
    stranger.args(&teller::words()[1..]).env("NOTIFY_SOCKET", &socket).stdout(Stdio::null());
    stranger.env("TELLER_SAYS", "X_PINFOLD_EXIT=hopeless\nSTOPPING=1");
    assert!(stranger.status().unwrap().success());
    shim.signal(Signal::CONT);
    assert_eq!(verdict(&world), "clean");
    assert_eq!(world.show("s")["state"], "stopped");
}

#[test]
fn the_last_word_of_an_agent_counts() {
    let world = World::new();
    waiting(&world, &format!("exec {}", tell()));
    assert_eq!(verdict(&world), "drained");
}

/// A helper of the agent that ends at once is reaped by the agent: only the group in which it ended shows
/// whose it was.
#[test]
fn a_helper_that_has_ended_counts_where_the_kernel_tells_whose_it_was() {
    let world = World::new();
    waiting(
        &world,
        &format!("{} & wait $!; echo told; until test -e \"$ROOT/end\"; do sleep 0.02; done", tell()),
    );
    let shim = held(number(&world.show("s")["shim_pid"]));
    let grouped = processes::group(world.pid("s")).is_some_and(|group| group.join("cgroup.kill").exists());
    std::fs::write(world.path("go"), "").unwrap();
    world.printed("s", "told");
    shim.signal(Signal::STOP);
    std::fs::write(world.path("end"), "").unwrap();
    shim.signal(Signal::CONT);
    let expected = if grouped && tells_of_the_dead() { "drained" } else { "clean" };
    let verdict = verdict(&world);
    // With an older kernel, the shim may have been quick enough to ask while the helper lived.
    assert!(verdict == expected || verdict == "drained", "{verdict}");
}

/// Whether the kernel identifies senders that were reaped (Linux 6.17).
fn tells_of_the_dead() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).filter_map(|word| word.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(17))
}

/// A sender outside of the shim's pid namespace has no pid there. The kernel says 0.
#[test]
fn a_sender_that_the_shim_cannot_see_decides_nothing() {
    needs!(UserNamespaces);
    let world = World::new();
    std::fs::create_dir(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), "[policy]\nconfined = \"allow\"\n").unwrap();
    let mut daemon = Command::new("unshare");
    let own = world.command(&["up", "--foreground"]);
    daemon.args(["-Urpf", "--mount-proc", "--kill-child"]).arg(&world.binary).args(own.get_args());
    daemon.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(&world.root);
    let mut daemon = daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let up = Instant::now() + PATIENCE;
    while world.run(&["--no-start", "status"]).code != 0 {
        assert!(Instant::now() < up, "the daemon does not come up (it needs user namespaces)");
    }
    let script = format!("echo $NOTIFY_SOCKET; {WAITS} exit 0");
    world.json(&["new", "s", "--mode", "once", "--env", "ROOT", "--", "sh", "-c", &script]);
    let socket = world.printed("s", "@");
    let stranger = UnixDatagram::unbound().unwrap();
    stranger.send_to_addr(b"STOPPING=1\nX_PINFOLD_EXIT=hopeless", &address(&socket)).unwrap();
    assert_eq!(verdict(&world), "clean");
    _ = daemon.kill();
    _ = daemon.wait();
}

#[test]
fn a_flood_of_strangers_is_read_slowly_and_the_agent_is_heard_after_it() {
    let world = World::new();
    let socket = waiting(&world, &format!("exec {}", tell()));
    let stranger = UnixDatagram::unbound().unwrap();
    stranger.set_nonblocking(true).unwrap();
    let (begun, address) = (Instant::now(), address(&socket));
    let mut taken = 0;
    while begun.elapsed() < Duration::from_secs(1) {
        match stranger.send_to_addr(b"X_PINFOLD_EXIT=hopeless", &address) {
            Ok(_) => taken += 1,
            Err(_) => std::thread::yield_now(),
        }
    }
    // 64 are read in a tenth of a second; the rest wait in the kernel until its queue is full.
    let queue = std::fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").unwrap();
    let most = 64 * (begun.elapsed().as_millis() / 100 + 2) + queue.trim().parse::<u128>().unwrap() + 1;
    assert!(taken <= most, "{taken} messages of a stranger were taken, {most} are enough");
    assert_eq!(verdict(&world), "drained");
}

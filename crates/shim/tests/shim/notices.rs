//! What agents report through their notify socket.

use crate::world::{World, command};
use pinfold_core::exit::{Exit, ExitNotice};
use pinfold_core::ids::RunNumber;
use pinfold_shim::{Notice, Report};

const SAY: &str = "import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = os.environ['NOTIFY_SOCKET']
def say(text): s.sendto(text.encode(), '\\0' + name[1:])
";

fn notice(report: &Report) -> Option<Notice> {
    match report {
        Report::Notify { run: RunNumber(1), notice } => Some(notice.clone()),
        _ => None,
    }
}

#[test]
fn every_word_is_passed_on() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let script = format!(
        "{SAY}
say('READY=1\\nSTATUS=working on it\\nNONSENSE\\nX_OTHER=1')
sys.stdin.readline(); say('WATCHDOG=1')
sys.stdin.readline(); say('STOPPING=1')
sys.stdin.readline(); say('X_PINFOLD_EXIT=nonsense'); say('X_PINFOLD_EXIT=hopeless'); say('X_PINFOLD_EXIT=drained')
sys.exit(5)"
    );
    daemon.start(command(1, &["python3", "-c", &script]));
    for (number, wanted) in
        [Notice::Ready, Notice::Status("working on it".into()), Notice::Watchdog, Notice::Stopping]
            .into_iter()
            .enumerate()
    {
        assert_eq!(daemon.expect("a notice", notice), wanted);
        if number > 0 {
            daemon.send(&pinfold_shim::Command::Input {
                run: RunNumber(1),
                message: pinfold_core::ids::MessageId(number as u128),
                attempt: 1,
                bytes: b"\n".to_vec(),
                says_done: false,
            });
        }
    }
    let exited = daemon.exited();
    // Sent right before the exit, and heard nevertheless.
    assert_eq!((exited.ended.exit, exited.ended.said), (Exit::Code(5), Some(ExitNotice::Drained)));
}

#[test]
fn a_daemon_that_comes_back_is_told_what_the_last_one_heard() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let script = format!("{SAY}\nsay('READY=1\\nSTATUS=busy')\nsys.stdin.readline()");
    daemon.start(command(1, &["python3", "-c", &script]));
    assert_eq!(daemon.expect("a notice", notice), Notice::Ready);
    daemon.link = world.connect("api", 2);
    assert_eq!(daemon.expect("a notice", notice), Notice::Ready);
    assert_eq!(daemon.expect("a notice", notice), Notice::Status("busy".into()));
}

#[test]
fn a_stranger_is_not_heard_and_a_child_is() {
    let world = World::new();
    let mut daemon = world.shim("api");
    let child = "import os, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); \
                 s.sendto(b'STATUS=child', chr(0) + os.environ['NOTIFY_SOCKET'][1:])";
    let script = format!(
        "import os, subprocess, sys
print(os.environ['NOTIFY_SOCKET'], flush=True)
sys.stdin.readline()
subprocess.run(['python3', '-c', \"\"\"{child}\"\"\"])
sys.stdin.readline()"
    );
    daemon.start(command(1, &["python3", "-c", &script]));
    let name = daemon.expect("the socket", |report| match report {
        Report::Output(output) => Some(String::from_utf8_lossy(&output.bytes).trim().to_owned()),
        _ => None,
    });
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name[1..]).unwrap();
    let stranger = std::os::unix::net::UnixDatagram::unbound().unwrap();
    stranger.send_to_addr(b"STATUS=stranger\nX_PINFOLD_EXIT=hopeless", &address).unwrap();
    daemon.send(&pinfold_shim::Command::Input {
        run: RunNumber(1),
        message: pinfold_core::ids::MessageId(1),
        attempt: 1,
        bytes: b"\n".to_vec(),
        says_done: false,
    });
    assert_eq!(daemon.expect("a notice", notice), Notice::Status("child".into()));
    daemon.send(&pinfold_shim::Command::CloseInput { run: RunNumber(1) });
    assert_eq!(daemon.exited().ended.said, None);
}

//! Starts that the system refuses, ends without an explanation, and requests that a state does not allow:
//! each has its reason in words, and none is mistaken for something else.

use crate::inbox::PARROT;
use crate::rights::needs;
use crate::tty::Tty;
use crate::world::{Answer, World, finish};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const NOBODY: u32 = 65_534;

impl World {
    /// Makes one HTTP request; returns the status and the body.
    fn http(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = UnixStream::connect(self.home.join("pinfold.sock")).unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        let text = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {answer}")))
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn starts_failed(&self, name: &str) -> Vec<Value> {
        self.events_of(name, "start_failed")
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a verb as an ordinary user, whichever user runs the test.
fn as_ordinary(world: &World, words: &[&str]) -> Answer {
    let mut command = world.command(words);
    if is_root() {
        chown(&world.root, Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    finish(&mut command)
}

#[test]
fn a_command_line_that_is_too_long_fails_once_with_its_reason() {
    let world = World::new();
    // A single argument may have at most 128 KiB.
    let long = "x".repeat(200_000);
    let path = "/v1/sessions";
    world.ok(&["up"]);
    let body = json!({ "name": "a", "command": ["/bin/sh", "-c", "exec sleep 100000", &long] });
    let (status, session) = world.http("POST", path, &body);
    assert_eq!((status, &session["state"]), (200, &json!("failed")), "{session}");
    let why = session["why"].as_str().unwrap();
    assert!(why.contains("cannot start") && why.to_lowercase().contains("argument list too long"), "{why}");
    assert_eq!((&session["crashes"], &session["restarts"]), (&json!(0), &json!(0)));
    let failed = world.starts_failed("a");
    assert_eq!((failed.len(), &failed[0]["errno"]), (1, &json!(7)), "{failed:?}");
    assert!(failed[0]["text"].as_str().unwrap().to_lowercase().contains("too long"), "{failed:?}");
    assert_eq!(world.events_of("a", "run_exited"), Vec::<Value>::new(), "nothing ran");
}

#[test]
fn a_shortage_of_descriptors_waits_with_its_reason_and_charges_no_crash() {
    let world = World::new();
    let mut up = Command::new("sh");
    up.args(["-c", "ulimit -n 64; exec \"$0\" up", env!("CARGO_BIN_EXE_pinfold")]);
    up.env("PINFOLD_HOME", &world.home)
        .env("PINFOLD_LOCKS", world.path("locks"))
        .env("XDG_STATE_HOME", world.path("state"))
        .env("ROOT", &world.root);
    assert_eq!(finish(&mut up).code, 0);
    let mut made = 0;
    let refused = loop {
        let name = format!("s{made}");
        let session = world.guarded(&name, &[], "exec sleep 100000");
        made += 1;
        if session["state"] != "running" {
            break session;
        }
        assert!(made < 64, "descriptors do not run out");
    };
    let name = refused["name"].as_str().unwrap();
    assert_eq!((&refused["state"], &refused["crashes"]), (&json!("backoff"), &json!(0)), "{refused}");
    let why = refused["why"].as_str().unwrap();
    assert!(why.to_lowercase().contains("too many open files"), "{why}");
    assert_eq!(world.starts_failed(name)[0]["errno"], 24);
    assert_eq!(world.events_of(name, "run_exited"), Vec::<Value>::new(), "nothing ran");
    for n in 0..3 {
        world.ok(&["stop", &format!("s{n}")]);
    }
    world.wait(name, "running");
}

#[test]
fn folders_that_were_removed_are_made_again_before_a_start() {
    let world = World::new();
    let id =
        world.guarded("a", &["--mode", "on-demand"], "exec sleep 100000")["id"].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(world.home.join("sessions").join(id)).unwrap();
    world.ok(&["start", "a"]);
    world.ok(&["stop", "a"]);
    std::fs::remove_dir_all(world.home.join("sessions")).unwrap();
    std::fs::remove_dir_all(world.home.join("shims")).unwrap();
    world.ok(&["start", "a"]);
    assert_eq!(world.show("a")["crashes"], 0);
    // A session with a terminal starts listening immediately.
    world.ok(&["new", "pty", "--pty", "--mode", "on-demand", "--", "sleep", "100000"]);
    std::fs::remove_dir_all(world.home.join("shims")).unwrap();
    world.ok(&["start", "pty"]);
}

#[test]
fn a_directory_that_may_not_be_entered_is_refused_by_new_and_failed_later() {
    let world = World::new();
    let closed = world.path("closed");
    std::fs::create_dir(&closed).unwrap();
    let mode = |mode| std::fs::set_permissions(&closed, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o700);
    let dir = closed.to_str().unwrap();
    if is_root() {
        chown(&closed, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let made =
        as_ordinary(&world, &["new", "a", "--mode", "on-demand", "--dir", dir, "--", "sleep", "100000"]);
    assert_eq!(made.code, 0, "{made:?}");
    mode(0);
    let refused = as_ordinary(&world, &["new", "b", "--dir", dir, "--", "sleep", "100000"]);
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(refused.stderr.contains("may not be entered"), "{refused:?}");
    let started = as_ordinary(&world, &["start", "a"]);
    assert_eq!(started.code, 1, "{started:?}");
    let session = as_ordinary(&world, &["--json", "show", "a"]).json();
    assert_eq!((&session["state"], &session["crashes"]), (&json!("failed"), &json!(0)), "{session}");
    assert!(session["why"].as_str().unwrap().contains("may not be entered"), "{session}");
    as_ordinary(&world, &["down"]);
}

#[test]
fn what_the_kernel_cannot_execute_is_named_and_no_shell_runs_it() {
    let world = World::new();
    let file = |name: &str, bytes: &[u8]| {
        let file = world.path(name);
        std::fs::write(&file, bytes).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        file.into_os_string().into_string().unwrap()
    };
    let mut own = std::fs::read("/proc/self/exe").unwrap();
    // No machine has this number.
    own[18..20].copy_from_slice(&[0xfe, 0xfe]);
    let rows = [
        ("foreign", file("foreign", &own), 8, "is built for another machine: machine 65278"),
        (
            "bytes",
            file("bytes", b"MZ\x90\0\x03\0\0\0"),
            8,
            "is neither a program for this machine nor a script",
        ),
        (
            "crlf",
            file("crlf", b"#!/bin/sh\r\necho hello\r\n"),
            2,
            "interpreter `/bin/sh\\r` not found: the lines end with CRLF instead of LF",
        ),
    ];
    for (name, program, errno, reason) in rows {
        world.ok(&["new", name, "--", &program]);
        world.wait(name, "failed");
        let why = world.ok(&["why", name]).stdout;
        assert!(why.contains(&format!("`{program}`")) && why.contains(reason), "{why}");
        let refused = world.events_of(name, "start_failed");
        assert_eq!((refused.len(), &refused[0]["errno"]), (1, &serde_json::json!(errno)), "{refused:?}");
        assert!(world.events_of(name, "run_exited").is_empty());
        assert_eq!(world.show(name)["crashes"], 0);
        assert_eq!(world.ok(&["logs", name]).stdout, "");
    }
}

#[test]
fn a_script_whose_interpreter_is_missing_says_which() {
    let world = World::new();
    let script = world.script("run", "#!/no/such -x\n");
    let session = world.json(&["new", "a", "--", &script]);
    assert_eq!(session["state"], "failed");
    let why = session["why"].as_str().unwrap();
    assert!(why.contains(&format!("cannot start: `{script}`: interpreter `/no/such` not found")), "{why}");
    assert_eq!(world.starts_failed("a")[0]["errno"], 2);
}

#[test]
fn a_script_of_garbage_is_explained_by_its_code_and_its_last_line() {
    let world = World::new();
    let script = world.script("garb", "garbage\n");
    world.json(&["new", "a", "--", &script]);
    world.wait("a", "failed");
    let session = world.show("a");
    let why = session["why"].as_str().unwrap();
    assert!(why.contains("exited with 127") && why.contains("garbage: not found"), "{why}");
    let last = &session["last_exit"];
    assert_eq!(
        (&last["code"], &last["signal"], &last["verdict"]),
        (&json!(127), &Value::Null, &json!("hopeless"))
    );
    assert!(last["last_line"].as_str().unwrap().ends_with("garbage: not found"), "{last}");
}

/// Crashes with a traceback each time.
const CRASHER: &str = "echo working; printf 'Traceback:\\nRuntimeError: boom\\n' >&2; exit 3";

#[test]
fn a_crash_loop_is_explained_by_its_last_exit_over_restarts_of_the_daemon() {
    let world = World::new();
    world.guarded("a", &[], CRASHER);
    world.until("it has crashed twice", || (world.show("a")["crashes"].as_u64() > Some(1)).then_some(()));
    let check = |session: &Value| {
        let last = &session["last_exit"];
        assert_eq!((&last["code"], &last["verdict"]), (&json!(3), &json!("crash")), "{session}");
        assert_eq!(last["last_line"], "RuntimeError: boom", "{session}");
        assert!(last["uptime_ms"].is_u64() && last["at"].is_string(), "{session}");
    };
    let session = world.show("a");
    check(&session);
    let waiting =
        world.until("it waits", || Some(world.show("a")).filter(|session| session["state"] == "backoff"));
    let why = waiting["why"].as_str().unwrap();
    assert!(
        why.contains("exited with 3 after ") && why.contains(": `RuntimeError: boom`; crashed "),
        "{why}"
    );
    assert!(why.contains(" times in a row, next run in "), "{why}");
    world.ok(&["stop", "a"]);
    check(&world.show("a"));
    world.kill_daemon();
    world.ok(&["up"]);
    check(&world.show("a"));
    assert_eq!(world.show("a")["state"], "stopped");
}

#[test]
fn wait_says_on_stderr_how_the_run_ended() {
    let world = World::new();
    world.guarded("bad", &["--mode", "once"], "echo no luck; exit 7");
    let answer = world.ok(&["wait", "bad", "--for", "stopped,failed", "--timeout", "240s"]);
    assert!(
        answer.stderr.contains("exited with 7 after ") && answer.stderr.contains("`no luck`"),
        "{answer:?}"
    );
    assert_eq!(answer.stdout, "");
    world.guarded("good", &["--mode", "once"], "echo all is well");
    let answer = world.ok(&["--json", "wait", "good", "--for", "stopped,failed", "--timeout", "240s"]);
    assert!(
        answer.stderr.contains("exited with 0 after ") && answer.stderr.contains("`all is well`"),
        "{answer:?}"
    );
    assert_eq!(answer.json()["last_exit"]["code"], 0);
    let why = world.ok(&["why", "good"]).stdout;
    assert!(why.contains("its one run exited with 0 after "), "{why}");
}

#[test]
fn the_end_of_attach_says_how_the_run_ended() {
    let world = World::new();
    let script = "echo 'ready to read'; read -r line; echo; echo \"cannot reach $line\"; exit 5";
    world.guarded("a", &["--pty", "--mode", "on-demand"], script);
    let mut tty = Tty::start(world.command(&["attach", "a"]), 24, 120);
    tty.shows("ready to read");
    tty.keys(b"model\r");
    tty.shows("exited with 5 after ");
    tty.shows("`cannot reach model`");
    tty.ended();
}

#[test]
fn what_a_state_does_not_allow_is_409() {
    let world = World::new();
    world.new_chat("a", &[], PARROT);
    let done: Value = world.api().post("/v1/sessions/a/messages?wait=60s", &json!({ "text": "x" })).unwrap();
    let message = format!("/v1/sessions/a/messages/{}", done["id"].as_str().unwrap());
    world.ok(&["stop", "a"]);
    let rows = [
        ("DELETE", "/v1/sessions/a".to_owned(), Value::Null),
        ("POST", "/v1/sessions/a/interrupt".to_owned(), json!({})),
        ("POST", "/v1/sessions/a/restore".to_owned(), json!({})),
        ("POST", "/v1/sessions/a/answer".to_owned(), json!({ "answer": "allow" })),
        ("POST", "/v1/sessions/a/attach".to_owned(), json!({})),
        ("POST", format!("{message}/cancel"), json!({})),
        ("POST", format!("{message}/retry"), json!({})),
    ];
    for (method, path, body) in rows {
        let (status, answer) = world.http(method, &path, &body);
        assert_eq!((status, &answer["error"]["kind"]), (409, &json!("failed")), "{method} {path}: {answer}");
    }
    assert_eq!(world.run(&["interrupt", "a"]).code, 1);
    world.ok(&["start", "a"]);
    assert_eq!(world.run(&["rm", "a", "--yes"]).code, 1, "it lives");
}

#[test]
fn a_bare_program_name_over_http_is_found_by_the_usual_path() {
    let world = World::new();
    world.ok(&["up"]);
    let body = json!({ "name": "a", "command": ["sleep", "100000"] });
    let (status, session) = world.http("POST", "/v1/sessions", &body);
    assert_eq!((status, &session["state"]), (200, &json!("running")), "{session}");
}

#[test]
fn a_name_that_exists_is_409_before_anything_else_is_looked_at() {
    let world = World::new();
    world.guarded("a", &["--mode", "on-demand"], "exec sleep 100000");
    for body in [
        json!({ "name": "a", "command": ["/no/such/program"] }),
        json!({ "name": "a", "agent": "nobody-knows" }),
        json!({ "name": "a", "dir": "/no/such", "command": ["true"] }),
        json!({ "name": "a" }),
    ] {
        let (status, answer) = world.http("POST", "/v1/sessions", &body);
        assert_eq!((status, &answer["error"]["kind"]), (409, &json!("exists")), "{body}: {answer}");
    }
    assert_eq!(world.run(&["new", "a", "--", "/no/such/program"]).code, 73);
}

/// A small file system of its own.
struct Disk<'a>(&'a Path);

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_daemon_that_cannot_start_on_a_full_disk_says_so() {
    needs!(Mount);
    let mut world = World::new();
    let disk = world.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&disk).status();
    assert!(mounted.is_ok_and(|status| status.success()), "a tmpfs is mounted");
    let _disk = Disk(&disk);
    world.home = disk.join("home");
    std::fs::create_dir(&world.home).unwrap();
    let mut filler = std::fs::File::create(disk.join("filler")).unwrap();
    while filler.write(&[1; 4096]).is_ok_and(|written| written > 0) {}
    let answer = world.run(&["up"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    let said = answer.stderr.to_lowercase();
    assert!(said.contains("disk is full") || said.contains("no space left"), "{answer:?}");
    assert!(!said.contains("exit status"), "{answer:?}");
}

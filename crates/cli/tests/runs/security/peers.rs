//! Another user who connects to every socket, and another user who answers.

use super::{OTHER, as_another};
use crate::rights::needs;
use crate::world::World;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn open_to_all(path: &Path, bits: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
}

/// A daemon whose home and socket everyone can reach, as after a restore or in a container's volume.
fn opened() -> World {
    let world = World::new();
    world.ok(&["up"]);
    open_to_all(&world.root, 0o755);
    open_to_all(&world.home, 0o755);
    open_to_all(&world.home.join("pinfold.sock"), 0o666);
    world
}

fn asked_at(socket: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(crate::processes::PATIENCE)).unwrap();
    _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

const PING: &str = "GET /v1/ping HTTP/1.1\r\nHost: pinfold\r\nConnection: close\r\n\r\n";

#[test]
fn another_user_who_reaches_the_api_socket_is_not_answered() {
    needs!(OtherUser);
    let world = opened();
    let socket = world.home.join("pinfold.sock");
    assert!(asked_at(&socket, PING).starts_with("HTTP/1.1 200"), "its own user is answered");
    let body = format!(r#"{{"name":"x","command":["/usr/bin/touch","{}"]}}"#, world.path("done").display());
    let length = body.len();
    let request = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: pinfold\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let answer = as_another(move || asked_at(&socket, &request));
    assert_eq!(answer, "", "another user was answered");
    assert!(world.sessions().is_empty());
    world.ok(&["down"]);
}

/// Another user listens at a path and passes on what is sent there. The file looks like the caller's own.
fn impostor(world: &World, path: &Path) -> Receiver<Vec<u8>> {
    let hall = world.path("hall");
    std::fs::create_dir(&hall).unwrap();
    open_to_all(&hall, 0o777);
    let from: PathBuf = hall.join("s");
    let listener = as_another({
        let from = from.clone();
        move || UnixListener::bind(from).unwrap()
    });
    std::fs::rename(&from, path).unwrap();
    chown(path, Some(0), Some(0)).unwrap();
    std::fs::remove_dir(&hall).unwrap();
    let (told, heard) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = vec![0; 4096];
            stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            let count = stream.read(&mut bytes).unwrap_or(0);
            bytes.truncate(count);
            if count > 0 && told.send(bytes).is_err() {
                return;
            }
        }
    });
    heard
}

#[test]
fn nothing_is_said_to_another_user_who_answers_in_place_of_the_daemon() {
    needs!(OtherUser);
    let world = World::new();
    world.ok(&["up"]);
    world.ok(&["down"]);
    open_to_all(&world.root, 0o755);
    open_to_all(&world.home, 0o755);
    let heard = impostor(&world, &world.home.join("pinfold.sock"));
    for words in [&["new", "q", "--env", "KEY=secret", "--", "true"][..], &["ls"], &["down"], &["status"]] {
        let answer = world.run(words);
        assert_eq!(answer.code, 77, "{words:?}: {answer:?}");
        let named = format!(
            "another user's process answers at {}: user {OTHER}",
            world.home.join("pinfold.sock").display()
        );
        assert!(answer.stderr.contains(&named), "{answer:?}");
    }
    let told: Vec<String> =
        heard.try_iter().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn no_key_is_typed_at_another_user_who_answers_in_place_of_a_shim() {
    needs!(OtherUser);
    let world = World::new();
    world.ok(&["new", "t", "--pty", "--", "sleep", "1000"]);
    open_to_all(&world.root, 0o755);
    let id = world.show("t")["id"].as_str().unwrap().to_owned();
    let socket = world.home.join("shims").join(format!("{id}.sock"));
    std::fs::remove_file(&socket).unwrap();
    let heard = impostor(&world, &socket);
    let mut tty = world.attach("t", &[]);
    tty.shows("another user's process answers");
    assert_eq!(tty.ended().code(), Some(77));
    assert!(heard.try_recv().is_err());
    _ = std::fs::remove_file(&socket);
    world.ok(&["down"]);
}

#[test]
fn a_new_daemon_says_nothing_to_another_user_who_answers_in_place_of_a_shim() {
    needs!(OtherUser);
    let world = World::new();
    world.ok(&["new", "t", "--mode", "on-demand", "--", "true"]);
    world.ok(&["down"]);
    open_to_all(&world.root, 0o755);
    open_to_all(&world.home, 0o755);
    let heard = impostor(&world, &world.home.join("shims").join("01ARZ3NDEKTSV4RRFFQ69G5FAV.sock"));
    world.ok(&["up"]);
    world.ok(&["ls"]);
    assert!(heard.try_recv().is_err());
    world.ok(&["down"]);
}

//! Where the UI runs: inside a session, beside an editor, closed and opened again, and with another window in front.

use super::{gone, on, select};
use crate::tty::Tty;
use crate::world::World;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_file_is_edited_with_vim_and_the_list_is_where_it_was() {
    let world = World::new();
    world.ok(&["new", "other", "--", "sleep", "1000"]);
    world.ok(&["new", "vim", "--pty", "--mode", "once", "--", "vim", "-u", "NONE", "-N", "file"]);
    let mut tty = world.tui();
    select(&tty, "vim");
    tty.keys(b"\r");
    tty.until("the editor", |screen| {
        screen.contents().lines().nth(1).is_some_and(|line| line.starts_with('~'))
    });
    tty.keys("ihello, wörld\x1b".as_bytes());
    tty.shows("hello, wörld");
    tty.keys(b"\x1d");
    tty.shows("detached from `vim`");
    on(&tty, "vim");
    tty.keys(b"v");
    tty.shows("hello, wörld");
    tty.keys(b"\r");
    tty.until("the editor", |screen| screen.contents().starts_with("hello, wörld"));
    tty.keys(b":wq\r");
    tty.shows("`vim` exited with 0");
    assert_eq!(std::fs::read_to_string(world.path("file")).unwrap(), "hello, wörld\n");
    tty.keys(b"q");
    assert!(tty.ended().success());
}

#[test]
fn what_is_typed_behind_enter_is_for_the_session_and_never_for_the_list() {
    let world = World::new();
    world.shell("sh");
    let mut tty = world.tui();
    // Both come together: in the list the second one stops a session.
    tty.keys(b"\rx");
    tty.until("the other screen is left", |screen| !screen.alternate_screen());
    tty.keys(b"echo at-$((40+2))\r");
    tty.shows("at-42");
    tty.keys(b"\x1d");
    tty.shows("detached from `sh`");
    tty.keys(b"?");
    tty.shows("in the list");
    assert_eq!(world.show("sh")["state"], "running");
    tty.keys(b"qq");
    assert!(tty.ended().success());
}

#[test]
fn what_was_selected_pinned_and_grouped_is_kept_for_its_user_only() {
    let world = World::new();
    for name in ["one", "two", "three"] {
        world.ok(&["new", name, "--", "sleep", "1000"]);
    }
    let mut first = world.tui();
    select(&first, "two");
    first.keys(b"poq");
    assert!(first.ended().success());
    let mode = std::fs::metadata(world.home.join("tui.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = world.tui();
    second.shows("by tag");
    on(&second, "two");
    second.shows("*  two");
}

#[test]
fn inside_a_session_its_own_row_is_marked_and_not_attached_to() {
    let world = World::new();
    let binary = world.binary.display().to_string();
    world.ok(&["new", "inner", "--pty", "--mode", "once", "--", &binary, "tui"]);
    let mut tty = world.attach("inner", &[]);
    tty.shows("@  inner");
    tty.keys(b"\r");
    tty.shows("this UI runs inside that session");
    tty.detach();
}

#[test]
fn somebody_who_begins_to_wait_rings_only_when_the_terminal_has_no_focus() {
    let world = World::new();
    world.with_player("");
    world.play("a");
    let tty = world.tui();
    tty.shows("a");
    let asks = || {
        world.told("a", "asks");
        world.request_of("a");
        tty.shows("1 waiting for you");
        world.ok(&["answer", "a", "deny"]);
        gone(&tty, "waiting for you");
    };
    asks();
    assert!(!tty.everything().contains('\x07'), "whoever looks is not called");
    tty.keys(b"\x1b[O");
    asks();
    let all = tty.everything();
    assert!(all.contains('\x07') && all.contains("\x1b]2;a asks: Bash: rm -rf build"), "{all:?}");
}

#[test]
fn the_colours_are_those_that_the_terminal_and_its_owner_have() {
    let world = World::new();
    world.ok(&["new", "one", "--", "sleep", "1000"]);
    let (dark, light, reversed) = ("48;5;237", "48;5;254", "\x1b[0;7");
    let rows: [(&[(&str, &str)], &str); 5] = [
        (&[], dark),
        (&[("COLORFGBG", "0;15")], light),
        (&[("COLORTERM", "truecolor")], dark),
        (&[("NO_COLOR", "1")], reversed),
        (&[("NO_COLOR", "1"), ("COLORFGBG", "0;15")], reversed),
    ];
    for (variables, wanted) in rows {
        let mut command = world.command(&[]);
        command.env_remove("NO_COLOR").env_remove("COLORTERM").env_remove("COLORFGBG");
        command.envs(variables.iter().copied());
        let tty = Tty::start(command, 40, 120);
        on(&tty, "one");
        let all = tty.everything();
        for ground in [dark, light, reversed] {
            assert_eq!(all.contains(ground), ground == wanted, "{variables:?}: {ground:?}");
        }
        assert_eq!(all.contains("\x1b[0;1;36m"), wanted != reversed, "{variables:?}: the keys have a colour");
    }
}

#[test]
fn without_a_terminal_it_is_refused_and_pinfold_alone_is_the_list() {
    let world = World::new();
    world.ok(&["new", "one", "--", "sleep", "1000"]);
    assert!(world.ok(&[]).stdout.contains("one"));
    let refused = world.run(&["tui"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[test]
fn keys_of_the_configuration_count_and_a_key_with_two_meanings_is_refused() {
    let world = World::new();
    let config = |text: &str| {
        std::fs::create_dir_all(&world.home).unwrap();
        std::fs::set_permissions(&world.home, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(world.home.join("config.toml"), text).unwrap();
    };
    config("[tui.keys]\nhelp = \"H\"\n");
    let mut tty = world.tui();
    tty.keys(b"H");
    tty.shows("in the list");
    tty.keys(b"qq");
    assert!(tty.ended().success());
    config("[tui.keys]\nhelp = \"q\"\n");
    let mut refused = Tty::start(world.command(&[]), 40, 120);
    assert_eq!(refused.ended().code(), Some(78));
    refused.shows("`q` would do two things in one place");
}

#[test]
fn a_terminal_can_be_looked_at_only_while_there_is_one() {
    let world = World::new();
    world.ok(&["new", "plain", "--", "sleep", "1000"]);
    world.ok(&["new", "rests", "--pty", "--mode", "on-demand", "--", "sh"]);
    let client = pinfold_api::Client::new(world.home.join("pinfold.sock"));
    for name in ["plain", "rests"] {
        let refused = client.get::<serde_json::Value>(&format!("/v1/sessions/{name}/screen")).unwrap_err();
        assert_eq!(refused.to_string(), format!("`{name}` has no terminal now"));
    }
    assert_eq!(world.show("rests")["state"], "idle", "a look wakes nobody");
}

//! What happens when processes around the UI die, and when its window is resized.

use super::{on, select};
use crate::processes::Held;
use crate::random::Dice;
use crate::tty::Tty;
use crate::world::World;
use rustix::process::Signal;

#[test]
fn a_daemon_that_is_killed_is_said_to_be_away_and_the_list_goes_on_when_it_is_back() {
    let world = World::new();
    world.ok(&["new", "one", "--", "sleep", "1000"]);
    world.ok(&["new", "two", "--", "sleep", "1000"]);
    let mut tty = world.tui();
    select(&tty, "two");
    world.kill_daemon();
    tty.shows("the daemon is away");
    tty.keys(b"x");
    tty.shows("`pinfold up` starts it");
    world.ok(&["up"]);
    tty.until("the daemon is back", |screen| {
        screen.contents().lines().next().is_some_and(|line| !line.contains("the daemon is away"))
    });
    on(&tty, "two");
    world.ok(&["new", "three", "--", "sleep", "1000"]);
    tty.shows("3 sessions");
    tty.keys(b"q");
    assert!(tty.ended().success());
    assert_eq!(tty.settings(), tty.before);
}

#[test]
fn a_daemon_that_says_nothing_does_not_keep_the_ui_waiting() {
    let world = World::new();
    for name in ["first", "second", "third"] {
        world.ok(&["new", name, "--", "sleep", "1000"]);
    }
    let mut tty = world.tui();
    select(&tty, "first");
    let daemon = Held::open(world.daemon_pid()).unwrap();
    daemon.signal(Signal::STOP);
    // Each of them also asks for details, which do not come.
    for (key, name) in [(b"j", "second"), (b"j", "third"), (b"k", "second")] {
        tty.keys(key);
        on(&tty, name);
    }
    tty.keys(b"?");
    tty.shows("in the list");
    tty.keys(b"q");
    daemon.signal(Signal::CONT);
    tty.keys(b"j");
    on(&tty, "third");
    tty.shows("sleep 1000");
    tty.keys(b"q");
    assert!(tty.ended().success());
}

#[test]
fn a_terminal_is_given_back_at_sigterm_also_while_somebody_is_attached() {
    let world = World::new();
    world.shell("sh");
    let mut tty = world.tui();
    end(tty.pid());
    assert!(tty.ended().success());
    assert_eq!(tty.settings(), tty.before);
    tty.until("the screen before", |screen| !screen.alternate_screen());
    let mut second = world.tui();
    second.keys(b"\r");
    second.until("its prompt", |screen| screen.contents().starts_with('$'));
    end(second.pid());
    assert!(second.ended().success());
    assert_eq!(second.settings(), second.before);
    world.counts("sh", 0);
}

#[test]
fn a_panic_is_told_on_a_terminal_that_was_given_back() {
    let world = World::new();
    world.ok(&["up"]);
    let mut command = world.command(&[]);
    command.env("TEST_PANICS", "1");
    let mut tty = Tty::start(command, 40, 120);
    assert_eq!(tty.ended().code(), Some(101));
    assert_eq!(tty.settings(), tty.before);
    tty.until("what it said, on the screen before", |screen| {
        !screen.alternate_screen() && screen.contents().contains("as the test wants it")
    });
}

#[test]
fn a_window_that_is_pulled_about_is_painted_right_in_the_end() {
    let world = World::new();
    for number in 0..20 {
        world.ok(&["new", &format!("session-{number}"), "--mode", "on-demand", "--", "cat"]);
    }
    let mut tty = world.tui();
    let mut random = Dice(21);
    for _ in 0..300 {
        tty.resize(random.below(90) as u16 + 1, random.below(300) as u16 + 1);
        tty.keys(b"jk");
    }
    tty.resize(40, 120);
    tty.keys(b"\x0cG");
    on(&tty, "session-9");
    tty.until("all of it", |screen| {
        let text = screen.contents();
        text.lines().next().is_some_and(|line| line.starts_with(" pinfold  20 sessions"))
            && text.contains("q quit")
    });
    tty.keys(b"q");
    assert!(tty.ended().success());
}

fn end(pid: u32) {
    Held::open(pid).unwrap().signal(Signal::TERM);
}

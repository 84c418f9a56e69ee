//! Shims that are forked, not executed.

use crate::world::{PATIENCE, World, command, kill, lives, read, wait_for_end, welcome};
use pinfold_core::exit::Exit;
use pinfold_shim::client::{Opening, ShimConnection};
use pinfold_shim::nursery::Nursery;
use pinfold_shim::{Command, Listens, Report};
use std::time::Instant;

fn nursery() -> Nursery {
    Nursery::new(env!("CARGO_BIN_EXE_test-pinfold-shim").into(), Vec::new(), None)
}

/// Starts a shim that was told to go; returns it with its pid.
fn shim(world: &World, nursery: &Nursery, session: &str) -> (ShimConnection, u32) {
    let guard = world.lock(session);
    let opening = Opening { listens: Listens::Late, ..world.opening(session) };
    let (_, mut link) = nursery.spawn(&opening, &[(&world.folder, &guard)]).unwrap();
    link.send(&Command::Hello { generation: 1 }).unwrap();
    let shim = welcome(&mut link).shim;
    let _receipt = guard.surrender();
    link.send(&Command::Go).unwrap();
    (link, shim)
}

fn exit_of(link: &mut ShimConnection) -> Exit {
    loop {
        match link.receive(Some(Instant::now() + PATIENCE)).unwrap() {
            Some(Report::Exited(exited)) => return exited.ended.exit,
            Some(_) => {}
            None => panic!("the shim left"),
        }
    }
}

fn parent(pid: u32) -> u32 {
    let stat = read(format!("/proc/{pid}/stat").as_ref());
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_forked_shim_is_a_shim_under_its_own_name() {
    let world = World::new();
    let nursery = nursery();
    let (mut first, one) = shim(&world, &nursery, "api");
    let (mut second, two) = shim(&world, &nursery, "a-session-with-a-much-longer-name");
    assert_eq!(parent(one), parent(two));
    let line =
        |pid: u32| read(format!("/proc/{pid}/cmdline").as_ref()).trim_end_matches('\0').replace('\0', " ");
    assert!(line(one).ends_with("pinfold-shim api"), "{:?}", line(one));
    assert!(line(two).ends_with("pinfold-shim a-session-with-a-much-longer-name"), "{:?}", line(two));
    assert_eq!(read(format!("/proc/{one}/comm").as_ref()), "pinfold-shim\n");
    assert!(line(parent(one)).ends_with("pinfold-shim nursery"), "{:?}", line(parent(one)));
    for link in [&mut first, &mut second] {
        link.send(&Command::Start(Box::new(command(1, &["sh", "-c", "kill -9 $$"])))).unwrap();
        assert_eq!(exit_of(link), Exit::Signal(9));
        link.send(&Command::Release).unwrap();
        while link.receive(Some(Instant::now() + PATIENCE)).unwrap().is_some() {}
    }
    // The test does not have to reap them.
    wait_for_end(one);
    wait_for_end(two);
    assert!(!std::path::Path::new(&format!("/proc/{one}")).exists() || !lives(one));
}

#[test]
fn a_nursery_that_was_killed_takes_nobody_along_and_is_followed_by_another() {
    let world = World::new();
    let nursery = nursery();
    let (mut first, one) = shim(&world, &nursery, "api");
    let killed = parent(one);
    kill(killed);
    wait_for_end(killed);
    let (_second, two) = shim(&world, &nursery, "web");
    assert_ne!(parent(two), killed);
    assert!(lives(one));
    first.send(&Command::Start(Box::new(command(1, &["sh", "-c", "exit 3"])))).unwrap();
    assert_eq!(exit_of(&mut first), Exit::Code(3));
}

#[test]
fn a_nursery_ends_with_whoever_has_it_and_its_shims_go_on() {
    let world = World::new();
    let nursery = nursery();
    let (mut link, one) = shim(&world, &nursery, "api");
    let parent = parent(one);
    drop(nursery);
    assert!(!lives(parent));
    link.send(&Command::Start(Box::new(command(1, &["true"])))).unwrap();
    assert_eq!(exit_of(&mut link), Exit::Code(0));
}

#[test]
fn a_shim_that_cannot_be_had_is_said_to_be_missing() {
    let world = World::new();
    let guard = world.lock("api");
    let none = Nursery::new(world.path("nothing"), Vec::new(), None);
    none.spawn(&world.opening("api"), &[(&world.folder, &guard)]).unwrap_err();
    let no_shim = Nursery::new("/bin/true".into(), Vec::new(), None);
    let asked = no_shim.spawn(&world.opening("api"), &[(&world.folder, &guard)]);
    let greeted = asked.map(|(_, mut link)| {
        let _ = link.send(&Command::Hello { generation: 1 });
        link.receive(None)
    });
    assert!(!matches!(greeted, Ok(Ok(Some(_)))), "{greeted:?}");
}

#[test]
fn what_a_killed_shim_leaves_behind_is_ended_wherever_it_hides_and_other_runs_are_not() {
    let world = World::new();
    let nursery = nursery();
    let (mut first, one) = shim(&world, &nursery, "api");
    let (mut second, two) = shim(&world, &nursery, "web");
    let file = world.path("hidden");
    let hidden = file.display();
    let hide = format!(
        "setsid env -i sh -c 'echo $$ >{hidden}.new; mv {hidden}.new {hidden}; sleep 100000; sleep 100000' \
         </dev/null >/dev/null 2>&1 & exec sleep 100000"
    );
    first.send(&Command::Start(Box::new(command(1, &["sh", "-c", &hide])))).unwrap();
    second.send(&Command::Start(Box::new(command(1, &["sh", "-c", "sleep 100000; exit 3"])))).unwrap();
    let until = Instant::now() + PATIENCE;
    while !file.exists() {
        assert!(Instant::now() < until);
    }
    let hidden: u32 = read(&file).trim().parse().unwrap();
    kill(one);
    wait_for_end(one);
    assert!(lives(hidden), "nothing has ended it yet");
    nursery.end_orphans();
    wait_for_end(hidden);
    let (_third, three) = shim(&world, &nursery, "next");
    nursery.end_orphans();
    // It answers after it has looked.
    let (_fourth, four) = shim(&world, &nursery, "last");
    assert!([two, three, four].into_iter().all(lives), "shims are no orphans");
}

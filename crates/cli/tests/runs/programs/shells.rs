//! Completions in the shells themselves, typed at a terminal where that is needed.

use crate::tty::Tty;
use crate::world::{World, finish};
use std::process::Command;

/// A shell that finds our program first and uses this home.
fn shell(world: &World, program: &str) -> Command {
    let usual = world.command(&[]);
    let mut command = Command::new(program);
    command.env_clear().envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let folder = world.binary.parent().unwrap().display();
    command.env("PATH", format!("{folder}:/usr/bin:/bin")).env("LANG", "C.UTF-8").env("HOME", &world.root);
    command.current_dir(&world.root);
    command
}

fn inhabited() -> World {
    let world = World::new();
    world.ok(&["new", "parrot", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["new", "other", "--mode", "on-demand", "--", "cat"]);
    world
}

#[test]
fn zsh_completes_verbs_and_sessions_at_a_terminal() {
    let world = inhabited();
    let mut command = shell(&world, "zsh");
    command.args(["-f", "-i"]);
    let tty = Tty::start(command, 24, 80);
    tty.keys(b"PS1='ready> '; autoload -Uz compinit; compinit -u -D; source =(pinfold completions zsh); echo is-$((40+2))\r");
    tty.shows("is-42");
    tty.keys(b"pinfold show par\t");
    tty.shows("pinfold show parrot");
    tty.keys(b"\x15pinfold inter\t");
    tty.shows("pinfold interrupt");
    tty.keys(b"\x15pinfold new x --mode on\t");
    tty.until("both modes that begin so", |screen| {
        let text = screen.contents();
        text.contains("on-demand") && text.contains("once")
    });
}

#[test]
fn fish_completes_verbs_and_sessions() {
    let world = inhabited();
    let completed = |line: &str| {
        let script = format!("pinfold completions fish | source; complete -C '{line}'");
        let answer = finish(shell(&world, "fish").args(["--no-config", "-c", &script]));
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(completed("pinfold show par"), ["parrot"]);
    assert_eq!(completed("pinfold inter"), ["interrupt"]);
    let mut modes = completed("pinfold new x --mode o");
    modes.sort();
    assert_eq!(modes, ["on-demand", "once"]);
}

#[test]
fn bash_completes_at_a_terminal() {
    let world = inhabited();
    let mut command = shell(&world, "bash");
    command.args(["--norc", "--noprofile", "-i"]);
    let tty = Tty::start(command, 24, 80);
    tty.keys(b"PS1='ready> '; eval \"$(pinfold completions bash)\"; echo is-$((40+2))\r");
    tty.shows("is-42");
    tty.keys(b"pinfold show par\t");
    tty.shows("pinfold show parrot");
}

#[test]
fn man_sets_every_page_without_a_warning() {
    let world = World::new();
    let help = world.ok(&["help"]).stdout;
    for verb in [vec!["man".to_owned()]]
        .into_iter()
        .chain(crate::world::verbs_in(&help).into_iter().map(|verb| vec!["man".to_owned(), verb]))
    {
        let words: Vec<&str> = verb.iter().map(String::as_str).collect();
        let page = world.path("page.1");
        std::fs::write(&page, world.ok(&words).stdout).unwrap();
        let mut command = Command::new("man");
        command.args(["-l", "--warnings"]).arg(&page).env("MANPAGER", "cat").env("LC_ALL", "C.UTF-8");
        let set = finish(&mut command);
        assert_eq!((set.code, set.stderr.as_str()), (0, ""), "{words:?}");
        assert!(set.stdout.contains("NAME") && set.stdout.contains("SYNOPSIS"), "{}", set.stdout);
    }
}

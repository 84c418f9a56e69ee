//! Every key in the help does what it says.

use super::keymap::{KeyContext, TABLE};
use super::{gone, on, select};
use crate::tty::Tty;
use crate::world::World;
use std::collections::BTreeSet;

/// A case, and the actions that it shows.
type Case = (&'static [&'static str], fn(&World, &Tty));

/// Run in this order, in one world: `asks` has a request, `fails` has failed, `api` reads lines, `shell` has
/// a terminal.
const CASES: &[Case] = &[
    (&["first", "last", "down", "up", "page-down", "page-up", "next-needy"], moves),
    (&["help"], help),
    (&["attach"], attaches),
    (&["screen"], looks),
    (&["send", "newline", "accept"], sends),
    (&["answer", "allow", "deny", "always"], answers),
    (&["interrupt"], interrupts),
    (&["start", "stop", "restart"], steers),
    (&["new", "field-next", "field-back"], makes),
    (&["archive", "undo"], archives),
    (&["purge"], purges),
    (&["search", "needy", "close"], finds),
    (&["tags", "group", "fold", "pin", "archived"], arranges),
    (&["follow"], follows),
    (&["pane", "pane-down", "pane-up"], panes),
    (&["locks", "palette", "mouse", "redraw"], others),
];

#[test]
fn every_key_of_the_help_does_what_it_says() {
    let world = World::new();
    world.with_player("");
    world.play("asks");
    world.ok(&["new", "fails", "--mode", "once", "--", "sh", "-c", "exit 3"]);
    world.ok(&[
        "new",
        "api",
        "--",
        "sh",
        "-c",
        "seq 1 40; while read -r line; do printf 'got %s\\n' \"$line\"; done",
    ]);
    world.shell("shell");
    world.wait("fails", "failed");
    world.told("asks", "asks");
    world.request_of("asks");
    let mut tty = world.tui();
    tty.shows("1 waiting for you");
    let mut shown: BTreeSet<&str> = BTreeSet::from(["quit"]);
    for (acts, case) in CASES {
        case(&world, &tty);
        shown.extend(*acts);
    }
    tty.keys(b"q");
    assert!(tty.ended().success());
    assert_eq!(tty.settings(), tty.before, "the terminal is as it was");
    tty.until("the screen before", |screen| !screen.alternate_screen() && !screen.bracketed_paste());
    let all: BTreeSet<&str> = TABLE.iter().map(|row| row.act.word()).collect();
    assert_eq!(shown, all, "a key that no case presses");
    assert!(TABLE.iter().any(|row| row.place == KeyContext::List));
}

fn moves(_: &World, tty: &Tty) {
    tty.keys(b"G");
    on(tty, "shell");
    tty.keys(b"g");
    on(tty, "asks");
    tty.keys(b"j");
    on(tty, "fails");
    tty.keys(b"k");
    on(tty, "asks");
    tty.keys(b"\x1b[6~");
    on(tty, "shell");
    tty.keys(b"\x1b[5~");
    on(tty, "asks");
    tty.keys(b"\t");
    on(tty, "fails");
}

fn help(_: &World, tty: &Tty) {
    tty.keys(b"?");
    tty.shows("in the list");
    tty.keys(b"j");
    gone(tty, "in the list");
    tty.keys(b"k");
    tty.shows("in the list");
    tty.keys(b"\x1b[6~");
    tty.shows("where a request is answered");
    tty.keys(b"\x1b");
    gone(tty, "where a request is answered");
}

fn attaches(world: &World, tty: &Tty) {
    select(tty, "shell");
    tty.keys(b"\r");
    tty.until("its prompt", |screen| screen.contents().starts_with('$'));
    world.counts("shell", 1);
    tty.keys(b"echo at-$((40+2))\r");
    tty.shows("at-42");
    tty.keys(b"\x1d");
    tty.shows("detached from `shell`");
    on(tty, "shell");
    world.counts("shell", 0);
}

/// The session's screen is seen, which counts as no consumer.
fn looks(world: &World, tty: &Tty) {
    tty.keys(b"v");
    tty.shows("its terminal, read only");
    tty.shows("at-42");
    assert_eq!(world.show("shell")["consumers"], 0);
    tty.keys(b"v");
    gone(tty, "read only");
}

fn sends(world: &World, tty: &Tty) {
    select(tty, "api");
    tty.keys(b"shello\x1b\ryou");
    tty.shows("message to api");
    tty.keys(b"\r");
    gone(tty, "message to api");
    assert_eq!(world.printed("api", "got hello"), "\\nyou");
    // A paste is text, whatever it looks like: a line break in it sends nothing.
    tty.keys(b"s\x1b[200~q\rx\x1b[201~");
    tty.shows("message to api");
    tty.keys(b"\x1b");
    tty.shows("what you began is kept");
}

fn answers(world: &World, tty: &Tty) {
    select(tty, "asks");
    let rows: [(&[u8], &str, &str); 4] = [
        (b"n", "deny", "denied"),
        (b"y", "allow", "allowed"),
        (b"A", "allow", "allowed"),
        (b"wbe careful\r", "allow", "allowed"),
    ];
    for (number, (keys, verdict, answer)) in rows.into_iter().enumerate() {
        let request = format!("({})", world.request_of("asks")["id"].as_str().unwrap());
        tty.shows(&format!("asks for permission {request}"));
        tty.keys(b"a");
        tty.shows(&format!("asks asks {request}"));
        tty.keys(keys);
        gone(tty, "asks asks");
        let told = world
            .until("it is answered", || world.events_of("asks", "request_answered").get(number).cloned());
        assert_eq!(told["verdict"], verdict, "{told}");
        let done = || world.inbox("asks").get(number).filter(|message| message["state"] == "done").cloned();
        assert_eq!(world.until("its turn is done", done)["answer"], answer);
        world.told("asks", "asks");
        world.request_of("asks");
    }
    tty.keys(b"x");
    tty.shows("stop asks?");
    tty.keys(b"n");
    gone(tty, "stop asks?");
    assert_eq!(world.show("asks")["state"], "running", "it was asked first");
}

fn interrupts(world: &World, tty: &Tty) {
    tty.keys(b"i");
    world.until("its turn is over", || (world.show("asks")["inbox"]["in_flight"] == 0).then_some(()));
}

fn steers(world: &World, tty: &Tty) {
    select(tty, "api");
    tty.keys(b"x");
    world.wait("api", "stopped");
    tty.shows("stopped `api`");
    tty.keys(b"S");
    world.wait("api", "running");
    tty.shows("started `api`");
    let pid = world.pid("api");
    tty.keys(b"r");
    tty.shows("restarted `api`");
    assert_ne!(world.pid("api"), pid);
}

fn makes(world: &World, tty: &Tty) {
    std::fs::create_dir(world.path("deep-directory")).unwrap();
    tty.keys(b"n");
    tty.shows("a new session");
    // The last of the agents runs any command.
    tty.keys(b"\x1b[D");
    tty.shows("◂ command ▸");
    tty.keys(b"\t\x1b[Z\tsleep 1000\t/deep-d\t");
    tty.shows("deep-directory/");
    tty.keys(b"\x1b[B\x1b[B");
    tty.keys(b"made\r");
    tty.shows("made `made`");
    world.wait("made", "running");
    assert!(world.show("made")["dir"].as_str().unwrap().ends_with("/deep-directory"));
    on(tty, "made");
}

fn archives(world: &World, tty: &Tty) {
    select(tty, "made");
    tty.keys(b"A");
    tty.shows("archived `made`");
    assert_eq!(world.sessions()["made"]["state"], "archived");
    tty.keys(b"u");
    tty.shows("brought back `made`");
    assert_ne!(world.sessions()["made"]["state"], "archived");
}

fn purges(world: &World, tty: &Tty) {
    world.ok(&["new", "spare", "--mode", "on-demand", "--", "cat"]);
    tty.keys(b"P");
    tty.shows("archive spare");
    tty.keys(b"y");
    tty.shows(" alone");
    assert_eq!(world.sessions()["spare"]["state"], "archived");
}

fn finds(world: &World, tty: &Tty) {
    tty.keys(b"/hello");
    // Messages are searched too, while the user types.
    tty.until("the message", |screen| {
        screen.contents().contains("“") && !screen.contents().contains("fails")
    });
    tty.keys(b"\x1b");
    gone(tty, "“");
    world.ok(&["start", "made"]);
    tty.keys(b"!");
    tty.shows("only those that need you");
    tty.until("only these", |screen| {
        screen.contents().contains("fails") && !screen.contents().contains("made ")
    });
    tty.keys(b"\x1b");
    gone(tty, "only those that need you");
}

fn arranges(world: &World, tty: &Tty) {
    select(tty, "api");
    tty.keys(b"t");
    tty.shows("tags of api");
    tty.keys(b"team\r");
    tty.shows("tagged `api`");
    assert_eq!(world.show("api")["tags"][0], "team");
    tty.keys(b"o");
    tty.shows("by tag");
    tty.shows("▾ team (1)");
    tty.keys(b" ");
    tty.shows("▸ team (1)");
    tty.keys(b" oooo");
    tty.until("the tree", |screen| {
        screen.contents().lines().next().is_some_and(|line| !line.contains(" by "))
    });
    select(tty, "made");
    tty.keys(b"p");
    tty.until("it is first", |screen| {
        screen.contents().lines().nth(2).is_some_and(|line| line.contains("*") && line.contains("made"))
    });
    tty.keys(b"p");
    tty.keys(b"z");
    tty.shows("with archived ones");
    tty.shows("spare");
    tty.keys(b"z");
    gone(tty, "spare");
}

fn follows(world: &World, tty: &Tty) {
    select(tty, "api");
    tty.keys(b"f");
    tty.shows("output of api");
    world.counts("api", 1);
    world.ok(&["send", "api", "while followed"]);
    tty.shows("got while followed");
    tty.keys(b"q");
    gone(tty, "output of api");
    world.counts("api", 0);
}

fn panes(_: &World, tty: &Tty) {
    tty.shows("api is running");
    tty.keys(b"\x04");
    gone(tty, "api is running");
    tty.keys(b"\x15");
    tty.shows("api is running");
    tty.keys(b"d");
    gone(tty, "── api");
    tty.keys(b"d");
    on(tty, "api");
}

fn others(_: &World, tty: &Tty) {
    tty.keys(b"L");
    tty.shows("session:api");
    tty.keys(b"\x1b");
    gone(tty, "session:api");
    tty.keys(b":");
    tty.shows("commands");
    tty.keys(b"lock\r");
    tty.shows("session:api");
    tty.keys(b"q");
    tty.keys(b"m");
    tty.shows("the mouse is the terminal's");
    let before = tty.everything().matches("\x1b[2J").count();
    tty.keys(b"\x0c");
    while tty.everything().matches("\x1b[2J").count() == before {
        std::thread::yield_now();
    }
}

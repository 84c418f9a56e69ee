//! Well-known terminal programs: shown, detached from and joined again through `attach`.

use crate::world::World;

#[test]
fn a_file_is_edited_with_vim_over_a_detach() {
    let world = World::new();
    world.ok(&["new", "vim", "--pty", "--mode", "once", "--", "vim", "-u", "NONE", "-N", "file"]);
    let mut first = world.attach("vim", &[]);
    first.shows("~");
    first.keys("ihello, wörld\r日本\x1b".as_bytes());
    first.shows("日本");
    first.detach();
    // The earlier screen is back, without what the editor had switched on.
    first.until("main screen", |screen| !screen.alternate_screen() && !screen.bracketed_paste());
    let mut second = world.attach("vim", &[]);
    second.until("the editor's screen", |screen| {
        screen.alternate_screen() && screen.contents().starts_with("hello, wörld\n日本\n~")
    });
    second.keys(b"ggdw:wq\r");
    assert!(second.ended().success());
    assert_eq!(std::fs::read_to_string(world.path("file")).unwrap(), ", wörld\n日本\n");
    world.wait("vim", "stopped");
}

#[test]
fn less_top_and_htop_are_seen_and_left() {
    let world = World::new();
    let lines: String = (1..=500).map(|line| format!("line {line}\n")).collect();
    std::fs::write(world.path("lines"), lines).unwrap();
    world.ok(&["new", "less", "--pty", "--mode", "once", "--", "less", "lines"]);
    world.ok(&["new", "top", "--pty", "--mode", "once", "--", "top", "-d", "60"]);
    world.ok(&["new", "htop", "--pty", "--mode", "once", "--", "htop", "-d", "100"]);
    let mut less = world.attach("less", &[]);
    less.shows("line 23");
    less.keys(b"G");
    less.shows("line 500");
    for (name, text) in [("top", "PID USER"), ("htop", "PID")] {
        let mut first = world.attach(name, &[]);
        first.shows(text);
        first.detach();
        let mut second = world.attach(name, &[]);
        second.shows(text);
        second.keys(b"q");
        assert!(second.ended().success());
    }
    less.keys(b"q");
    assert!(less.ended().success());
}

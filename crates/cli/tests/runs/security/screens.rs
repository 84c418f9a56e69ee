//! An agent's output reaches a terminal only as text, and a joined terminal only through a list of what may pass.

use crate::tty::Tty;
use crate::world::{Ends, World};
use std::time::{Duration, Instant};

/// Sequences that reach beyond the screen: writing and reading the clipboard, a directory, notifications, a
/// download, moving a window and reading its title, settings, capabilities, an image, a checksum of the
/// screen, the answerback.
const REACHING: &[&str] = &[
    "\x1b]52;c;aGk=\x07",
    "\x1b]52;c;?\x07",
    "\x1b]7;file://h/x\x07",
    "\x1b]9;hello\x07",
    "\x1b]777;notify;a;b\x07",
    "\x1b]1337;File=inline=1:AAAA\x07",
    "\x1b[21t",
    "\x1b[8;50;132t",
    "\x1bP$qm\x1b\\",
    "\x1bP+q544e\x1b\\",
    "\x1b_Ga=T;AAAA\x1b\\",
    "\x1b[1;1;1;1;9;9*y",
    "\x1b]11;#000000\x07",
    "\x1b[3J",
    "\x05",
    "\u{9b}21t",
];

/// What a program needs: styles, a title, a link, queries.
const NEEDED: &str = "\x1b[1;31mred\x1b[m\x1b]2;its title\x07\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\\x1b[?2004h\x1b[6n";

/// A text as an argument of printf.
fn octal(text: &str) -> String {
    text.bytes().map(|byte| format!("\\{byte:03o}")).collect()
}

/// A session with a terminal that prints when a line is typed.
fn prints_when_asked(world: &World, text: &str) -> Tty {
    let script =
        format!("stty -echo; echo begun; while read -r line; do printf '{}<end>\\n'; done", octal(text));
    world.ok(&["new", "t", "--pty", "--", "sh", "-c", &script]);
    let tty = world.attach("t", &[]);
    tty.shows("begun");
    tty
}

#[test]
fn a_joined_terminal_gets_what_a_program_needs_and_nothing_that_reaches_beyond_the_screen() {
    let world = World::new();
    let text: String = REACHING.iter().map(|sequence| format!("a{sequence}b")).collect();
    let mut tty = prints_when_asked(&world, &format!("{NEEDED}{text}"));
    tty.keys(b"\r");
    tty.shows("<end>");
    let seen = tty.everything();
    for sequence in REACHING {
        assert!(!seen.contains(sequence), "{sequence:?} came through");
    }
    assert!(seen.contains(NEEDED), "{seen:?}");
    // Not one letter of the text is lost.
    let left: String =
        REACHING.iter().map(|sequence| if sequence.starts_with('\u{9b}') { "a21tb" } else { "ab" }).collect();
    assert!(seen.contains(&left), "{seen:?}");
    tty.detach();
}

#[test]
fn a_clipboard_is_written_where_its_owner_allows_it_and_never_read() {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), "[attach]\nallow = [\"clipboard\"]\n").unwrap();
    let mut tty = prints_when_asked(&world, "\x1b]52;c;aGk=\x07\x1b]52;c;?\x07\x1b]2;title\x07");
    tty.keys(b"\r");
    tty.shows("<end>");
    let seen = tty.everything();
    assert!(seen.contains("\x1b]52;c;aGk=\x07<end>"), "{seen:?}");
    tty.detach();
}

#[test]
fn a_word_that_allows_nothing_is_refused_with_the_nearest() {
    let world = World::new();
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), "[attach]\nallow = [\"clipbord\"]\n").unwrap();
    let refused = world.run(&["up"]);
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(refused.stderr.contains("line 2") && refused.stderr.contains("`clipboard`"), "{refused:?}");
}

#[test]
fn whoever_leaves_right_after_a_question_waits_for_its_answer() {
    let world = World::new();
    let mut tty = prints_when_asked(&world, "\x1b[6n");
    let begun = Instant::now();
    tty.keys(b"\r");
    tty.shows("<end>");
    tty.keys(b"\x1d");
    tty.keys(b"\x1b[1;1R");
    assert!(tty.child.ended().success());
    assert!(begun.elapsed() >= Duration::from_millis(50), "an answer may still be on its way");
}

#[test]
fn a_session_without_a_terminal_is_followed_as_text() {
    let world = World::new();
    let text: String = REACHING.concat();
    let script =
        format!("while :; do printf '{}<end>\\n'; sleep 0.1; done", octal(&format!("{NEEDED}{text}")));
    world.ok(&["new", "a", "--", "sh", "-c", &script]);
    for words in [&["attach", "a"] as &[&str], &["logs", "a", "-f"]] {
        let mut command = world.command(words);
        command.env("NO_COLOR", "1");
        let tty = Tty::start(command, 24, 80);
        tty.shows("<end>");
        let seen = tty.everything();
        for sequence in REACHING {
            assert!(!seen.contains(sequence), "{words:?}: {sequence:?} came through");
        }
        assert!(!seen.contains("\x1b]2;") && !seen.contains("\x1b[6n"), "{words:?}: {seen:?}");
        tty.keys(b"\x03");
    }
}

#[test]
fn an_answer_in_an_inbox_is_text() {
    let world = World::new();
    let answers = r#"while read -r line; do printf '%s\n' 'PINFOLD_DONE "\u001b]52;c;aGk=\u0007\u001b[21tred\u009b21t"'; done"#;
    world.ok(&["new", "chat", "--mode", "on-demand", "--turns", "done", "--", "sh", "-c", answers]);
    world.ok(&["send", "chat", "\u{1b}]52;c;aGk=\u{7}x", "--wait", "20s"]);
    let mut command = world.command(&["inbox", "chat"]);
    command.env("NO_COLOR", "1");
    let tty = Tty::start(command, 24, 80);
    tty.shows("done");
    let seen = tty.everything();
    assert!(!seen.contains("\x1b]52") && !seen.contains("\x1b[21t") && !seen.contains('\u{9b}'), "{seen:?}");
}

//! How a program asks for a person's attention: what counts, and what only looks like it.

use pinfold_terminal::{Attention, Size, Terminal};

fn heard(printed: &str) -> Option<Attention> {
    let mut terminal = Terminal::new(Size::new(24, 80));
    // The result is the same wherever the output is cut.
    printed.as_bytes().chunks(1).for_each(|piece| terminal.feed(piece));
    let heard = terminal.attention();
    assert_eq!(terminal.attention(), None, "it is told once");
    heard
}

fn notice(text: &str) -> Option<Attention> {
    Some(Attention::Notice(Some(text.to_owned())))
}

#[test]
fn bells_and_notifications_are_heard_and_nothing_else() {
    let silent = Some(Attention::Notice(None));
    let rows = [
        ("a\x07b", Some(Attention::Bell)),
        ("\x1b]9;Claude needs you\x07", notice("Claude needs you")),
        ("\x1b]9;a;b\x1b\\", notice("a;b")),
        ("\x1b]777;notify;Codex;turn done\x07", notice("Codex: turn done")),
        ("\x1b]99;;hello\x1b\\", notice("hello")),
        ("\x1b]99;i=1:d=0:p=title;hello\x1b\\", notice("hello")),
        ("\x1b]99;i=1:e=1;aGVsbG8=\x1b\\", silent.clone()),
        ("\x1b]777;notify\x07", silent),
        // The end of another sequence, progress, a directory, queries and answers about notifications.
        ("\x1b]0;title\x07", None),
        ("\x1b]9;4;1;50\x07", None),
        ("\x1b]9;4;0\x1b\\", None),
        ("\x1b]9;9;/home\x07", None),
        ("\x1b]9\x07", None),
        ("\x1b]777;precmd\x07", None),
        ("\x1b]99;i=1:p=?;\x1b\\", None),
        ("\x1b]99;i=1:p=close;\x1b\\", None),
        ("\x1bP1$r\x07\x1b\\", None),
        ("plain", None),
    ];
    for (printed, expected) in rows {
        assert_eq!(heard(printed), expected, "{printed:?}");
    }
}

#[test]
fn the_text_of_a_notification_outlives_a_bell_and_a_reset() {
    assert_eq!(heard("\x1b]9;look\x07\x07"), notice("look"));
    assert_eq!(heard("\x07\x1b]9;look\x07"), notice("look"));
    assert_eq!(heard("\x1b]9;look\x07\x1bc"), notice("look"));
}

#[test]
fn the_text_of_a_notification_is_short_and_plain() {
    let long = "ä".repeat(500);
    assert_eq!(heard(&format!("\x1b]9;{long}\x07")), notice(&"ä".repeat(100)));
    assert_eq!(heard("\x1b]9;a\u{202e}\u{85}b\x07"), notice("a\u{202e}b"));
}

//! What a program prints, as it reaches another person's terminal.

use pinfold_terminal::{Allow, Filter, Size, Terminal};

fn filtered(text: &[u8], allow: Allow) -> String {
    let mut out = Vec::new();
    Filter::new(allow).pass(text, &mut out);
    String::from_utf8(out).expect("text that was cut nowhere")
}

fn usual(text: &str) -> String {
    filtered(text.as_bytes(), Allow::default())
}

/// Text, styles, cursor, modes, queries: what shells, editors, pagers and agents print every day.
const PASSES: &[&str] = &[
    "plain, wörld 日本 👩‍🚀 \u{a0}\r\n\ttab\x08\x07",
    "\x1b[1;38;5;208;48:2::1:2:3;4:3mlooks\x1b[m",
    "\x1b[2J\x1b[H\x1b[10;20f\x1b[3A\x1b[K\x1b[1K\x1b[?K\x1b[J\x1b[5X\x1b[2@\x1b[3P\x1b[L\x1b[M\x1b[S\x1b[T\x1b[5b",
    "\x1b[2;20r\x1b7\x1b8\x1b[s\x1b[u\x1bM\x1bD\x1bE\x1b=\x1b>\x1b(0lqk\x1b(B\x0e\x0f\x1b[4h\x1b[4l",
    "\x1b[?1049h\x1b[?1h\x1b[?25l\x1b[?1000;1002;1006h\x1b[?2004h\x1b[?1004h\x1b[?2026h\x1b[?2026l\x1b[?1049l",
    "\x1b[2 q\x1b[!p\x1b[>4;2m\x1b[>4m\x1b[>1u\x1b[<u\x1b[=5;1u",
    "\x1b[c\x1b[>c\x1b[0c\x1b[6n\x1b[5n\x1b[?6n\x1b[?996n\x1b[>q\x1b[>0q\x1b[?2026$p\x1b[?u\x1b[?4m\x1b[18t\x1b[14t",
    "\x1b[22;0;0t\x1b[23;0;0t",
    "\x1b]0;title\x07\x1b]2;tïtle\x1b\\",
    "\x1b]8;id=1;https://example.org/a?b=c\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]10;?\x07\x1b]11;?\x1b\\\x1b]4;1;?\x07",
];

#[test]
fn what_full_screen_programs_need_passes_untouched() {
    for text in PASSES {
        assert_eq!(usual(text), *text);
    }
}

/// What is dropped, and what is left besides plain text.
const DROPPED: &[(&str, &str)] = &[
    // The clipboard, written and read.
    ("a\x1b]52;c;aGk=\x07b", "ab"),
    ("a\x1b]52;c;?\x1b\\b", "ab"),
    // Directory, notifications, downloads, marks, anything unknown.
    ("a\x1b]7;file://h/x\x07\x1b]9;hello\x07\x1b]777;notify;a;b\x07\x1b]1337;File=inline=1:AAAA\x07b", "ab"),
    ("a\x1b]133;A\x07\x1b]99;;x\x1b\\\x1b]22;none\x07\x1b]30001\x07\x1b]\x07b", "ab"),
    // Titles read back, windows moved.
    ("a\x1b[21t\x1b[20t\x1b[3;0;0t\x1b[8;50;132t\x1b[2tb", "ab"),
    // Settings and capabilities read back, macros, images: all of DCS, APC, PM and SOS.
    ("a\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1bP1;1|17/x\x1b\\\x1bPq#0~\x1b\\b", "ab"),
    ("a\x1b_Ga=T;AAAA\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\b", "ab"),
    // Screen checksums, printing, locked keys, other widths, tests, pointers, 8-bit controls, other character sets.
    ("a\x1b[1;1;1;1;9;9*y\x1b[5i\x1b[?5i\x1b[2h\x1b[?3h\x1b[2;1y\x1b[>1p\x1b G\x1b%@\x1b#8\x1bZb", "ab"),
    // Setting colours, erasing the scrollback.
    ("a\x1b]11;#000000\x07\x1b]4;1;red\x1b\\\x1b]104\x07\x1b[3Jb", "ab"),
    // The answerback of the terminal.
    ("a\x05b", "ab"),
    // Links that would start something.
    ("\x1b]8;;file:///bin/sh\x07a\x1b]8;;\x07b", "a\x1b]8;;\x07b"),
    ("\x1b]8;;ssh://-oProxyCommand=x\x07ab", "ab"),
    // Some terminals obey controls that are encoded as characters.
    ("a\u{9b}21tb\u{9d}52;c;x\u{9c}", "a21tb52;c;x"),
    // A sequence with several modes keeps the known ones.
    ("\x1b[?3;25;1000h", "\x1b[?25;1000h"),
    // A title cannot end early and continue as something else.
    ("\x1b]0;a\u{9c}\u{9b}21tb\rc\x07", "\x1b]0;a21tbc\x07"),
    // Cut off by a cancel, or by the next sequence.
    ("\x1b]52;c;x\x18a\x1b]52;c;x\x1b[1mb\x1b[21\x1b[1mc\x1b[\x18d", "a\x1b[1mb\x1b[1mcd"),
    // A control character in the middle takes effect at once.
    ("\x1b[1\n;2\x05mx", "\n\x1b[1;2mx"),
];

#[test]
fn what_reaches_beyond_the_screen_is_dropped_and_no_text_with_it() {
    for (text, left) in DROPPED {
        assert_eq!(usual(text), *left, "{text:?}");
    }
}

#[test]
fn each_word_of_the_configuration_allows_its_own_and_nothing_else() {
    let samples = [
        ("title", "\x1b]2;x\x07"),
        ("links", "\x1b]8;;http://x\x07"),
        ("color-queries", "\x1b]11;?\x07"),
        ("colors", "\x1b]11;#fff\x07"),
        ("clipboard", "\x1b]52;c;aGk=\x07"),
        ("notifications", "\x1b]9;x\x07"),
        ("directory", "\x1b]7;file://h/x\x07"),
    ];
    assert_eq!(samples.map(|(word, _)| word), Allow::WORDS);
    for (word, _) in samples {
        let mut allow = Allow::NOTHING;
        assert!(allow.allow(word));
        for (other, sample) in samples {
            let left = filtered(sample.as_bytes(), allow);
            assert_eq!(left, if other == word { sample } else { "" }, "{other} with {word}");
        }
        assert_eq!(filtered(b"\x1b]52;c;?\x07", allow), "", "the clipboard is never read");
    }
    assert!(!Allow::NOTHING.clone().allow("everything"));
}

#[test]
fn a_whole_reset_gives_the_screen_back_and_keeps_the_scrollback() {
    let left = usual("a\x1bcb");
    assert!(left.starts_with('a') && left.ends_with("\x1b[2J\x1b[Hb"), "{left:?}");
    assert!(!left.contains("\x1bc") && left.contains("\x1b[?1049l"), "{left:?}");
}

#[test]
fn questions_are_counted_so_that_late_answers_can_be_waited_for() {
    let mut filter = Filter::new(Allow::default());
    let mut out = Vec::new();
    filter.pass(b"text\x1b[m\x1b]0;t\x07\x1b[21t\x1bP+q\x1b\\", &mut out);
    assert_eq!(filter.questions(), 0);
    filter.pass(b"\x1b[6n\x1b[c\x1b]11;?\x07\x1b[?2026$p", &mut out);
    assert_eq!(filter.questions(), 4);
}

/// All samples in one stream.
fn everything() -> Vec<u8> {
    let samples = PASSES.iter().chain(DROPPED.iter().map(|(text, _)| text));
    samples.flat_map(|text| text.bytes()).chain(*b"\xff\x9b1m\xe9t\xe9\xc2").collect()
}

fn in_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, u64) {
    let (mut filter, mut out) = (Filter::new(Allow::default()), Vec::new());
    pieces.for_each(|piece| filter.pass(piece, &mut out));
    (out, filter.questions())
}

#[test]
fn a_stream_may_be_cut_at_every_byte() {
    let stream = everything();
    let whole = in_pieces([stream.as_slice()].into_iter());
    for at in 0..stream.len() {
        let (before, behind) = stream.split_at(at);
        assert_eq!(in_pieces([before, behind].into_iter()), whole, "cut at {at}");
    }
    for size in [1, 2, 3, 7] {
        assert_eq!(in_pieces(stream.chunks(size)), whole, "in pieces of {size}");
    }
}

/// Pseudo-random numbers that are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap_or(0)
    }
}

/// Finds what must not be there.
#[derive(Default)]
struct Judge(Vec<String>);

impl vte::Perform for Judge {
    fn hook(&mut self, _: &vte::Params, _: &[u8], _: bool, action: char) {
        self.0.push(format!("DCS {action}"));
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _: bool) {
        let known =
            [&b"0"[..], b"1", b"2", b"4", b"5", b"8", b"10", b"11", b"12", b"13", b"14", b"17", b"19"];
        if !params.first().is_some_and(|number| known.contains(number)) {
            self.0.push(format!("OSC {params:?}"));
        }
    }

    fn csi_dispatch(&mut self, params: &vte::Params, between: &[u8], _: bool, action: char) {
        let first = params.iter().next().and_then(|group| group.first().copied()).unwrap_or(0);
        let bad = match action {
            't' => !matches!(first, 14 | 16 | 18 | 22 | 23),
            'i' | 'y' | 'x' => true,
            'J' => first == 3,
            'h' | 'l' => between.is_empty() && first != 4,
            _ => false,
        };
        if bad {
            self.0.push(format!("CSI {params:?} {action}"));
        }
    }
}

/// What sequences are made of, whole and in pieces.
const PARTS: [&[u8]; 40] = [
    b"\x1b",
    b"[",
    b"]",
    b"P",
    b"_",
    b"\\",
    b"\x07",
    b"52;c;",
    b"aGk=",
    b"21t",
    b"3J",
    b"?",
    b"1337;",
    b";",
    b"1",
    b"m",
    b"\x18",
    b"\x9b",
    b"\xc2\x9b",
    b"\xc2",
    b"\x9d",
    b"$q",
    b"+q",
    b"text",
    b"\x1b[",
    b"\x1b]",
    b"\x1bP",
    b"\x1b\\",
    b"h",
    b"2h",
    b"5i",
    b"*y",
    b"\x05",
    b"\n",
    b"0;",
    b"\xe2\x82\xac",
    b"\xe2\x82",
    b">",
    b" ",
    b"!p",
];

#[test]
fn nothing_that_is_forbidden_passes_however_it_is_put_together() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for round in 0..20_000 {
        let count = 1 + dice.below(24);
        let stream: Vec<u8> = (0..count).flat_map(|_| PARTS[dice.below(PARTS.len())].to_vec()).collect();
        let (out, questions) = in_pieces([stream.as_slice()].into_iter());
        let mut judge = Judge::default();
        vte::Parser::new().advance(&mut judge, &out);
        assert!(judge.0.is_empty(), "{:?} in round {round}: {:?}", judge.0, String::from_utf8_lossy(&stream));
        assert!(!out.contains(&5), "an enquiry in round {round}");
        let c1 =
            String::from_utf8_lossy(&out).chars().any(|character| ('\u{80}'..='\u{9f}').contains(&character));
        assert!(!c1, "a control as a character in round {round}: {:?}", String::from_utf8_lossy(&stream));
        let at = dice.below(stream.len() + 1);
        let (before, behind) = stream.split_at(at);
        assert_eq!(in_pieces([before, behind].into_iter()), (out.clone(), questions), "cut in round {round}");
        let whole = [&out[..], b"."].concat();
        assert_eq!(in_pieces([whole.as_slice()].into_iter()).0, whole, "what has passed passes again");
    }
}

#[test]
fn a_painting_passes_untouched() {
    let mut terminal = Terminal::new(Size::new(24, 80));
    for text in PASSES {
        terminal.feed(text.as_bytes());
        let painting = terminal.paint(Size::new(24, 80));
        assert_eq!(filtered(&painting, Allow::default()).into_bytes(), painting);
    }
    let leaving = pinfold_terminal::LEAVE;
    assert_eq!(filtered(leaving, Allow::NOTHING).into_bytes(), leaving);
}

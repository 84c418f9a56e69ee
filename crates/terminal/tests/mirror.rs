//! A painting shows what was printed, as judged by another implementation of a terminal and by our own.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use pinfold_terminal::{Size, Terminal};

fn size() -> Size {
    Size::new(12, 30)
}

fn judge(bytes: &[u8]) -> vt100::Parser {
    let number = |n: u16| std::num::NonZeroU16::new(n).unwrap();
    let mut parser = vt100::Parser::new(number(size().rows()), number(size().columns()), 0);
    parser.process(bytes);
    parser
}

fn mirror(bytes: &[u8]) -> Terminal {
    let mut terminal = Terminal::new(size());
    terminal.feed(bytes);
    terminal
}

/// Returns what can be seen, line by line; nothing and a space look the same.
fn looks(screen: &vt100::Screen) -> Vec<String> {
    let cell = |row, column| {
        let cell = screen.cell(row, column).unwrap();
        let blank = cell.contents().trim().is_empty();
        let text = if blank { " " } else { cell.contents() };
        let pen = (cell.bold(), cell.italic(), cell.underline(), cell.fgcolor());
        let pen = if blank { String::new() } else { format!("{pen:?}") };
        format!("{text}{pen}{:?}{} ", cell.bgcolor(), cell.inverse())
    };
    let columns = size().columns();
    (0..size().rows()).map(|row| (0..columns).map(|column| cell(row, column)).collect()).collect()
}

fn text(screen: &vt100::Screen) -> Vec<String> {
    screen.rows(0, size().columns()).map(|row| row.trim_end().to_owned()).collect()
}

/// Pseudo-random numbers that are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

const WORDS: [&str; 11] = ["a", "Hello, ", "wörld", "日本", "e\u{301}", "~~~~", "\r", "\r\n", "ﬁ", "x", "…"];
const SEQUENCES: [&str; 27] = [
    "\x1b[H",
    "\x1b[2J",
    "\x1b[K",
    "\x1b[1K",
    "\x1b[2K",
    "\x1b[J",
    "\x1b[1J",
    "\x1b[m",
    "\x1b[1m",
    "\x1b[31m",
    "\x1b[38;5;200m",
    "\x1b[38;2;1;2;3m",
    "\x1b[34m",
    "\x1b[?25l",
    "\x1b[?25h",
    "\x1b[?2004h",
    "\x1b[?1002h",
    "\x1b[?1006h",
    "\x1b[?1h",
    "\x1b=",
    "\x1b[3;8r\x1b[H",
    "\x1b[r\x1b[H",
    "\x1b]2;title\x07",
    "\x1b[4 q",
    "\x1b[3m",
    "\x1b[4m",
    "\x1b[97m",
];
const COUNTED: [&str; 15] = ["A", "B", "C", "D", "E", "F", "G", "d", "L", "M", "P", "X", "S", "T", "`"];

/// A program at work. It moves the cursor before it does anything but print, because opinions differ on what
/// a cursor does that has just filled a line.
fn session(seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed * 7919 + 1);
    let mut text = String::new();
    for _ in 0..numbers.below(120) {
        let what = numbers.below(4);
        if what < 2 {
            text.push_str(numbers.pick(&WORDS));
            continue;
        }
        let (row, column) = (numbers.below(11) + 1, numbers.below(29) + 1);
        text.push_str(&format!("\x1b[{row};{column}H"));
        match what {
            2 => text.push_str(numbers.pick(&SEQUENCES)),
            _ => text.push_str(&format!("\x1b[{}{}", numbers.below(6), numbers.pick(&COUNTED))),
        }
    }
    text.into_bytes()
}

#[test]
fn another_terminal_shows_the_same_from_the_painting() {
    for seed in 1..3000 {
        let printed = session(seed);
        let (wanted, got) = (judge(&printed), judge(&mirror(&printed).paint(size())));
        let (wanted, got) = (wanted.screen(), got.screen());
        let shown = String::from_utf8_lossy(&printed).into_owned();
        assert_eq!(looks(got), looks(wanted), "seed {seed}: {shown:?}");
        assert_eq!(got.cursor_position(), wanted.cursor_position(), "seed {seed}: {shown:?}");
        assert_eq!(got.input_mode_formatted(), wanted.input_mode_formatted(), "seed {seed}: {shown:?}");
        assert_eq!(got.hide_cursor(), wanted.hide_cursor());
        assert_eq!(got.alternate_screen(), wanted.alternate_screen());
        assert_eq!(got.attributes_formatted(), wanted.attributes_formatted(), "seed {seed}: {shown:?}");
    }
}

#[test]
fn a_painting_of_a_painting_is_the_same() {
    let more =
        ["\x1b(0lqqk", "\x1b(B", "\x0e", "\x0f", "\x1b[?7l", "\x1b[4h", "\x1b[4l", "\x1b[>1u", "\x1b[9;53m"];
    for seed in 1..3000 {
        let mut numbers = Numbers(seed);
        let mut printed = session(seed);
        printed.extend_from_slice(numbers.pick(&more).as_bytes());
        printed.extend_from_slice(&session(seed + 5000));
        let first = mirror(&printed).paint(size());
        assert_eq!(mirror(&first).paint(size()), first, "{:?}", String::from_utf8_lossy(&printed));
    }
}

#[test]
fn what_comes_after_the_painting_fits_it() {
    for seed in 1..2000 {
        let (before, after) = (session(seed), session(seed + 9000));
        let whole = judge(&[before.clone(), after.clone()].concat());
        let late = judge(&[mirror(&before).paint(size()), after].concat());
        let shown = String::from_utf8_lossy(&before).into_owned();
        assert_eq!(text(late.screen()), text(whole.screen()), "seed {seed}: {shown:?}");
    }
}

#[test]
fn colours_of_the_background_stay_where_something_was_erased() {
    let printed = b"\x1b[44mab\x1b[K\r\n\x1b[48;5;9m\x1b[4Xx\x1b[m\x1b[7mz \x1b[27m";
    let (wanted, got) = (judge(printed), judge(&mirror(printed).paint(size())));
    assert_eq!(looks(got.screen()), looks(wanted.screen()));
}

#[test]
fn going_back_from_the_alternate_screen_finds_the_main_one() {
    let terminal = mirror(b"$ vim\r\n\x1b[?1049h\x1b[2Jediting");
    let mut later = judge(&terminal.paint(size()));
    assert!(later.screen().alternate_screen());
    assert!(later.screen().contents().contains("editing"));
    later.process(b"\x1b[?1049l$ ");
    assert!(!later.screen().alternate_screen());
    assert_eq!(later.screen().contents(), "$ vim\n$ ");
}

#[test]
fn nonsense_costs_no_memory_and_no_panic() {
    let mut numbers = Numbers(42);
    let mut terminal = Terminal::new(Size::new(3, 5));
    for round in 0..2000 {
        let bytes: Vec<u8> = (0..200).map(|_| numbers.below(256) as u8).collect();
        terminal.feed(b"\x1b");
        terminal.feed(&bytes);
        if round % 50 == 0 {
            terminal.resize(Size::new(numbers.below(40) as u16, numbers.below(40) as u16));
        }
    }
    terminal.feed(b"\x1b]2;");
    terminal.feed(&vec![b'x'; 10_000_000]);
    assert!(terminal.paint(Size::new(Size::MOST, Size::MOST)).len() < 4_000_000);
}

#[test]
fn a_terminal_answers_what_it_is_asked() {
    let mut terminal = mirror(b"ab\r\ncd\x1b[6n\x1b[c\x1b[5n");
    assert_eq!(terminal.answers(), b"\x1b[2;3R\x1b[?62;22c\x1b[0n");
    assert!(terminal.answers().is_empty());
}

#[test]
fn a_smaller_terminal_shows_the_top_left() {
    let terminal = mirror("0123456789日本\r\nsecond".as_bytes());
    let small = Size::new(1, 11);
    let mut judge = vt100::Parser::new(1.try_into().unwrap(), 11.try_into().unwrap(), 0);
    judge.process(&terminal.paint(small));
    assert_eq!(judge.screen().contents(), "0123456789");
}

#[test]
fn lines_are_drawn_with_the_other_set_of_characters() {
    assert_eq!(mirror(b"\x1b(0lqk\x1b(B\x1b)0q\x0eq\x0f").text().trim_end(), "┌─┐q─");
}

/// Floods of lines, most of them plain, some with what makes a line matter after it has gone.
fn flood(seed: u64) -> Vec<u8> {
    const REST: [&str; 16] = [
        "\x07",
        "\t",
        "\x08",
        "\x1b[K",
        "\x1b[44m",
        "\x1b[0m",
        "\x1b[1;31m",
        "\x1b[m",
        "\n",
        "\x1b[3b",
        "\x1b(0",
        "\x0e",
        "\x1b[3;8r",
        "\x1b]2;name\r\nof it\x07",
        "\x1b[?1049h",
        "\x1b[5;5H",
    ];
    let mut numbers = Numbers(seed * 7919 + 1);
    // From floods of nothing but text to such in which little is.
    let (plain, known) = (numbers.below(400) + 20, numbers.below(9) + 8);
    let mut bytes = Vec::new();
    for _ in 0..numbers.below(900) + 300 {
        match numbers.below(plain) {
            0 => bytes.extend_from_slice(REST[numbers.below(known) as usize].as_bytes()),
            1 => bytes.push(numbers.below(256) as u8),
            2 | 3 => bytes.extend_from_slice(REST[numbers.below(8) as usize].as_bytes()),
            4 => bytes.extend_from_slice("\u{301}".as_bytes()),
            _ => bytes.extend_from_slice(
                format!("{} line {}", WORDS[3], "-".repeat(numbers.below(40) as usize)).as_bytes(),
            ),
        }
        if numbers.below(8) > 0 {
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes
}

#[test]
fn lines_that_are_passed_over_leave_the_same_screen_as_those_that_are_followed() {
    let mut shorter = 0;
    for seed in 1..300 {
        let (mut at_once, mut in_pieces) = (Terminal::new(size()), Terminal::new(size()));
        for part in 0..3 {
            let bytes = flood(seed * 3 + part);
            shorter += usize::from(bytes.len() < 4096);
            at_once.feed(&bytes);
            bytes.chunks(97).for_each(|piece| in_pieces.feed(piece));
            // What is printed next shows the pen, the place and the last character.
            for terminal in [&mut at_once, &mut in_pieces] {
                terminal.feed(b"\x1b[2bx\x1b[K");
            }
            assert_eq!(at_once.paint(size()), in_pieces.paint(size()), "seed {seed}, part {part}");
            assert_eq!(at_once.attention(), in_pieces.attention(), "seed {seed}, part {part}");
            assert_eq!(at_once.answers(), in_pieces.answers());
        }
    }
    assert!(shorter < 30, "{shorter} pieces were too short to be passed over");
}

#[test]
fn what_is_on_the_edge_of_being_passed_over_is_followed() {
    let short = "a\r\n".repeat(2000);
    let edges = [
        // The last line before is longer than those that come.
        ["X".repeat(360) + "\r", short.clone()],
        // The last letter comes long before the last line, and is repeated.
        [String::new(), format!("ab{}\x1b[3b", "\r\n".repeat(3000))],
        // Nothing of it is text.
        ["before\r\n\x1b]2;".to_owned(), format!("{short}\x07behind")],
        ["before\x1b[".to_owned(), format!("1{short}1mbehind")],
        // The cursor is not at the end of the screen.
        ["X".repeat(360) + "\x1b[H", format!("{}\r\n{}", "y\r".repeat(3000), "b\r\n".repeat(12))],
        // A character is cut in two.
        ["before\r\n\u{65e5}".to_owned() + "\x1b[1m", format!("{short}\u{672c}")],
    ];
    for [before, flood] in edges {
        let (mut at_once, mut in_pieces) = (mirror(before.as_bytes()), mirror(before.as_bytes()));
        at_once.feed(flood.as_bytes());
        flood.as_bytes().chunks(7).for_each(|piece| in_pieces.feed(piece));
        assert_eq!(at_once.paint(size()), in_pieces.paint(size()), "{before:?}");
    }
}

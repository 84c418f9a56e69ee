//! A screen as SVG: text on a grid, in the reader's own monospaced font.

use pinfold_terminal::{Colour, Looks, Piece, Terminal};
use std::fmt::Write as _;

/// Width and height of one cell.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
/// Height of the baseline above the lower edge of the cell.
const FEET: f64 = 5.0;
/// Space around everything.
const MARGIN: f64 = 14.0;

const PAPER: &str = "#16181d";
const INK: &str = "#d7dae0";

/// The sixteen colours of the terminal's palette, on a dark background.
const OWN: [&str; 16] = [
    "#2b2f38", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf", "#5c6370",
    "#f0868e", "#b2d898", "#f0d399", "#83c2f5", "#d89ae8", "#7fced6", "#ffffff",
];

/// Draws the screen down to its last line that is not empty; `title` is what a screen reader says.
#[must_use]
pub fn svg(terminal: &Terminal, title: &str) -> String {
    let lines = terminal.pieces();
    let used = lines.iter().rposition(|line| !line.is_empty()).map_or(1, |last| last + 1);
    let width = f64::from(terminal.size().columns()) * WIDTH + 2.0 * MARGIN;
    let height = places(used) * HEIGHT + 2.0 * MARGIN;
    let title = escaped(title);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\" \
         font-family=\"ui-monospace, 'SFMono-Regular', Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"14\" xml:space=\"preserve\">\n<title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    );
    for (row, line) in lines.iter().take(used).enumerate() {
        line.iter().for_each(|piece| draw(&mut text, piece, MARGIN + places(row) * HEIGHT));
    }
    text.push_str("</svg>\n");
    text
}

fn draw(text: &mut String, piece: &Piece, top: f64) {
    let Piece { column, columns, text: letters, looks } = piece;
    let (left, width) = (MARGIN + f64::from(*column) * WIDTH, f64::from(*columns) * WIDTH);
    let (ink, paper) = colours(looks);
    if let Some(paper) = paper {
        _ = writeln!(
            text,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{paper}\"/>"
        );
    }
    let shown = letters.trim_end();
    if shown.is_empty() || looks.hidden {
        return;
    }
    // Trailing spaces are not drawn; the width is that of the drawn text.
    let width = width - places(letters.len() - shown.len()) * WIDTH;
    let feet = top + HEIGHT - FEET;
    _ = writeln!(
        text,
        "<text x=\"{left:.1}\" y=\"{feet:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{ink}\"{}>{}</text>",
        style(looks),
        escaped(shown)
    );
}

fn places(count: usize) -> f64 {
    u16::try_from(count).map_or(f64::MAX, f64::from)
}

/// Returns the colour of the letters and, if it is not the default, of their background.
fn colours(looks: &Looks) -> (String, Option<String>) {
    let (ink, paper) = (colour(looks.foreground), colour(looks.background));
    if looks.inverse {
        return (paper.unwrap_or_else(|| PAPER.to_owned()), Some(ink.unwrap_or_else(|| INK.to_owned())));
    }
    (ink.unwrap_or_else(|| INK.to_owned()), paper)
}

fn colour(colour: Colour) -> Option<String> {
    match colour {
        Colour::Plain => None,
        Colour::Numbered(number) => Some(numbered(number)),
        Colour::Mixed(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

/// Returns one of the palette's sixteen, of a cube of 216, or of 24 greys.
fn numbered(number: u8) -> String {
    if let Some(own) = OWN.get(usize::from(number)) {
        return (*own).to_owned();
    }
    if number >= 232 {
        let grey = 8 + 10 * (number - 232);
        return format!("#{grey:02x}{grey:02x}{grey:02x}");
    }
    let share = |of: u8| if of == 0 { 0 } else { 55 + 40 * of };
    let (cube, number) = (number - 16, 6);
    let [red, green, blue] = [cube / (number * number), cube / number % number, cube % number].map(share);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn style(looks: &Looks) -> String {
    let mut style = String::new();
    if looks.bold {
        style.push_str(" font-weight=\"bold\"");
    }
    if looks.italic {
        style.push_str(" font-style=\"italic\"");
    }
    if looks.faint {
        style.push_str(" opacity=\"0.6\"");
    }
    match (looks.underlined, looks.struck) {
        (true, _) => style.push_str(" text-decoration=\"underline\""),
        (false, true) => style.push_str(" text-decoration=\"line-through\""),
        (false, false) => {}
    }
    style
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_terminal::Size;

    fn drawn(printed: &str) -> String {
        let mut terminal = Terminal::new(Size::new(5, 20));
        terminal.feed(printed.as_bytes());
        svg(&terminal, "a <test>")
    }

    #[test]
    fn text_stands_in_its_place_with_its_colour() {
        let text = drawn("ab\r\n\x1b[32m<&>\x1b[0m");
        assert!(text.contains("aria-label=\"a &lt;test&gt;\""), "{text}");
        let green = "<text x=\"14.0\" y=\"45.0\" textLength=\"25.2\" lengthAdjust=\"spacingAndGlyphs\" \
                     fill=\"#98c379\">&lt;&amp;&gt;</text>";
        assert!(text.contains(green), "{text}");
        assert!(text.contains("viewBox=\"0 0 196 64\""), "the lines that nothing is on are left out: {text}");
    }

    #[test]
    fn what_is_inverse_has_paper_of_its_own() {
        let text = drawn("\x1b[7mx\x1b[0m");
        assert!(text.contains(&format!("height=\"18\" fill=\"{INK}\"/>")), "{text}");
        assert!(text.contains(&format!("fill=\"{PAPER}\">x</text>")), "{text}");
    }

    #[test]
    fn every_number_is_a_colour() {
        assert_eq!(
            [0, 15, 16, 196, 231, 232, 255].map(numbered),
            [OWN[0], OWN[15], "#000000", "#ff0000", "#ffffff", "#080808", "#eeeeee"]
        );
    }
}

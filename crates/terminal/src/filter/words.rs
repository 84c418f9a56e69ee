//! Which sequences of `ESC ]` may pass: those that address the terminal itself, beyond its screen.

use super::Allow;
use super::control::Is;

/// Schemes that a click may follow; others start programs of the person who clicks.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];
/// Longer texts are cut: no title, link or directory needs more.
const LONGEST: usize = 4096;

/// Passes an allowed sequence, without bytes that could end it early.
pub(super) fn pass(held: &[u8], end: &[u8], allow: Allow, out: &mut Vec<u8>) -> Is {
    let (number, text) = split(held);
    let Some(is) = judge(number, text, allow) else { return Is::Other };
    out.extend_from_slice(b"\x1b]");
    out.extend_from_slice(number);
    if number.len() < held.len() {
        out.push(b';');
    }
    let longest = if number == b"52" { text.len() } else { LONGEST };
    let plain = String::from_utf8_lossy(&text[..text.len().min(longest)]);
    out.extend(plain.chars().filter(|character| !character.is_control()).collect::<String>().bytes());
    out.extend_from_slice(end);
    is
}

/// Splits a sequence into the number that says what it is about, and its text.
fn split(held: &[u8]) -> (&[u8], &[u8]) {
    match held.iter().position(|byte| *byte == b';') {
        Some(at) => (&held[..at], &held[at + 1..]),
        None => (held, &[]),
    }
}

fn judge(number: &[u8], text: &[u8], allow: Allow) -> Option<Is> {
    let may = |may: bool| may.then_some(Is::Other);
    match number {
        b"0" | b"1" | b"2" => may(allow.title),
        b"7" => may(allow.directory),
        b"8" => may(allow.links && leads_somewhere_known(text)),
        b"9" | b"99" | b"777" => may(allow.notifications),
        b"4" | b"5" | b"10" | b"11" | b"12" | b"13" | b"14" | b"17" | b"19" => color(text, allow),
        b"104" | b"105" | b"110" | b"111" | b"112" | b"117" | b"119" => may(allow.colors),
        // A question mark asks for the clipboard's content.
        b"52" => may(allow.clipboard && !text.contains(&b'?')),
        _ => None,
    }
}

/// A question mark in place of a colour's value asks for it.
fn color(text: &[u8], allow: Allow) -> Option<Is> {
    let asks = text.split(|byte| *byte == b';').any(|part| part == b"?");
    let sets =
        text.split(|byte| *byte == b';').any(|part| part != b"?" && !part.iter().all(u8::is_ascii_digit));
    match (asks, sets) {
        (true, false) => allow.color_queries.then_some(Is::Question),
        (true, true) => (allow.colors && allow.color_queries).then_some(Is::Question),
        (false, _) => allow.colors.then_some(Is::Other),
    }
}

/// `PARAMS;URI`; the end of a link has no URI.
fn leads_somewhere_known(text: &[u8]) -> bool {
    let (_, uri) = split(text);
    let uri = String::from_utf8_lossy(uri).to_ascii_lowercase();
    uri.is_empty() || SCHEMES.iter().any(|scheme| uri.starts_with(scheme))
}

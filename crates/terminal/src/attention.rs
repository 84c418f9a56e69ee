//! How a program on a terminal asks for a person's attention: by the bell, or by a notification (OSC 9, 777
//! or 99).

/// Longest text of a notification that is kept, in bytes.
const LONGEST: usize = 200;

/// A program's call for a person's attention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attention {
    /// By the bell. It is weak evidence: programs also ring when a key means nothing to them.
    Bell,
    /// By a notification, with its text, if it has any.
    Notice(Option<String>),
}

impl Attention {
    /// Reads the parameters of a sequence `ESC ] ...`; `None` if it is not a notification.
    pub(crate) fn of_osc(params: &[&[u8]]) -> Option<Attention> {
        match params {
            // A number is one of ConEmu's commands: 9;4 shows progress, 9;9 sets the directory.
            [b"9", first, ..] if !first.is_empty() && first.iter().all(u8::is_ascii_digit) => None,
            [b"9", text @ ..] if !text.is_empty() => Some(Attention::notice(&text.join(&b';'))),
            [b"777", b"notify", text @ ..] => Some(Attention::notice(&text.join(&b": "[..]))),
            [b"99", how, text @ ..] => kitty(how).then(|| match is_encoded(how) {
                true => Attention::Notice(None),
                false => Attention::notice(&text.join(&b';')),
            }),
            _ => None,
        }
    }

    fn notice(text: &[u8]) -> Attention {
        let text = String::from_utf8_lossy(text);
        let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
        let text = text[..text.floor_char_boundary(LONGEST)].trim();
        Attention::Notice((!text.is_empty()).then(|| text.to_owned()))
    }

    /// Returns the stronger of two calls, or the later one if they are equally strong.
    pub(crate) fn and_then(self, later: Attention) -> Attention {
        match (self, later) {
            (Attention::Notice(text), Attention::Bell | Attention::Notice(None)) => Attention::Notice(text),
            (_, later) => later,
        }
    }
}

/// Returns whether a sequence of kitty's carries text to read, rather than settings, an icon or buttons.
fn kitty(how: &[u8]) -> bool {
    let payload = how.split(|byte| *byte == b':').find_map(|part| part.strip_prefix(b"p="));
    matches!(payload, None | Some(b"title" | b"body"))
}

fn is_encoded(how: &[u8]) -> bool {
    how.split(|byte| *byte == b':').any(|part| part == b"e=1")
}

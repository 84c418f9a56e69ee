//! How a program on a terminal asks for a person: by the bell, or by a notification (OSC 9, 777 or 99).

/// So much of a notification's text is kept.
const LONGEST: usize = 200;

/// That a program asked for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attention {
    /// By the bell. It is weak evidence: programs also ring when a key means nothing to them.
    Bell,
    /// By a notification, with its text, if it has any.
    Notice(Option<String>),
}

impl Attention {
    /// What a sequence `ESC ] ... ` asks, if it is a notification.
    pub(crate) fn of_osc(params: &[&[u8]]) -> Option<Attention> {
        match params {
            // A number is one of ConEmu's commands: 9;4 is how far something has come, 9;9 a directory.
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

    /// The stronger of two, the later where they are alike.
    pub(crate) fn and_then(self, later: Attention) -> Attention {
        match (self, later) {
            (Attention::Notice(text), Attention::Bell | Attention::Notice(None)) => Attention::Notice(text),
            (_, later) => later,
        }
    }
}

/// Whether a sequence of kitty's carries something to read, and is not about a notification, its picture or its buttons.
fn kitty(how: &[u8]) -> bool {
    let payload = how.split(|byte| *byte == b':').find_map(|part| part.strip_prefix(b"p="));
    matches!(payload, None | Some(b"title" | b"body"))
}

fn is_encoded(how: &[u8]) -> bool {
    how.split(|byte| *byte == b':').any(|part| part == b"e=1")
}

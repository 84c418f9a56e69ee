//! The answer of the current turn, collected from pieces. The kept text is bounded; the rest goes out in
//! parts.

use crate::observation::Observation;
use crate::turn::TurnAnswer;
use serde::{Deserialize, Serialize};

/// Above this, text goes out as a part. As JSON a byte may take six, and a cursor must stay below 2 MiB.
const MOST_KEPT: usize = 128 << 10;
/// Longest answer in bytes; the rest is left out.
const LONGEST: u64 = 32 << 20;

/// The answer so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Answering {
    /// How many bytes went out in parts.
    told: u64,
    text: String,
    cut: bool,
    /// Whether there is an answer at all.
    began: bool,
}

impl Answering {
    /// Appends to the answer.
    pub(crate) fn more(&mut self, text: &str, told: &mut Vec<Observation>) {
        self.began = true;
        let room = usize::try_from(LONGEST.saturating_sub(self.told)).unwrap_or(usize::MAX);
        let fits = text.floor_char_boundary(room.saturating_sub(self.text.len()));
        self.cut |= fits < text.len();
        self.text.push_str(&text[..fits]);
        if self.text.len() > MOST_KEPT {
            let text = std::mem::take(&mut self.text);
            let offset = self.told;
            self.told += text.len() as u64;
            told.push(Observation::AnswerPart { offset, text });
        }
    }

    /// Starts the answer over.
    pub(crate) fn anew(&mut self, text: &str, told: &mut Vec<Observation>) {
        *self = Answering::default();
        self.more(text, told);
    }

    /// Takes the answer out.
    pub(crate) fn take(&mut self) -> Option<TurnAnswer> {
        let Answering { told: before, text, cut, began } = std::mem::take(self);
        began.then_some(TurnAnswer { before, text, whole: !cut })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is stored in the end, if each part is written at its offset.
    fn stored(told: Vec<Observation>, answer: &TurnAnswer) -> String {
        let mut stored = String::new();
        for part in told {
            let Observation::AnswerPart { offset, text } = part else { panic!("{part:?}") };
            stored.truncate(usize::try_from(offset).unwrap());
            stored.push_str(&text);
        }
        stored.truncate(usize::try_from(answer.before).unwrap());
        stored + &answer.text
    }

    #[test]
    fn pieces_are_one_text_and_little_of_a_long_one_is_kept() {
        let (mut answering, mut told, mut all) = (Answering::default(), Vec::new(), String::new());
        for piece in ["ä", "bc", "\u{1F411}"].iter().cycle().take(200_000) {
            answering.more(piece, &mut told);
            all.push_str(piece);
            assert!(answering.text.len() <= MOST_KEPT + 4);
        }
        let answer = answering.take().unwrap();
        assert!(answer.whole && answer.before > 0);
        assert_eq!(stored(told, &answer), all);
        assert_eq!(answering.take(), None);
    }

    #[test]
    fn an_answer_over_the_bound_is_cut_and_says_so() {
        let (mut answering, mut told) = (Answering::default(), Vec::new());
        let piece = "ä".repeat(1 << 20);
        for _ in 0..20 {
            answering.more(&piece, &mut told);
        }
        let answer = answering.take().unwrap();
        assert!(!answer.whole);
        assert_eq!(stored(told, &answer).len(), 32 << 20);
    }

    #[test]
    fn an_answer_that_begins_anew_replaces_what_was_told() {
        let (mut answering, mut told) = (Answering::default(), Vec::new());
        answering.more(&"x".repeat(MOST_KEPT + 1), &mut told);
        answering.anew(&"y".repeat(MOST_KEPT + 1), &mut told);
        answering.more("z", &mut told);
        let answer = answering.take().unwrap();
        assert_eq!(stored(told, &answer), "y".repeat(MOST_KEPT + 1) + "z");
    }
}

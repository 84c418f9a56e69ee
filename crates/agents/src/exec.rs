//! `exec`: one run per message, given as an argument or on standard input; the exit ends the turn.
//!
//! The preset's data ([`ExecRules`](crate::preset::ExecRules)) says what its lines mean. The outcome comes from what
//! was printed; the exit only confirms it, because agents exit with 0 after errors. If the preset says how a
//! turn ends, exit 0 without such a line is a turn that was cut short; otherwise exit 0 is done, and all that
//! was printed is the answer. Any other code is a failed turn, except for the codes by which an agent says
//! that it could not begin. A run is one turn: it ends with the run, never earlier, and output before its
//! prompt is on the tape belongs to it.
//!
//! Lines are parsed whole into JSON values: an array of 30 MB of small numbers briefly takes twenty times
//! that in memory.

use crate::intent::{CannotSay, Intent, Prompt};
use crate::label::Label;
use crate::ledger::OpenDelivery;
use crate::note::{self, LogNote};
use crate::observation::{LimitReach, LimitStatus, SessionRefused};
use crate::preset::{
    ChatCommands, EndsTurn, ExecRules as Rules, Joined, Meaning, PromptBy, ReadRule, Recognises,
};
use crate::retried::Retried;
use crate::translate::{RunView, Spoken, Translate, TranslatorInput};
use crate::turn::{EndedBy, FailureKind, TurnFailure, Usage};
use crate::word::{AgentWord, How, NamedTurn, ReportedEnd};
use pinfold_core::{Exit, Wall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest error text that is kept, in bytes.
const LONGEST_ERROR: usize = 4 << 10;
/// How much of the last line is kept, in bytes.
const LONGEST_LAST: usize = 400;

/// Exit codes by which an agent says that it could not begin; the core decides what follows.
const NOT_BEGUN: [i32; 4] = [75, 78, 126, 127];

/// What the lines have said so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Exec {
    /// How the turn ended, if a line said so.
    ended: Option<Ended>,
    /// The text of the last error.
    error: Option<String>,
    usage: Option<Usage>,
    /// The last line on standard error that was not blank.
    complaint: Option<String>,
    /// The last line of all that was not blank.
    last: Option<String>,
    /// A line could not be read.
    too_long: bool,
    /// A part of the answer was printed.
    printed: bool,
    /// A stream that may break off and begin again.
    #[serde(skip_serializing_if = "Retried::is_empty")]
    retried: Retried,
    /// What was recognised so far; each meaning is reported once.
    recognised: Vec<Meaning>,
    /// The meaning of the last line that has one, which counts if the agent fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<(Meaning, String)>,
    /// What the exit means.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_exit: Option<Meaning>,
}

/// How the turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ended {
    Done,
    Failed,
}

impl Translate for Exec {
    fn hear(&mut self, heard: TranslatorInput<'_>, see: &RunView<'_>) -> Vec<AgentWord> {
        let rules = &see.setup.exec;
        match heard {
            TranslatorInput::Begin => vec![AgentWord::Ready],
            TranslatorInput::Line { bytes, .. } => {
                self.note_last(bytes);
                if rules.reads.is_empty() || !bytes.starts_with(b"{") {
                    self.hint(bytes, &rules.recognises, see.setup.contended_if.as_ref());
                }
                if rules.reads.is_empty() { vec![self.plain(bytes)] } else { self.line(bytes, rules, see.at) }
            }
            TranslatorInput::ErrorLine(bytes) => {
                // The rules are applied to errors at once.
                self.hint(bytes, &Recognises::default(), see.setup.contended_if.as_ref());
                self.complains(bytes, &rules.recognises)
            }
            TranslatorInput::TooLong => {
                self.too_long = true;
                Vec::new()
            }
            TranslatorInput::Exited(exit, by) => self.exited(exit, by, see),
            // The turn began with the run, so earlier output counts.
            TranslatorInput::Said { number, label: Label::Prompt { .. } } => vec![AgentWord::Taken(number)],
            TranslatorInput::Said { .. } | TranslatorInput::Written { .. } => Vec::new(),
        }
    }

    fn say(&self, _number: u64, intent: &Intent, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
        match (intent, see.setup.exec.prompt) {
            // Even agents that get the prompt as an argument wait for the end of their input.
            (Intent::Prompt(_), PromptBy::Argv) | (Intent::Close, _) => Ok(Spoken::end()),
            (Intent::Prompt(prompt), PromptBy::Stdin) => {
                let text = prompt_text(prompt, &see.setup.chat);
                Ok(Spoken { bytes: text.into_bytes(), close: true })
            }
            (Intent::Handshake { .. } | Intent::Answer(_) | Intent::Interrupt, _) => {
                Err(CannotSay::NotOffered)
            }
        }
    }
}

/// Returns the prompt for an agent without a protocol: an argument, or its standard input.
///
/// A message of a run never looks like the user's, not even in the session of that run. Only the user's own
/// message can be a command, which nothing may stand in front of.
#[must_use]
pub fn prompt_text(prompt: &Prompt, chat: &ChatCommands) -> String {
    let of_user = prompt.from.is_none() && prompt.files.is_empty();
    if let Some(command) = chat.command(&prompt.text).filter(|_| of_user) {
        return command.to_owned();
    }
    let mut text = String::new();
    if prompt.repetition {
        text.push_str("[this message is delivered again: look first what was done already]\n");
    }
    if let Some(from) = &prompt.from {
        text.push_str(&format!("[from session {}] ", from.session));
    }
    text.push_str(&prompt.text);
    for file in &prompt.files {
        text.push_str(&format!("\n@{file}"));
    }
    chat.as_text(text)
}

impl Exec {
    /// Handles a line of an agent that prints only its answer; the answer does not end with a line end.
    fn plain(&mut self, line: &[u8]) -> AgentWord {
        let between = if std::mem::replace(&mut self.printed, true) { "\n" } else { "" };
        AgentWord::More(format!("{between}{}", String::from_utf8_lossy(line)))
    }

    fn line(&mut self, line: &[u8], rules: &Rules, at: Wall) -> Vec<AgentWord> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Vec::new();
        }
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            return vec![AgentWord::Note(LogNote::garbage(line))];
        };
        let counting: Vec<&ReadRule> = rules.reads.iter().filter(|reads| reads.counts_for(&line)).collect();
        let goes_on = counting.iter().any(|reads| reads.joined == Joined::Retried);
        let held = if goes_on { None } else { self.retried.over().map(AgentWord::More) };
        let words = counting.into_iter().flat_map(|reads| self.rule(reads, &line, &rules.recognises, at));
        held.into_iter().chain(words).collect()
    }

    /// Applies one rule to a line that it matches.
    fn rule(&mut self, reads: &ReadRule, line: &Value, recognises: &Recognises, at: Wall) -> Vec<AgentWord> {
        let text = |place: &Option<String>| line.pointer(place.as_ref()?)?.as_str().map(str::to_owned);
        let mut words = Vec::new();
        words.extend(text(&reads.session).map(AgentWord::Session));
        words.extend(text(&reads.answer).map(|text| match reads.joined {
            Joined::Last => AgentWord::Anew(text),
            Joined::Pieces => AgentWord::More(text),
            Joined::Retried => AgentWord::More(self.retried.piece(&text, at)),
        }));
        if let Some(error) = text(&reads.error) {
            words.extend(self.recognise(&error, recognises));
            self.error = Some(note::short(&error, LONGEST_ERROR));
        }
        if let Some(usage) = &reads.usage {
            self.usage = Some(usage.read(line));
        }
        if let Some(ends) = reads.ends {
            self.ended = Some(match ends {
                EndsTurn::Done => Ended::Done,
                EndsTurn::Failed => Ended::Failed,
            });
        }
        words
    }

    /// Returns what an error means, the first time it is said.
    fn recognise(&mut self, text: &str, recognises: &Recognises) -> Option<AgentWord> {
        self.means(recognises.of_text(text)?, text)
    }

    fn means(&mut self, meaning: Meaning, text: &str) -> Option<AgentWord> {
        if self.recognised.contains(&meaning) {
            return None;
        }
        self.recognised.push(meaning);
        Some(word(meaning, text))
    }

    /// Keeps what a line means if the agent fails: within an answer it means nothing.
    fn hint(&mut self, line: &[u8], recognises: &Recognises, contended_if: Option<&String>) {
        let text = String::from_utf8_lossy(line);
        let busy = contended_if.is_some_and(|part| text.contains(part.as_str()));
        let meaning = if busy { Some(Meaning::Busy) } else { recognises.of_text(&text) };
        if let Some(meaning) = meaning {
            self.hint = Some((meaning, note::short(text.trim(), LONGEST_ERROR)));
        }
    }

    /// Returns what the exit means, besides what was recognised before.
    fn exit_means(&mut self, exit: Exit, by: EndedBy, recognises: &Recognises) -> Option<AgentWord> {
        let code = exit.code().filter(|code| *code != 0 && by == EndedBy::Itself && self.ended.is_none())?;
        let hint = self.hint.take();
        let (meaning, text) = match (recognises.of_code(code), hint) {
            (Some(meaning), hint) => (meaning, hint.map(|(_, text)| text).or_else(|| self.last.clone())),
            (None, Some((meaning, text))) => (meaning, Some(text)),
            (None, None) => return None,
        };
        self.at_exit = Some(meaning);
        self.means(meaning, &text.unwrap_or_default())
    }

    /// Handles a line on standard error.
    fn complains(&mut self, line: &[u8], recognises: &Recognises) -> Vec<AgentWord> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.is_empty() {
            return Vec::new();
        }
        self.complaint = Some(note::short(text, LONGEST_ERROR));
        self.note_last(line);
        self.recognise(text, recognises).into_iter().collect()
    }

    fn note_last(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(&line[..line.len().min(LONGEST_LAST)]);
        if !text.trim().is_empty() {
            self.last = Some(note::short(text.trim(), LONGEST_LAST));
        }
    }

    fn exited(&mut self, exit: Exit, by: EndedBy, see: &RunView<'_>) -> Vec<AgentWord> {
        let mut words: Vec<AgentWord> =
            self.exit_means(exit, by, &see.setup.exec.recognises).into_iter().collect();
        let Some(how) = self.how(exit, by, &see.setup.exec) else { return words };
        let ended = |open: &OpenDelivery| {
            let turn = NamedTurn::Number(open.number);
            AgentWord::Ended(ReportedEnd { turn, how: how.clone(), text: None, usage: self.usage.clone() })
        };
        words.extend(see.ledger.open().iter().map(ended));
        words
    }

    /// Returns how the turn of an ended run ended; `None` if it was cut short, because then the run's end
    /// decides what becomes of the message.
    fn how(&self, exit: Exit, by: EndedBy, rules: &Rules) -> Option<How> {
        let says_end = rules.reads.iter().any(|reads| reads.ends.is_some());
        match (self.ended, exit, by) {
            (Some(Ended::Done), ..) if !self.too_long => Some(How::Done),
            (Some(Ended::Failed), ..) => Some(How::Failed(self.failure(&rules.recognises))),
            (_, Exit::Code(_), EndedBy::Itself) if self.too_long => {
                Some(How::Failed(TurnFailure::too_long()))
            }
            (_, Exit::Code(0), EndedBy::Itself) => (!says_end).then_some(How::Done),
            (_, Exit::Code(code), EndedBy::Itself) => self.fails_with(code, &rules.recognises),
            (
                _,
                Exit::Code(_)
                | Exit::Signal(_)
                | Exit::ShimLost
                | Exit::MachineLost
                | Exit::AfterBackup
                | Exit::NeverStarted,
                _,
            ) => None,
        }
    }

    /// Returns the failure of a run that ended with a code; `None` if the code says that it could not begin.
    fn fails_with(&self, code: i32, recognises: &Recognises) -> Option<How> {
        if NOT_BEGUN.contains(&code) || self.recognised.contains(&Meaning::Busy) {
            return None;
        }
        let TurnFailure { kind, text } = self.failure(recognises);
        let words = Some(text).filter(|text| !text.is_empty()).or_else(|| self.last.clone());
        let text = match words {
            Some(words) => format!("it exited with {code}: `{words}`"),
            None => format!("it exited with {code} and printed nothing"),
        };
        Some(How::Failed(TurnFailure { kind, text }))
    }

    fn failure(&self, recognises: &Recognises) -> TurnFailure {
        let text = self.error.clone().or_else(|| self.complaint.clone()).unwrap_or_default();
        let kind = match self.at_exit.or_else(|| recognises.of_text(&text)) {
            Some(Meaning::Limit) => FailureKind::Limit,
            Some(Meaning::Login) => FailureKind::Login,
            Some(Meaning::Busy | Meaning::UnknownSession) | None => FailureKind::Other,
        };
        TurnFailure { kind, text }
    }
}

fn word(meaning: Meaning, text: &str) -> AgentWord {
    match meaning {
        Meaning::Busy => AgentWord::SessionRefused(SessionRefused::Busy),
        Meaning::UnknownSession => AgentWord::SessionRefused(SessionRefused::Unknown),
        Meaning::Login => AgentWord::Login(note::short(text, LONGEST_ERROR)),
        Meaning::Limit => AgentWord::Limit(LimitStatus {
            reach: LimitReach::Reached,
            until: None,
            window: None,
            used: None,
        }),
    }
}

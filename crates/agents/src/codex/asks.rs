//! What Codex asks a person, and how that is answered.

use super::wire::{Asked, Question};
use crate::intent::{Consent, RequestReply};
use crate::request::RequestKind;
use crate::rpc::Id;
use crate::word::RawRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Longest title that is kept, in characters.
const LONGEST_TITLE: usize = 200;
/// More questions, or longer ids, are not kept, so that they stay a small part of a cursor.
const MOST_QUESTIONS: usize = 16;
const LONGEST_ID: usize = 200;
/// As many requests as can be open.
const MOST_OPEN: usize = 64;

/// What Codex may ask a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskKind {
    Command,
    FileChange,
    Question,
}

/// What the answer to a request will need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptRequest {
    pub(crate) key: String,
    /// The ids of its questions.
    questions: Vec<String>,
}

impl AskKind {
    /// Returns what a method asks, if a person can answer it.
    pub(crate) fn of(method: &str) -> Option<AskKind> {
        match method {
            "item/commandExecution/requestApproval" => Some(AskKind::Command),
            "item/fileChange/requestApproval" => Some(AskKind::FileChange),
            "item/tool/requestUserInput" => Some(AskKind::Question),
            _ => None,
        }
    }
}

/// Returns a request as a person sees it.
pub(crate) fn ask(asks: AskKind, id: &Id, asked: &Asked, line: &[u8]) -> RawRequest {
    let (title, detail) = match asks {
        AskKind::Command => command(asked),
        AskKind::FileChange => file_change(asked),
        AskKind::Question => questions(asked),
    };
    let kind = match asks {
        AskKind::Command | AskKind::FileChange => RequestKind::Permission,
        AskKind::Question => RequestKind::Question,
    };
    let title: String = title.chars().take(LONGEST_TITLE).collect();
    let title = title.replace(char::is_control, " ");
    RawRequest { key: id.key(), kind, title, detail, raw: String::from_utf8_lossy(line).into_owned() }
}

fn command(asked: &Asked) -> (String, Option<String>) {
    let title = asked.command.as_ref().map_or("a command".to_owned(), |command| format!("run: {command}"));
    let place = asked.cwd.as_ref().map(|cwd| format!("in {cwd}"));
    let lines: Vec<String> = place.into_iter().chain(asked.reason.clone()).collect();
    (title, (!lines.is_empty()).then(|| lines.join("\n")))
}

fn file_change(asked: &Asked) -> (String, Option<String>) {
    let title = match &asked.grant_root {
        Some(root) => format!("change files in {root}"),
        None => "change files".to_owned(),
    };
    (title, asked.reason.clone())
}

fn questions(asked: &Asked) -> (String, Option<String>) {
    let questions = asked.questions.as_deref().unwrap_or_default();
    let first = questions.first().and_then(|question| question.question.clone());
    let title = first.unwrap_or_else(|| "it asks a question".to_owned());
    (title, Some(questions.iter().map(in_full).collect()))
}

/// Returns a question with its options.
fn in_full(question: &Question) -> String {
    let mut full = format!("{}\n", question.question.as_deref().unwrap_or_default());
    for choice in question.options.iter().flatten() {
        let [label, about] =
            [&choice.label, &choice.description].map(|text| text.as_deref().unwrap_or_default());
        full.push_str(&format!("- {label}: {about}\n"));
    }
    full
}

/// Keeps what the answer will need, and forgets requests that are no longer open.
pub(crate) fn keep(kept: &mut Vec<KeptRequest>, id: &Id, asked: &Asked, open: impl Fn(&str) -> bool) {
    kept.retain(|kept| open(&kept.key));
    let ids = asked.questions.iter().flatten().filter_map(|question| question.id.clone());
    let questions: Vec<String> = ids.filter(|id| id.len() <= LONGEST_ID).take(MOST_QUESTIONS).collect();
    if !questions.is_empty() && kept.len() < MOST_OPEN && id.fits() {
        kept.push(KeptRequest { key: id.key(), questions });
    }
}

/// Returns the answer to a request.
pub(crate) fn answer(reply: &RequestReply, kept: Option<&KeptRequest>) -> Value {
    if let Some(kept) = kept {
        let words = reply.words.as_deref().filter(|_| reply.verdict == Consent::Allow);
        return json!({ "answers": words.map(|words| answers(&kept.questions, words)).unwrap_or_else(|| json!({})) });
    }
    let decision = match (reply.verdict, reply.always) {
        (Consent::Allow, false) => "accept",
        (Consent::Allow, true) => "acceptForSession",
        // The turn goes on, and the model is told. `cancel` would end the turn, like an interrupt.
        (Consent::Deny, _) => "decline",
    };
    json!({ "decision": decision })
}

/// Returns answers to all questions: one line for each if the numbers match, else the same words for every
/// question.
fn answers(questions: &[String], words: &str) -> Value {
    let lines: Vec<&str> = words.lines().collect();
    let line = |at: usize| if lines.len() == questions.len() { lines[at] } else { words };
    let each = questions.iter().enumerate();
    each.map(|(at, id)| (id.clone(), json!({ "answers": [line(at)] }))).collect()
}

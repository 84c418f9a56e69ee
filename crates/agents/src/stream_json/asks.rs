//! What Claude Code asks a person, and how that is answered.

use super::wire::Asked;
use crate::intent::{Consent, RequestReply};
use crate::request::RequestKind;
use crate::word::RawRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The tool that asks a question.
const QUESTION: &str = "AskUserQuestion";
/// Most bytes kept for the answer to one request; with 64 open ones that is half of a cursor.
const MOST_KEPT: usize = 16 << 10;
/// As many requests as can be open.
const MOST_OPEN: usize = 64;
/// Longest title that is kept, in characters.
const LONGEST_TITLE: usize = 200;
/// Fields of a tool's input that say what it is about, the most telling first.
const TELLING: [&str; 11] = [
    "command",
    "file_path",
    "notebook_path",
    "path",
    "url",
    "query",
    "pattern",
    "skill",
    "description",
    "prompt",
    "plan",
];

/// What the answer to a request will need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptRequest {
    pub(crate) key: String,
    /// Rules that would keep it from asking again.
    #[serde(default)]
    rules: Vec<Value>,
    /// The questions of the request.
    #[serde(default)]
    questions: Vec<Value>,
}

/// Returns a request to use a tool as a person sees it.
pub(crate) fn ask(key: &str, asked: &Asked, line: &[u8]) -> RawRequest {
    let tool = asked.tool_name.as_deref().unwrap_or("a tool");
    let input = asked.input.as_ref().unwrap_or(&Value::Null);
    let raw = String::from_utf8_lossy(line).into_owned();
    let key = key.to_owned();
    if tool == QUESTION {
        let questions = questions(asked);
        let first = questions.first().and_then(|question| text(question, "question"));
        let title = in_a_line(first.unwrap_or("it asks a question"));
        let detail = Some(questions.iter().map(in_full).collect());
        return RawRequest { key, kind: RequestKind::Question, title, detail, raw };
    }
    let telling = TELLING.iter().find_map(|place| text(input, place));
    let title = telling.map_or_else(|| tool.to_owned(), |telling| format!("{tool}: {telling}"));
    let detail = serde_json::to_string_pretty(input).ok().filter(|_| !input.is_null());
    RawRequest { key, kind: RequestKind::Permission, title: in_a_line(&title), detail, raw }
}

/// Keeps what the answer will need, and forgets requests that are no longer open.
pub(crate) fn keep(kept: &mut Vec<KeptRequest>, key: &str, asked: &Asked, open: impl Fn(&str) -> bool) {
    kept.retain(|kept| open(&kept.key));
    let rule = |suggestion: &&Value| text(suggestion, "type") == Some("addRules");
    let rules: Vec<Value> = asked.permission_suggestions.iter().flatten().filter(rule).cloned().collect();
    let questions = if asked.tool_name.as_deref() == Some(QUESTION) { questions(asked) } else { Vec::new() };
    let new = KeptRequest { key: key.to_owned(), rules, questions };
    let size = serde_json::to_string(&new).map_or(usize::MAX, |text| text.len());
    if size <= MOST_KEPT && kept.len() < MOST_OPEN {
        kept.push(new);
    }
}

/// Returns the answer to a request to use a tool.
pub(crate) fn answer(reply: &RequestReply, kept: Option<&KeptRequest>) -> Value {
    let questions = kept.map(|kept| &kept.questions[..]).unwrap_or_default();
    let rules = kept.map(|kept| &kept.rules[..]).unwrap_or_default();
    match (reply.verdict, reply.words.as_deref()) {
        (Consent::Allow, words) if !questions.is_empty() => {
            let answers = words.map(|words| answers(questions, words)).unwrap_or_else(|| json!({}));
            json!({ "behavior": "allow", "updatedInput": { "questions": questions, "answers": answers } })
        }
        (Consent::Allow, _) if reply.always && !rules.is_empty() => {
            json!({ "behavior": "allow", "updatedPermissions": rules })
        }
        (Consent::Allow, _) => json!({ "behavior": "allow" }),
        // Without a message the answer is not valid.
        (Consent::Deny, words) => {
            json!({ "behavior": "deny", "message": words.unwrap_or("The user refused this.") })
        }
    }
}

/// Returns answers to all questions: one line for each if the numbers match, else the same words for every
/// question.
fn answers(questions: &[Value], words: &str) -> Value {
    let lines: Vec<&str> = words.lines().collect();
    let line = |at: usize| if lines.len() == questions.len() { lines[at] } else { words };
    let asked = questions.iter().enumerate();
    let answers = asked.filter_map(|(at, question)| Some((text(question, "question")?.to_owned(), line(at))));
    answers.map(|(question, line)| (question, Value::from(line))).collect()
}

fn questions(asked: &Asked) -> Vec<Value> {
    let questions = asked.input.as_ref().and_then(|input| input.get("questions"));
    questions.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Returns a question with its options.
fn in_full(question: &Value) -> String {
    let mut full = format!("{}\n", text(question, "question").unwrap_or_default());
    for option in question.get("options").and_then(Value::as_array).into_iter().flatten() {
        let [label, about] = ["label", "description"].map(|place| text(option, place).unwrap_or_default());
        full.push_str(&format!("- {label}: {about}\n"));
    }
    full
}

fn text<'v>(value: &'v Value, place: &str) -> Option<&'v str> {
    value.get(place)?.as_str().filter(|text| !text.is_empty())
}

/// Cuts a text to what fits in a line.
fn in_a_line(text: &str) -> String {
    let line: String = text.chars().take(LONGEST_TITLE).collect();
    line.replace(char::is_control, " ")
}

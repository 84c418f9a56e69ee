//! `scripted`: the protocol of pinfold's own tests, in which a script can play an agent with every kind of trouble.
//!
//! Both sides write one JSON object a line. Each has a `type`; objects of other types, and fields that are not listed, are
//! skipped. A line that is not a JSON object is noted as garbage. `ID` is the number of the word in this run, as JSON-RPC has one.
//!
//! To the agent:
//!
//! | line | when |
//! |---|---|
//! | `{"type":"hello","id":ID,"step":1,"session":null,"dir":"/x"}` | the handshake; `session` is the vendor session to resume |
//! | `{"type":"prompt","id":ID,"message":"01J...","delivery":7,"text":"...","try":1,"again":false,"files":[],"from":null}` | a message; `again`: it may have been seen before |
//! | `{"type":"answer","request":"a1","allow":true,"words":null,"always":false}` | to its request `a1` |
//! | `{"type":"interrupt"}` | end the turn, keep running |
//! | end of input | leave |
//!
//! From the agent:
//!
//! | line | means |
//! |---|---|
//! | `{"type":"hello","id":ID,"more":true}` | it has this step, and wants the next one; without `more` it is ready |
//! | `{"type":"session","id":"s-1"}` | the id of its session, also when it changes |
//! | `{"type":"taken","id":ID}` | it has the prompt |
//! | `{"type":"began","id":ID}` | the turn began; without `id` it is one of its own |
//! | `{"type":"text","text":"..."}` | more of the answer |
//! | `{"type":"ended","id":ID,"how":"done","answer":"...","why":"...","kind":"limit","turns":1,"local":false,"usage":{...}}` | the turn ended: `how` is `done`, `failed` or `cancelled`; all but `type` may be left out. Without `id` it is a turn of its own. With `turns` 0 it ends nothing unless it is `local`. Without `answer` the answer is what came as `text`. `kind` is one of `limit login model server overloaded other`, `usage` is an object of [`Usage`] |
//! | `{"type":"asks","request":"a1","kind":"permission","title":"...","detail":"..."}` | it asks a person; `kind` is `permission` or `question` |
//! | `{"type":"takes_back","request":"a1"}` | it withdraws the request |
//! | `{"type":"work","under_way":true}` | work of its own is under way, or over |
//! | `{"type":"limit","reach":"reached","until_ms":1794809117000,"window":"five_hour","used":1.0}` | a usage limit: `reached`, `near` or `off`; `in_ms` instead of `until_ms` counts from when the line was printed |
//! | `{"type":"login","text":"..."}` | a person has to log in |
//! | `{"type":"refused","why":"busy"}` | it cannot open its session: `busy` or `unknown` |
//! | `{"type":"note","text":"..."}` | something for the log |
//!
//! It is never sent a prompt before it is ready or while it has one, and no interrupt without a turn. A line that is too long ends
//! the turn, and an interrupt follows, since the agent may be in the middle of it.

use crate::intent::{CannotSay, Consent, Intent, Prompt, RequestReply};
use crate::label::Label;
use crate::message_word;
use crate::note::{self, LogNote};
use crate::observation::{LimitReach, LimitStatus, SessionRefused};
use crate::request::RequestKind;
use crate::translate::{RunView, Spoken, Translate, TranslatorInput};
use crate::turn::{FailureKind, TurnFailure, Usage};
use crate::word::{AgentWord, AnswerText, How, NamedTurn, RawRequest, ReportedEnd, Want};
use pinfold_core::Wall;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Longest text of the agent's in a failure or a note, in bytes.
const LONGEST_TEXT: usize = 4 << 10;

/// The state of a scripted agent; most of it is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Scripted {
    /// The last handshake step that was said, and its number.
    greeted: Option<(u64, u32)>,
}

/// A line of the agent's.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Hello {
        id: u64,
        #[serde(default)]
        more: bool,
    },
    Session {
        id: String,
    },
    Taken {
        id: u64,
    },
    Began {
        id: Option<u64>,
    },
    Text {
        text: String,
    },
    Ended(Ending),
    Asks {
        request: String,
        kind: RequestKind,
        #[serde(default)]
        title: String,
        detail: Option<String>,
    },
    TakesBack {
        request: String,
    },
    Work {
        under_way: bool,
    },
    Limit {
        reach: LimitReach,
        until_ms: Option<i64>,
        in_ms: Option<i64>,
        window: Option<String>,
        used: Option<f64>,
    },
    Login {
        #[serde(default)]
        text: String,
    },
    Refused {
        why: Refused,
    },
    Note {
        text: String,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ending {
    id: Option<u64>,
    how: Cause,
    answer: Option<String>,
    why: String,
    kind: Option<FailureKind>,
    turns: Option<u64>,
    local: bool,
    usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cause {
    #[default]
    Done,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Refused {
    Busy,
    Unknown,
}

impl Translate for Scripted {
    fn hear(&mut self, heard: TranslatorInput<'_>, see: &RunView<'_>) -> Vec<AgentWord> {
        match heard {
            TranslatorInput::Begin => vec![AgentWord::Want(Want::Handshake(1))],
            TranslatorInput::Said { number, label: Label::Handshake(step) } => {
                self.greeted = Some((number, *step));
                Vec::new()
            }
            TranslatorInput::Line { bytes, .. } => self.printed(bytes, see.at),
            TranslatorInput::TooLong => see.given_up(),
            TranslatorInput::Said { .. }
            | TranslatorInput::Written { .. }
            | TranslatorInput::ErrorLine(_)
            | TranslatorInput::Exited(..) => Vec::new(),
        }
    }

    fn say(&self, number: u64, intent: &Intent, see: &RunView<'_>) -> Result<Spoken, CannotSay> {
        let object = match intent {
            Intent::Handshake { step } => hello(number, *step, see),
            Intent::Prompt(prompt) => ask_to_do(number, prompt),
            Intent::Answer(reply) => answer(reply, see).ok_or(CannotSay::NoSuchRequest)?,
            Intent::Interrupt => json!({ "type": "interrupt" }),
            Intent::Close => return Ok(Spoken::end()),
        };
        Ok(Spoken::line(&object.to_string()))
    }
}

fn hello(number: u64, step: u32, see: &RunView<'_>) -> Value {
    json!({ "type": "hello", "id": number, "step": step, "session": see.ledger.session(), "dir": see.setup.dir })
}

fn ask_to_do(number: u64, prompt: &Prompt) -> Value {
    json!({
        "type": "prompt",
        "id": number,
        "message": message_word::of(prompt.message),
        "delivery": prompt.delivery,
        "text": prompt.text,
        "try": prompt.attempt,
        "again": prompt.repetition,
        "files": prompt.files,
        "from": prompt.from.as_ref().map(|from| &from.session),
    })
}

fn answer(reply: &RequestReply, see: &RunView<'_>) -> Option<Value> {
    let request = see.ledger.request(reply.request)?;
    let allow = match reply.verdict {
        Consent::Allow => true,
        Consent::Deny => false,
    };
    Some(json!({
        "type": "answer",
        "request": request.key,
        "allow": allow,
        "words": reply.words,
        "always": reply.always,
    }))
}

impl Scripted {
    fn printed(&self, line: &[u8], at: Wall) -> Vec<AgentWord> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Vec::new();
        }
        let Ok(read) = serde_json::from_slice(line) else {
            return vec![AgentWord::Note(LogNote::garbage(line))];
        };
        self.meaning(read, line, at).into_iter().collect()
    }

    fn meaning(&self, read: Line, line: &[u8], at: Wall) -> Option<AgentWord> {
        Some(match read {
            Line::Hello { id, more } => self.greets(id, more, line),
            Line::Session { id } => AgentWord::Session(id),
            Line::Taken { id } => AgentWord::Taken(id),
            Line::Began { id } => AgentWord::Began(named(id)),
            Line::Text { text } => AgentWord::More(text),
            Line::Ended(ending) => ended(ending),
            Line::Asks { request, kind, title, detail } => {
                let raw = String::from_utf8_lossy(line).into_owned();
                AgentWord::Asks(RawRequest { key: request, kind, title, detail, raw })
            }
            Line::TakesBack { request } => AgentWord::TakesBack(request),
            Line::Work { under_way } => AgentWord::Work(under_way),
            Line::Limit { reach, until_ms, in_ms, window, used } => {
                let until = until_ms.or(in_ms.map(|wait| at.0.saturating_add(wait))).map(Wall);
                AgentWord::Limit(LimitStatus { reach, until, window, used })
            }
            Line::Login { text } => AgentWord::Login(text),
            Line::Refused { why: Refused::Busy } => AgentWord::SessionRefused(SessionRefused::Busy),
            Line::Refused { why: Refused::Unknown } => AgentWord::SessionRefused(SessionRefused::Unknown),
            Line::Note { text } => AgentWord::Note(LogNote::Agent { text: note::short(&text, LONGEST_TEXT) }),
            Line::Unknown => return None,
        })
    }

    /// Handles an answer to the handshake; it counts for the last step that was said.
    fn greets(&self, id: u64, more: bool, line: &[u8]) -> AgentWord {
        match self.greeted {
            Some((number, step)) if number == id && more => {
                AgentWord::Want(Want::Handshake(step.saturating_add(1)))
            }
            Some((number, _)) if number == id => AgentWord::Ready,
            Some(_) | None => AgentWord::Note(LogNote::garbage(line)),
        }
    }
}

fn named(id: Option<u64>) -> NamedTurn {
    id.map_or(NamedTurn::Own, NamedTurn::Number)
}

/// Handles an end. A result without work ends only a command that the agent does by itself, such as `/clear`.
fn ended(ending: Ending) -> AgentWord {
    if ending.turns == Some(0) && !(ending.local && ending.id.is_some()) {
        return AgentWord::Note(LogNote::EmptyEnd);
    }
    let how = match ending.how {
        Cause::Done => How::Done,
        Cause::Cancelled => How::Cancelled,
        Cause::Failed => How::Failed(TurnFailure {
            kind: ending.kind.unwrap_or(FailureKind::Other),
            text: note::short(&ending.why, LONGEST_TEXT),
        }),
    };
    let text = ending.answer.map(|text| AnswerText { text, whole: true });
    AgentWord::Ended(ReportedEnd { turn: named(ending.id), how, text, usage: ending.usage })
}

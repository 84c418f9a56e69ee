//! What the model should do, by the words of the newest prompt it is shown.
//!
//! - `TURN-word`: the reply names it, and a test finds it in what the model is shown later
//! - `HOLD`: the reply stops after its first words, until the test lets it go on
//! - `RUN=command;;`: the agent's shell runs this first; then comes the reply
//! - `TASK=command;;`: the same, in the agent's background
//! - `HTTP=400`: an error with this status instead of a reply; `HTTP=429,30` also says when to retry
//! - `LIMIT=3600`: a subscription's usage limit is reached, and resets in this many seconds
//! - `GARBAGE`: bytes that are not a reply
//! - `CUT`: the reply breaks off after its first words
//! - `ONCE`: what is wrong is wrong only with the first request of the turn

use serde_json::Value;

/// What a request shows, and what to answer.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// All `TURN-` words shown, oldest first.
    pub(crate) turns: Vec<String>,
    /// The newest prompt.
    pub(crate) prompt: String,
    /// How many tool results came after it.
    results: usize,
    /// The agent's shell tool, if it offers one.
    shell: Option<String>,
    /// Whether the reply should be streamed.
    pub(crate) streamed: bool,
}

/// An error instead of a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// Seconds.
    pub(crate) retry_after: Option<u64>,
    /// Whether it is a subscription's usage limit.
    pub(crate) is_limit: bool,
}

/// What the agent's shell should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call<'a> {
    pub(crate) shell: &'a str,
    pub(crate) command: &'a str,
    pub(crate) in_background: bool,
}

const SHELLS: [&str; 5] = ["Bash", "bash", "run_shell_command", "exec_command", "shell_command"];
/// The tags around what agents add to a prompt.
const NOISE: [&str; 4] = ["system-reminder", "session_context", "environment_context", "turn_aborted"];

impl Script {
    /// Reads a request in Anthropic's, Google's or OpenAI's form.
    pub(crate) fn of(body: &Value) -> Script {
        let messages =
            body["messages"].as_array().or(body["contents"].as_array()).or(body["input"].as_array());
        let (mut turns, mut prompt, mut results) = (Vec::new(), String::new(), 0);
        for message in messages.into_iter().flatten() {
            results += usize::from(message["role"] == "tool" || is_result(message));
            let counts = message["role"] == "user" || is_result(message);
            for part in parts(message).into_iter().filter(|_| counts) {
                match prose(&part) {
                    Some(text) => {
                        turns.extend(words(&text));
                        (prompt, results) = (text, 0);
                    }
                    None => results += usize::from(is_result(&part)),
                }
            }
        }
        let streamed = body["stream"] == true;
        Script { turns, prompt, results, shell: shell(&body["tools"]), streamed }
    }

    /// The answer to a request for a title.
    pub(crate) fn titled() -> Script {
        let (turns, prompt) = (vec!["a title".to_owned()], String::new());
        Script { turns, prompt, results: 0, shell: None, streamed: true }
    }

    /// The newest turn.
    pub(crate) fn turn(&self) -> &str {
        self.turns.last().map_or("", String::as_str)
    }

    /// Whether only the prompt is new, which makes it the first request of a turn. Claude Code's own
    /// requests, which suggest what a person might type next, do not count.
    pub(crate) fn is_first(&self) -> bool {
        self.results == 0 && !self.is_suggestion()
    }

    /// Whether Claude Code asks what a person might type next.
    pub(crate) fn is_suggestion(&self) -> bool {
        self.prompt.starts_with("[SUGGESTION MODE")
    }

    /// The error to answer with.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        if let Some(seconds) = number_after(&self.prompt, "LIMIT=") {
            return Some(Refusal { status: 429, retry_after: Some(seconds), is_limit: true });
        }
        let status = number_after(&self.prompt, "HTTP=")?.try_into().ok()?;
        Some(Refusal {
            status,
            retry_after: number_after(&self.prompt, &format!("HTTP={status},")),
            is_limit: false,
        })
    }

    /// Whether what is wrong is wrong only once.
    pub(crate) fn is_once(&self) -> bool {
        self.prompt.contains("ONCE")
    }

    /// The same, with nothing wrong.
    pub(crate) fn mended(mut self) -> Script {
        for word in ["HTTP=", "LIMIT=", "GARBAGE", "CUT"] {
            self.prompt = self.prompt.replace(word, "");
        }
        self
    }

    /// Whether to send something that is not a reply.
    pub(crate) fn is_garbage(&self) -> bool {
        self.prompt.contains("GARBAGE")
    }

    /// Whether the reply should break off.
    pub(crate) fn is_cut(&self) -> bool {
        self.prompt.contains("CUT")
    }

    /// In how many seconds the reached limit resets.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.prompt.split_once("LIMIT=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
    }

    pub(crate) fn is_held(&self) -> bool {
        self.prompt.contains("HOLD")
    }

    /// What the agent's shell should run next.
    pub(crate) fn call(&self) -> Option<Call<'_>> {
        let mut calls: Vec<(usize, bool)> = Vec::new();
        for (word, in_background) in [("RUN=", false), ("TASK=", true)] {
            calls.extend(self.prompt.match_indices(word).map(|(at, _)| (at + word.len(), in_background)));
        }
        calls.sort_unstable();
        let (at, in_background) = calls.into_iter().nth(self.results)?;
        let (command, _) = self.prompt[at..].split_once(";;")?;
        Some(Call { shell: self.shell.as_deref()?, command, in_background })
    }
}

fn number_after(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.split_once(word)?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

/// The parts of a message, also if it is a single text.
fn parts(message: &Value) -> Vec<Value> {
    let content = if message["parts"].is_null() { &message["content"] } else { &message["parts"] };
    content.as_array().cloned().unwrap_or_else(|| vec![content.clone()])
}

fn is_result(part: &Value) -> bool {
    part["type"] == "tool_result"
        || part["type"] == "function_call_output"
        || !part["functionResponse"].is_null()
}

/// What a person wrote in a part, if anything.
fn prose(part: &Value) -> Option<String> {
    let mut text = part.as_str().or(part["text"].as_str())?.to_owned();
    for tag in NOISE {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        while let Some(from) = text.find(&open) {
            let to = text[from..].find(&close).map_or(text.len(), |at| from + at + close.len());
            text.replace_range(from..to, "");
        }
    }
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn words(text: &str) -> Vec<String> {
    let rests = text.split("TURN-").skip(1);
    let word = |rest: &str| rest.chars().take_while(|letter| letter.is_alphanumeric()).collect::<String>();
    rests.map(word).collect()
}

fn shell(tools: &Value) -> Option<String> {
    let declared = |tool: &Value| tool["functionDeclarations"].as_array().cloned();
    let tools = tools.as_array()?.iter();
    let mut tools = tools.flat_map(|tool| declared(tool).unwrap_or_else(|| vec![tool.clone()]));
    let name = |tool: &Value| tool["function"]["name"].as_str().or(tool["name"].as_str()).map(str::to_owned);
    tools.find_map(|tool| name(&tool).filter(|name| SHELLS.contains(&name.as_str())))
}

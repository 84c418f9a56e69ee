//! What a model is to do, by the words of the newest prompt that it is shown.
//!
//! - `TURN-word`: the reply names it, and a test finds it in what the model was shown later
//! - `HOLD`: the reply stops after its first words, until the test lets it go on
//! - `RUN=command;;`: the agent's shell is to run this; then the reply
//! - `LIMIT=3600`: the usage limit is reached, and resets after so many seconds (Codex only)
//! - `HTTP=400`: an error of this number instead of a reply

use serde_json::Value;

/// What a request shows, and what is to be answered.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// All words `TURN-` that were shown, oldest first.
    pub(crate) turns: Vec<String>,
    /// The newest prompt.
    pub(crate) prompt: String,
    /// How many results of tools have come since.
    results: usize,
    /// The shell of the agent, if it offers one.
    shell: Option<String>,
}

const SHELLS: [&str; 4] = ["Bash", "run_shell_command", "exec_command", "shell_command"];
/// What agents write around what they add to a prompt.
const NOISE: [&str; 4] = ["system-reminder", "session_context", "environment_context", "turn_aborted"];

impl Script {
    /// Reads a request of Anthropic's form, of Google's, or of OpenAI's.
    pub(crate) fn of(body: &Value) -> Script {
        let messages =
            body["messages"].as_array().or(body["contents"].as_array()).or(body["input"].as_array());
        let (mut turns, mut prompt, mut results) = (Vec::new(), String::new(), 0);
        let counts = |message: &&Value| message["role"] == "user" || is_result(message);
        for message in messages.into_iter().flatten().filter(counts) {
            results += usize::from(is_result(message));
            for part in parts(message) {
                match prose(&part) {
                    Some(text) => {
                        turns.extend(words(&text));
                        (prompt, results) = (text, 0);
                    }
                    None => results += usize::from(is_result(&part)),
                }
            }
        }
        Script { turns, prompt, results, shell: shell(&body["tools"]) }
    }

    /// The newest of the turns.
    pub(crate) fn turn(&self) -> &str {
        self.turns.last().map_or("", String::as_str)
    }

    /// Whether nothing but the prompt is new: the first request of a turn.
    pub(crate) fn is_first(&self) -> bool {
        self.results == 0
    }

    /// The error to answer with.
    pub(crate) fn error(&self) -> Option<u16> {
        self.prompt.split_once("HTTP=").and_then(|(_, rest)| rest.get(..3)?.parse().ok())
    }

    /// After how many seconds the limit resets that is reached.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.prompt.split_once("LIMIT=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
    }

    pub(crate) fn is_held(&self) -> bool {
        self.prompt.contains("HOLD")
    }

    /// The agent's shell, and what it is to run.
    pub(crate) fn command(&self) -> Option<(&str, &str)> {
        let commands = self.prompt.split("RUN=").skip(1);
        let command = commands.filter_map(|rest| rest.split_once(";;")).nth(self.results)?.0;
        Some((self.shell.as_deref()?, command))
    }
}

/// A message in one text, or in several parts.
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
    tools.find_map(|tool| tool["name"].as_str().filter(|name| SHELLS.contains(name)).map(str::to_owned))
}

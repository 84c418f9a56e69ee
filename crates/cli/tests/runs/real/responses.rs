//! The model as Codex uses it: OpenAI's responses API.

use super::script::Script;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

/// Whether a request is of this form.
pub(crate) fn is_one(path: &str) -> bool {
    path.ends_with("/responses")
}

/// Answers with a reply or a shell call; `number` is unique to this answer, `hold` waits for the test.
pub(crate) fn answer(
    stream: &TcpStream,
    script: &Script,
    number: usize,
    hold: impl FnOnce(),
) -> io::Result<()> {
    if let Some(seconds) = script.limit() {
        return limit(stream, seconds);
    }
    let mut to = Events { stream, count: 0 };
    let id = format!("{}_{number}", std::process::id());
    let begun =
        json!({ "id": format!("resp_{id}"), "object": "response", "status": "in_progress", "output": [] });
    let mut head = stream;
    write!(head, "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    to.say("response.created", json!({ "response": begun }))?;
    let item = match script.call() {
        Some(call) => called(&id, call.shell, call.command),
        None => replied(&mut to, &id, script, hold)?,
    };
    to.say("response.output_item.done", json!({ "output_index": 0, "item": item }))?;
    let usage = json!({
        "input_tokens": 11, "output_tokens": 7, "total_tokens": 18,
        "input_tokens_details": { "cached_tokens": 0 }, "output_tokens_details": { "reasoning_tokens": 0 },
    });
    let mut done = begun;
    (done["status"], done["output"], done["usage"]) = (json!("completed"), json!([item]), usage);
    to.say("response.completed", json!({ "response": done }))
}

/// A call of the agent's shell.
fn called(id: &str, shell: &str, command: &str) -> Value {
    let words =
        if shell == "exec_command" { json!({ "cmd": command }) } else { json!({ "command": command }) };
    json!({
        "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": shell,
        "arguments": words.to_string(), "status": "completed",
    })
}

/// A reply, in two pieces.
fn replied(to: &mut Events<'_>, id: &str, script: &Script, hold: impl FnOnce()) -> io::Result<Value> {
    let (item_id, turn) = (format!("msg_{id}"), script.turn());
    let message = |status: &str, content: Value| json!({ "type": "message", "id": item_id, "role": "assistant", "status": status, "content": content });
    let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
    let place = json!({ "item_id": item_id, "output_index": 0, "content_index": 0 });
    to.say(
        "response.output_item.added",
        json!({ "output_index": 0, "item": message("in_progress", json!([])) }),
    )?;
    to.say("response.content_part.added", with(&place, "part", part("")))?;
    to.say("response.output_text.delta", with(&place, "delta", json!("reply to ")))?;
    hold();
    to.say("response.output_text.delta", with(&place, "delta", json!(turn)))?;
    let text = format!("reply to {turn}");
    to.say("response.output_text.done", with(&place, "text", json!(text)))?;
    to.say("response.content_part.done", with(&place, "part", part(&text)))?;
    Ok(message("completed", json!([part(&text)])))
}

/// A subscription whose limit is reached and resets after this many seconds.
fn limit(mut stream: &TcpStream, seconds: u64) -> io::Result<()> {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds;
    let error = json!({ "type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "pro", "resets_at": at, "resets_in_seconds": seconds });
    let text = json!({ "error": error }).to_string();
    write!(
        stream,
        "HTTP/1.1 429 x\r\ncontent-type: application/json\r\nx-codex-primary-used-percent: 100\r\nx-codex-primary-window-minutes: 300\r\n\
         x-codex-primary-reset-at: {at}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// The events of one answer.
struct Events<'a> {
    stream: &'a TcpStream,
    count: u32,
}

impl Events<'_> {
    fn say(&mut self, kind: &str, mut event: Value) -> io::Result<()> {
        (event["type"], event["sequence_number"]) = (json!(kind), json!(self.count));
        self.count += 1;
        write!(self.stream, "event: {kind}\r\ndata: {event}\r\n\r\n")
    }
}

fn with(place: &Value, key: &str, value: Value) -> Value {
    let mut all = place.clone();
    all[key] = value;
    all
}

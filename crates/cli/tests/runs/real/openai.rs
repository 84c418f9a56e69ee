//! The model's replies in the form of OpenAI's chat completions, which opencode and pi use.

use super::model::{Reply, Room};
use super::script::{Call, Script};
use serde_json::{Value, json};
use std::io;

/// Streams a title, which opencode requests along with the first turn.
pub(super) fn title(reply: &mut Reply<'_>) -> io::Result<()> {
    let choice = json!({ "index": 0, "delta": { "role": "assistant", "content": "a title" }, "finish_reason": "stop" });
    reply.begin()?;
    reply.say(&json!({ "id": "t", "object": "chat.completion.chunk", "created": 1, "model": "model", "choices": [choice] }))?;
    reply.over()
}

/// Streams a reply, or a call of the agent's shell.
pub(super) fn chat(reply: &mut Reply<'_>, script: &Script, room: &Room) -> io::Result<()> {
    let id = format!("chatcmpl-{}", room.count());
    let event = |delta: Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        json!({ "id": id, "object": "chat.completion.chunk", "created": 1, "model": "model", "choices": [choice] })
    };
    let text = |text: &str| event(json!({ "role": "assistant", "content": text }), None);
    reply.begin()?;
    let finish = match script.call() {
        Some(Call { shell, command, .. }) => {
            let input = json!({ "command": command, "description": "as the prompt says" }).to_string();
            let function = json!({ "name": shell, "arguments": input });
            let call =
                json!({ "index": 0, "id": format!("call_{id}"), "type": "function", "function": function });
            reply.say(&event(json!({ "role": "assistant", "tool_calls": [call] }), None))?;
            "tool_calls"
        }
        None => {
            reply.say(&text("reply to "))?;
            Reply::hold(script, room);
            if script.is_cut() {
                return Ok(());
            }
            reply.say(&text(script.turn()))?;
            "stop"
        }
    };
    let mut last = event(json!({}), Some(finish));
    last["usage"] = json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 });
    reply.say(&last)?;
    reply.over()
}

//! How large rows are, for parts of lists: a reader never has more of a list in memory than fits into the room it gives.

use crate::rows::{Event, Message};
use serde_json::Value;

/// So many rows are in a part at most.
pub(crate) const MOST: u64 = 500;
/// What a row takes beside its texts, about.
const ROW: usize = 200;

pub(crate) fn of_message(message: &Message) -> usize {
    let texts = [Some(&message.text), message.answer.as_ref(), message.key.as_ref()];
    ROW + texts.into_iter().flatten().map(String::len).sum::<usize>()
}

pub(crate) fn of_event(event: &Event) -> usize {
    ROW + event.why.len() + event.data.values().map(of_value).sum::<usize>()
}

fn of_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
        Value::String(text) => size_of::<Value>() + text.len(),
        Value::Array(values) => values.iter().map(of_value).sum(),
        Value::Object(fields) => fields.values().map(of_value).sum(),
    }
}

//! The size of rows, for parts of lists: a reader never holds more of a list in memory than fits into the
//! room it gives.

use crate::rows::{Message, StoredEvent};
use serde_json::Value;

/// The most rows in a part.
pub(crate) const MOST: u64 = 500;
/// About what a row takes besides its texts, in bytes.
const ROW: usize = 200;

pub(crate) fn of_message(message: &Message) -> usize {
    let texts = [Some(&message.text), message.answer.as_ref(), message.key.as_ref()];
    ROW + texts.into_iter().flatten().map(String::len).sum::<usize>()
}

pub(crate) fn of_event(event: &StoredEvent) -> usize {
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

//! Reading the lines of agents: each field by itself. One of another type is as if it were missing, and fields that are not
//! named cost nothing.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The fields of a line; all are missing where it has one of them twice.
pub(crate) fn read<T: DeserializeOwned + Default>(line: &[u8]) -> T {
    serde_json::from_slice(line).unwrap_or_default()
}

/// A field that may be of any type, and counts if it is of the right one.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(T::deserialize(value).ok())
}

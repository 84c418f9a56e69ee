//! Reads agents' lines field by field. A field of another type counts as missing, and fields that are not
//! named cost nothing.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads the fields of a line; all count as missing if one occurs twice.
pub(crate) fn read<T: DeserializeOwned + Default>(line: &[u8]) -> T {
    serde_json::from_slice(line).unwrap_or_default()
}

/// Reads a field of any type; it counts only if the type is right.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(T::deserialize(value).ok())
}

/// Whether a number that is stored only if it says something says nothing.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

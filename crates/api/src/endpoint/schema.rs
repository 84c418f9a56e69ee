//! How a type is described: by its JSON Schema.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// Describes a type.
pub type Describe = fn(&mut SchemaGenerator) -> Value;

/// The schema of a type.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

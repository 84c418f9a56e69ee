//! How a type is described: by its JSON Schema.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// A function that describes a type.
pub type Describe = fn(&mut SchemaGenerator) -> Value;

/// Returns the schema of a type.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

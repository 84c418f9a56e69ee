//! The description of the API (OpenAPI 3.1), made of the types that are read and written.

use pinfold_api::error::ErrorEnvelope;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Bodies are larger only by mistake or malice.
const LARGEST_BODY: usize = 2 << 20;

/// One method of one address.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// A larger body is refused.
    pub(crate) largest_body: usize,
    summary: &'static str,
    query: Option<Describe>,
    body: Option<Describe>,
    answer: Option<(Form, Describe)>,
}

type Describe = fn(&mut SchemaGenerator) -> Value;

/// How objects are put into an answer.
#[derive(Clone, Copy)]
enum Form {
    Whole,
    Lines,
    Events,
    Text,
}

impl Operation {
    pub(crate) fn new(method: &'static str, path: &'static str, summary: &'static str) -> Operation {
        let largest_body = LARGEST_BODY;
        Operation { method, path, largest_body, summary, query: None, body: None, answer: None }
    }

    /// How large its body may be, where that is more than usual.
    pub(crate) fn up_to(self, largest_body: usize) -> Operation {
        Operation { largest_body, ..self }
    }

    /// What may stand behind the `?`.
    pub(crate) fn asks<T: JsonSchema>(self) -> Operation {
        Operation { query: Some(of::<T>), ..self }
    }

    /// What the body says.
    pub(crate) fn takes<T: JsonSchema>(self) -> Operation {
        Operation { body: Some(of::<T>), ..self }
    }

    /// One object.
    pub(crate) fn answers<T: JsonSchema>(self) -> Operation {
        Operation { answer: Some((Form::Whole, of::<T>)), ..self }
    }

    /// One object a line, for as long as it goes on.
    pub(crate) fn streams_lines<T: JsonSchema>(self) -> Operation {
        Operation { answer: Some((Form::Lines, of::<T>)), ..self }
    }

    /// Plain text.
    pub(crate) fn answers_text(self) -> Operation {
        Operation { answer: Some((Form::Text, of::<String>)), ..self }
    }

    /// Server-sent events, or an array.
    pub(crate) fn streams_events<T: JsonSchema>(self) -> Operation {
        Operation { answer: Some((Form::Events, of::<T>)), ..self }
    }

    fn describe(&self, reading: &mut SchemaGenerator, writing: &mut SchemaGenerator) -> Value {
        let mut operation = json!({ "summary": self.summary, "operationId": self.name() });
        let mut parameters = path_parameters(self.path);
        if let Some(query) = self.query {
            parameters.extend(query_parameters(&query(reading), reading));
        }
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        if let Some(body) = self.body {
            operation["requestBody"] =
                json!({ "content": { "application/json": { "schema": body(reading) } } });
        }
        let failure = content("application/json", &of::<ErrorEnvelope>(writing));
        let answer = self.answer.map_or_else(Value::default, |(form, describe)| {
            let schema = describe(writing);
            match form {
                Form::Whole => content("application/json", &schema),
                Form::Lines => content("application/x-ndjson", &schema),
                Form::Text => content("text/plain", &schema),
                Form::Events => json!({
                    "text/event-stream": { "schema": schema },
                    "application/json": { "schema": { "type": "array", "items": schema } },
                }),
            }
        });
        operation["responses"] = json!({
            "200": { "description": "done", "content": answer },
            "default": { "description": "the error object", "content": failure },
        });
        operation
    }

    /// `get_v1_sessions_session_logs`
    fn name(&self) -> String {
        let words = self.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.fold(self.method.to_owned(), |name, word| format!("{name}_{word}"))
    }
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn content(kind: &str, schema: &Value) -> Value {
    json!({ kind: { "schema": schema } })
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect()
}

/// The fields of an object, each as a parameter.
fn query_parameters(schema: &Value, generator: &SchemaGenerator) -> Vec<Value> {
    let name = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next());
    let object = name.and_then(|name| generator.definitions().get(name)).unwrap_or(schema);
    let required = |field: &String| {
        object["required"].as_array().is_some_and(|all| all.iter().any(|one| one.as_str() == Some(field)))
    };
    let fields = object["properties"].as_object().into_iter().flatten();
    fields
        .map(|(field, schema)| {
            json!({ "name": field, "in": "query", "required": required(field), "schema": schema })
        })
        .collect()
}

/// The document. It is made when it is asked for: nobody needs it twice.
pub(crate) fn document(operations: &[Operation]) -> Value {
    let settings = || {
        SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
    };
    // What may be left out of a request is always there in an answer.
    let mut reading = settings().for_deserialize().into_generator();
    let mut writing = settings().for_serialize().into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.describe(&mut reading, &mut writing);
    }
    let mut schemas = reading.take_definitions(true);
    schemas.extend(writing.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "pinfold",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "HTTP/1.1 on the daemon's unix socket. Absent is null, times are RFC 3339 in UTC.",
        },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

//! The description of the API (OpenAPI 3.1), made from the types that are read and written.

use pinfold_api::endpoint::{Address, AnswerForm, EndpointDescription, STATUSES, schema_of};
use pinfold_api::error::ErrorEnvelope;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

fn describe(of: &EndpointDescription, reading: &mut SchemaGenerator, writing: &mut SchemaGenerator) -> Value {
    let mut operation = json!({ "summary": of.summary, "operationId": name(of) });
    let mut parameters = path_parameters(of.path);
    if let Some(query) = of.query {
        parameters.extend(query_parameters(&query(reading), reading));
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = of.body {
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": body(reading) } } });
    }
    let mut responses = json!({ "200": { "description": "done", "content": answer(of, writing) } });
    for status in STATUSES.iter().filter(|status| of.statuses().contains(&status.code)) {
        let place = format!("#/components/responses/{}", status.name);
        responses[status.code.to_string()] = json!({ "$ref": place });
    }
    operation["responses"] = responses;
    operation
}

/// The errors that every address has in common.
fn failures(writing: &mut SchemaGenerator) -> Map<String, Value> {
    let body = content("application/json", &schema_of::<ErrorEnvelope>(writing));
    let failure = |when: &str| json!({ "description": when, "content": body });
    STATUSES.iter().map(|status| (status.name.to_owned(), failure(status.when))).collect()
}

fn answer(of: &EndpointDescription, writing: &mut SchemaGenerator) -> Value {
    let schema = (of.answer)(writing);
    match of.form {
        AnswerForm::Whole => content("application/json", &schema),
        AnswerForm::Lines => content("application/x-ndjson", &schema),
        AnswerForm::Text => content("text/plain", &schema),
        AnswerForm::Events => json!({
            "text/event-stream": { "schema": schema },
            "application/json": { "schema": { "type": "array", "items": schema } },
        }),
    }
}

/// `get_v1_sessions_session_logs`
fn name(of: &EndpointDescription) -> String {
    let words = of.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(method(of), |name, word| format!("{name}_{word}"))
}

fn method(of: &EndpointDescription) -> String {
    of.method.word().to_ascii_lowercase()
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

/// Answers with the document.
pub(crate) async fn show() -> axum::Json<Value> {
    axum::Json(document())
}

/// The document. It is made on demand: no client needs it twice.
fn document() -> Value {
    let settings = || {
        SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
    };
    // A field that may be missing in a request is always present in an answer.
    let mut reading = settings().for_deserialize().into_generator();
    let mut writing = settings().for_serialize().into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for address in Address::ALL {
        let of = address.description();
        let path = paths.entry(of.path).or_insert_with(|| json!({}));
        path[method(&of)] = describe(&of, &mut reading, &mut writing);
    }
    let responses = failures(&mut writing);
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
        "components": { "schemas": schemas, "responses": responses },
    })
}

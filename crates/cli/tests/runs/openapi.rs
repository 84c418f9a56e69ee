//! The description of the API against the API: it has every address, and real answers match it.

use crate::http::{ask, hold, request, send};
use crate::world::{Following, World};
use serde_json::{Value, json};

/// What the contract promises; there may be more.
const PROMISED: &str = "get /v1/status, get /v1/sessions, post /v1/sessions, get /v1/sessions/{session}, \
     post /v1/sessions/{session}/start, post /v1/sessions/{session}/stop, post /v1/sessions/{session}/restart, \
     post /v1/sessions/{session}/archive, post /v1/sessions/{session}/restore, get /v1/sessions/{session}/messages, \
     post /v1/sessions/{session}/messages, get /v1/events, get /v1/locks, post /v1/locks/hold, get /metrics, \
     get /v1/openapi.json";

/// An OpenAPI document, with the checks of JSON Schema that it uses.
struct Document(Value);

impl Document {
    fn of(world: &World) -> Document {
        let (status, document) = ask(world, "GET", "/v1/openapi.json", "");
        assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
        Document(document)
    }

    fn operations(&self) -> Vec<(String, String)> {
        let paths = self.0["paths"].as_object().unwrap();
        let methods = paths.iter().flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| (method.clone(), path.clone()))
        });
        methods.collect()
    }

    /// The schema of an answer by its status.
    fn answer(&self, method: &str, path: &str, status: &str, kind: &str) -> &Value {
        let answer = &self.0["paths"][path][method]["responses"][status];
        let shared = answer["$ref"].as_str().map(|place| self.0.pointer(&place[1..]).unwrap());
        let schema = &shared.unwrap_or(answer)["content"][kind]["schema"];
        assert!(!schema.is_null(), "{method} {path} {status} {kind} is not described");
        schema
    }

    fn check(&self, schema: &Value, value: &Value) {
        if let Err(problem) = self.validate(schema, value) {
            panic!("{problem}\nin {value:#}");
        }
    }

    fn validate(&self, schema: &Value, value: &Value) -> Result<(), String> {
        if *schema == Value::Bool(true) {
            return Ok(());
        }
        let Value::Object(rules) = schema else { return Err(format!("{schema} is no schema")) };
        for (rule, wanted) in rules {
            match rule.as_str() {
                "$ref" => self.validate(self.target(wanted), value)?,
                "type" => of_type(wanted, value)?,
                "properties" | "required" | "additionalProperties" => self.object(schema, value)?,
                "items" => {
                    for item in value.as_array().into_iter().flatten() {
                        self.validate(wanted, item)?;
                    }
                }
                "enum" if !wanted.as_array().unwrap().contains(value) => {
                    return Err(format!("{value} is none of {wanted}"));
                }
                "const" if wanted != value => return Err(format!("{value} is not {wanted}")),
                "minimum" if value.as_f64().is_some_and(|number| number < wanted.as_f64().unwrap()) => {
                    return Err(format!("{value} is below {wanted}"));
                }
                "maximum" if value.as_f64().is_some_and(|number| number > wanted.as_f64().unwrap()) => {
                    return Err(format!("{value} is above {wanted}"));
                }
                "anyOf" | "oneOf" => self.one_of(wanted, value)?,
                "enum" | "const" | "minimum" | "maximum" => {}
                "description" | "default" | "examples" | "format" | "title" => {}
                other => return Err(format!("this test does not know the rule `{other}`")),
            }
        }
        Ok(())
    }

    fn target(&self, reference: &Value) -> &Value {
        let name = reference.as_str().unwrap().strip_prefix("#/components/schemas/").unwrap();
        let target = &self.0["components"]["schemas"][name];
        assert!(!target.is_null(), "{name} is not there");
        target
    }

    fn one_of(&self, all: &Value, value: &Value) -> Result<(), String> {
        let problems: Vec<String> =
            all.as_array().unwrap().iter().filter_map(|one| self.validate(one, value).err()).collect();
        if problems.len() < all.as_array().unwrap().len() { Ok(()) } else { Err(problems.join("; ")) }
    }

    /// Checks that every field is known, unless the schema allows others, and that no required one is missing.
    fn object(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let Some(fields) = value.as_object() else { return Ok(()) };
        for required in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(required.as_str().unwrap()) {
                return Err(format!("{required} is missing"));
            }
        }
        for (name, field) in fields {
            match (&schema["properties"][name], &schema["additionalProperties"]) {
                (Value::Null, Value::Null | Value::Bool(false)) => {
                    return Err(format!("`{name}` is not described"));
                }
                (Value::Null, others) => self.validate(others, field)?,
                (known, _) => self.validate(known, field).map_err(|problem| format!("{name}: {problem}"))?,
            }
        }
        Ok(())
    }
}

fn of_type(wanted: &Value, value: &Value) -> Result<(), String> {
    let is = |kind: &str| match kind {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("there is no type {other}"),
    };
    let one = std::slice::from_ref(wanted);
    let fits = wanted.as_array().map_or(one, Vec::as_slice).iter().any(|kind| is(kind.as_str().unwrap()));
    if fits { Ok(()) } else { Err(format!("{value} is no {wanted}")) }
}

#[test]
fn every_address_is_described_and_every_description_has_its_address() {
    let world = World::new();
    world.json(&["new", "a", "--", "sleep", "100000"]);
    let document = Document::of(&world);
    let operations = document.operations();
    for promised in PROMISED.split(", ") {
        let (method, path) = promised.split_once(' ').unwrap();
        assert!(operations.contains(&(method.to_owned(), path.trim().to_owned())), "{promised}");
    }
    let mut names = std::collections::BTreeSet::new();
    for (method, path) in &operations {
        let operation = &document.0["paths"][path][method];
        assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{operation}");
        assert!(operation["summary"].is_string());
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let in_path = parameters.iter().filter(|one| one["in"] == "path").count();
        assert_eq!(in_path, path.matches('{').count(), "{method} {path}");
        // A method that no address takes: a known address answers 405, an unknown one 404.
        let place = path.replace("{session}", "a").replace("{message}", "x");
        let reply = send(&world, request("PATCH", &place, "").as_bytes());
        assert_eq!(reply.status, 405, "{place}");
        let allowed = reply.field("allow").unwrap().to_lowercase();
        assert!(allowed.split(',').any(|one| one == method), "{method} {place}: {allowed}");
        let documented = allowed.split(',').filter(|one| *one != "head");
        for other in documented {
            assert!(
                operations.contains(&(other.to_owned(), path.clone())),
                "{other} {path} is not described"
            );
        }
    }
}

#[test]
fn every_address_is_in_the_documentation() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md")).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    for address in pinfold_api::endpoint::Address::ALL {
        let of = address.description();
        let path = of.path.replace("{session}", "S").replace("{message}", "ID");
        // Several verbs share a row: the first with its full address, the others as words.
        let (above, last) = path.rsplit_once('/').unwrap();
        let (whole, beside) =
            (format!("{} {path}", of.method.word()), format!("{} {above}/", of.method.word()));
        let told = |row: &&&str| {
            let ends = |rest: &str| rest.starts_with(['`', '?', ' ']);
            row.split(&whole).skip(1).any(ends)
                || (row.contains(&beside) && row.contains(&format!("`{last}`")))
        };
        assert!(rows.iter().any(|row| told(&row)), "{whole} is not in docs/http.md");
    }
}

#[test]
fn the_statuses_of_errors_are_in_the_documentation() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md")).unwrap();
    let table = text.split_once("| status | when |").unwrap().1.split_once("\n\n").unwrap().0;
    let firsts = table.lines().filter_map(|row| row.split('|').nth(1));
    let told: Vec<&str> = firsts.flat_map(|first| first.split(',')).map(str::trim).collect();
    for status in pinfold_api::endpoint::STATUSES {
        assert!(told.contains(&status.code.to_string().as_str()), "{}", status.code);
    }
}

#[test]
fn what_an_attach_answers_is_described_with_the_output_among_it() {
    let world = World::new();
    world.json(&["new", "a", "--", "sh", "-c", "echo hello; exec sleep 100000"]);
    world.printed("a", "hello");
    let document = Document::of(&world);
    let line =
        document.answer("post", "/v1/sessions/{session}/attach", "200", "application/x-ndjson").clone();
    let mut attached = send(&world, request("POST", "/v1/sessions/a/attach", "{}").as_bytes());
    let lines = [attached.line().unwrap(), attached.line().unwrap()];
    assert_eq!((&lines[0], &lines[1]["text"]), (&json!({ "follow": {} }), &json!("hello")));
    lines.iter().for_each(|one| document.check(&line, one));
    assert!(document.validate(&line, &json!({ "odd": 1 })).is_err(), "the check can fail");
}

#[test]
fn real_answers_are_what_the_description_says() {
    let world = World::new();
    let _busy = make_history(&world);
    let document = Document::of(&world);
    let json = "application/json";
    for (path, place) in [
        ("/v1/status", "/v1/status"),
        ("/v1/ping", "/v1/ping"),
        ("/v1/sessions", "/v1/sessions?all=true"),
        ("/v1/table", "/v1/table?all=true"),
        ("/v1/sessions/{session}", "/v1/sessions/a"),
        ("/v1/sessions/{session}/messages", "/v1/sessions/chat/messages"),
        ("/v1/events", "/v1/events?follow=false"),
        ("/v1/locks", "/v1/locks"),
        ("/v1/metrics", "/v1/metrics"),
    ] {
        let (status, answer) = ask(&world, "GET", place, "");
        assert_eq!(status, 200, "{place}");
        assert!(!matches!(answer.as_array().map(Vec::len), Some(0)), "{place} shows nothing");
        document.check(document.answer("get", path, "200", json), &answer);
    }
    let lines = world.json(&["logs", "a"]);
    let line = document.answer("get", "/v1/sessions/{session}/logs", "200", "application/x-ndjson");
    document.check(line, &lines[0]);
    for (path, body) in [
        ("/v1/sessions", r#"{"name":"b","command":["/bin/true"],"mode":"once"}"#),
        ("/v1/sessions/b/stop", ""),
        ("/v1/sessions/b/archive", ""),
        ("/v1/sessions/chat/messages", r#"{"text":"more"}"#),
    ] {
        let (status, answer) = ask(&world, "POST", path, body);
        assert_eq!(status, 200, "{path}: {answer}");
        let path = path.replace("/b/", "/{session}/").replace("/chat/", "/{session}/");
        document.check(document.answer("post", &path, "200", json), &answer);
    }
    let mut held = hold(&world, &json!({ "resource": "key:k", "max_hold": "1ms" }));
    let line = document.answer("post", "/v1/locks/hold", "200", "application/x-ndjson");
    document.check(line, &held.line().unwrap());
    document.check(line, &held.line().unwrap());
    for (body, expected) in [(r#"{"resource":"key:busy"}"#, 409), ("{}", 422), ("{", 400)] {
        let (status, answer) = ask(&world, "POST", "/v1/locks/hold", body);
        assert_eq!(status, expected, "{body}");
        document.check(document.answer("post", "/v1/locks/hold", &status.to_string(), json), &answer);
    }
    let refusal = document.answer("post", "/v1/locks/hold", "409", json);
    let wrong = document.validate(refusal, &json!({ "error": { "kind": "odd", "message": 5 } }));
    assert!(wrong.is_err(), "the check can fail");
}

/// Gives every list something to show; the key `busy` is held while the returned value lives.
fn make_history(world: &World) -> Following {
    let script = "echo hello; exec sleep 100000";
    world.json(&["new", "a", "--tag", "t", "--memory", "1G", "--", "sh", "-c", script]);
    world.printed("a", "hello");
    world.json(&["new", "failed", "--mode", "once", "--", "sh", "-c", "exit 3"]);
    world.wait("failed", "failed");
    world.json(&["new", "chat", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["send", "chat", "hello", "--wait", "240s"]);
    let lock = world.follow(&["lock", "key:busy", "--", "sh", "-c", "echo held; exec sleep 100000"]);
    lock.until("the lock", |line| line == "held");
    lock
}

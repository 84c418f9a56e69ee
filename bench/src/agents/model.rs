//! A model on the loopback: it answers at once with the newest word `TURN-…` that it is shown, and counts how
//! often each was the newest.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) struct Model {
    pub(crate) port: u16,
    seen: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Model {
    pub(crate) fn start() -> Model {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let model = Model { port: listener.local_addr().unwrap().port(), seen: Arc::default() };
        let seen = Arc::clone(&model.seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                // A client that hangs up in the middle was stopped.
                std::thread::spawn(move || _ = serve(&stream, &seen));
            }
        });
        model
    }

    /// Returns how many turns it saw, and checks that it saw each once.
    pub(crate) fn saw_each_once(&self) -> usize {
        let seen = self.seen.lock().unwrap();
        let again: Vec<_> = seen.iter().filter(|(_, times)| **times != 1).collect();
        assert!(again.is_empty(), "seen more than once: {again:?}");
        seen.len()
    }
}

fn serve(stream: &TcpStream, seen: &Mutex<BTreeMap<String, usize>>) -> io::Result<()> {
    // A turn is measured: its last bytes must not wait for more.
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream);
    // Agents keep their connections.
    while let Some((path, body)) = request(&mut lines)? {
        if path.contains("/messages") && !path.contains("count_tokens") {
            let turn = turn(&body);
            *seen.lock().unwrap().entry(turn.clone()).or_default() += 1;
            reply(stream, &turn)?;
        } else {
            let text = json!({ "input_tokens": 10, "data": [] }).to_string();
            answer(stream, "application/json", &text)?;
        }
    }
    Ok(())
}

/// Returns the path and the body of the next request.
fn request(lines: &mut BufReader<&TcpStream>) -> io::Result<Option<(String, Value)>> {
    let (mut first, mut length) = (String::new(), 0);
    if lines.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Some((path, serde_json::from_slice(&body).unwrap_or_default())))
}

/// Returns the newest of the turns that are shown.
fn turn(body: &Value) -> String {
    let text = body["messages"].to_string();
    let word = text.rsplit_once("TURN-").map_or("", |(_, rest)| rest);
    format!("TURN-{}", word.chars().take_while(|letter| letter.is_alphanumeric()).collect::<String>())
}

fn reply(stream: &TcpStream, turn: &str) -> io::Result<()> {
    let usage = json!({ "input_tokens": 11, "output_tokens": 7 });
    let message = json!({
        "id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": "model", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let events = [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": format!("reply to {turn}") } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null }, "usage": { "output_tokens": 7 } }),
        json!({ "type": "message_stop" }),
    ];
    let said =
        events.map(|event| format!("event: {}\r\ndata: {event}\r\n\r\n", event["type"].as_str().unwrap()));
    answer(stream, "text/event-stream", &said.concat())
}

fn answer(mut stream: &TcpStream, kind: &str, text: &str) -> io::Result<()> {
    let length = text.len();
    stream.write_all(
        format!("HTTP/1.1 200 x\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{text}")
            .as_bytes(),
    )
}

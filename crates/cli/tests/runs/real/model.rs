//! A model on the loopback, in the test's own process: it plays what the newest prompt says (`script.rs`), and remembers all
//! that it was shown.

use super::responses;
use super::script::Script;
use crate::processes::PATIENCE;
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// More than any request of an agent has.
const LARGEST: usize = 32 << 20;

/// The model, until the test ends.
pub(crate) struct Model {
    pub(crate) port: u16,
    room: Arc<Room>,
}

#[derive(Default)]
struct Room {
    desk: Mutex<Desk>,
    changed: Condvar,
}

#[derive(Default)]
struct Desk {
    /// What was asked, in order.
    asked: Vec<Script>,
    /// How many replies that are held may go on.
    let_go: usize,
}

impl Model {
    pub(crate) fn start() -> Model {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let room = Arc::<Room>::default();
        let serving = Arc::clone(&room);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let room = Arc::clone(&serving);
                // Whoever hangs up in the middle has been stopped.
                std::thread::spawn(move || _ = serve(&stream, &room));
            }
        });
        Model { port, room }
    }

    /// Waits until the model was asked for the first reply of a turn.
    pub(crate) fn is_asked(&self, turn: &str) {
        let until = Instant::now() + PATIENCE;
        let mut desk = self.room.desk.lock().unwrap();
        while !desk.asked.iter().any(|asked| asked.turn() == turn) {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the model is not asked for {turn}; it was asked {:?}", desk.asked);
            desk = self.room.changed.wait_timeout(desk, left).unwrap().0;
        }
    }

    /// Lets a reply that is held go on, now or when it is.
    pub(crate) fn let_go(&self) {
        self.room.desk.lock().unwrap().let_go += 1;
        self.room.changed.notify_all();
    }

    /// How often the model was asked to begin a turn.
    pub(crate) fn times(&self, turn: &str) -> usize {
        let desk = self.room.desk.lock().unwrap();
        desk.asked.iter().filter(|asked| asked.turn() == turn && asked.is_first()).count()
    }

    /// The turns that were shown with the newest request of one.
    pub(crate) fn shown_with(&self, turn: &str) -> Vec<String> {
        let desk = self.room.desk.lock().unwrap();
        let asked = desk.asked.iter().rev().find(|asked| asked.turn() == turn);
        asked.map(|asked| asked.turns.clone()).unwrap_or_default()
    }
}

impl Model {
    /// The newest prompt of a turn.
    pub(crate) fn prompt_of(&self, turn: &str) -> String {
        let desk = self.room.desk.lock().unwrap();
        let asked = desk.asked.iter().rev().find(|asked| asked.turn() == turn);
        asked.map(|asked| asked.prompt.clone()).unwrap_or_default()
    }
}

fn serve(stream: &TcpStream, room: &Room) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let Some((path, body)) = request(stream)? else { return Ok(()) };
    let mut reply = Reply { stream, google: path.contains("enerateContent") };
    let responses = responses::is_one(&path);
    if !path.contains("/messages") && !reply.google && !responses || path.contains("count_tokens") {
        return reply.whole(200, &json!({ "input_tokens": 10, "data": [], "models": [] }));
    }
    if body["generationConfig"]["responseMimeType"] == "application/json" {
        return reply.route();
    }
    let script = Script::of(&body);
    room.desk.lock().unwrap().asked.push(script.clone());
    room.changed.notify_all();
    match script.error() {
        Some(number) => reply.whole(number, &error(number)),
        None if responses => {
            let number = room.desk.lock().unwrap().asked.len();
            responses::answer(stream, &script, number, || Reply::hold(&script, room))
        }
        None if reply.google => reply.google(&script, path.contains("streamGenerateContent"), room),
        None => reply.anthropic(&script, room),
    }
}

/// The path and the body of a request; nothing for one that has none.
fn request(stream: &TcpStream) -> io::Result<Option<(String, Value)>> {
    let mut lines = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    lines.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap_or(0);
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length.min(LARGEST)];
    lines.read_exact(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Some((path, serde_json::from_slice(&body).unwrap_or_default())))
}

fn error(number: u16) -> Value {
    let kind = if number == 429 { "rate_limit_error" } else { "invalid_request_error" };
    let error =
        json!({ "type": kind, "code": number, "message": "as the prompt says", "status": "INTERNAL" });
    json!({ "type": "error", "error": error })
}

/// How one request is answered.
struct Reply<'a> {
    stream: &'a TcpStream,
    google: bool,
}

impl Reply<'_> {
    fn whole(&mut self, status: u16, value: &Value) -> io::Result<()> {
        let text = value.to_string();
        let length = text.len();
        write!(
            self.stream,
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
        )
    }

    fn begin(&mut self) -> io::Result<()> {
        write!(self.stream, "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    }

    fn say(&mut self, event: &Value) -> io::Result<()> {
        if let Some(kind) = event["type"].as_str().filter(|_| !self.google) {
            write!(self.stream, "event: {kind}\r\n")?;
        }
        write!(self.stream, "data: {event}\r\n\r\n")
    }

    /// Waits for the test's word, if the script says so.
    fn hold(script: &Script, room: &Room) {
        let mut desk = room.desk.lock().unwrap();
        let until = Instant::now() + Duration::from_secs(120);
        while script.is_held() && desk.let_go == 0 && Instant::now() < until {
            desk = room.changed.wait_timeout(desk, PATIENCE).unwrap().0;
        }
        desk.let_go = desk.let_go.saturating_sub(usize::from(script.is_held()));
    }

    fn anthropic(&mut self, script: &Script, room: &Room) -> io::Result<()> {
        let usage = json!({ "input_tokens": 11, "output_tokens": 7 });
        // An agent takes two messages of one id for one.
        let number = format!("{}_{}", std::process::id(), room.desk.lock().unwrap().asked.len());
        let message = json!({
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "model", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        self.begin()?;
        self.say(&json!({ "type": "message_start", "message": message }))?;
        let stop = match script.command() {
            Some((shell, command)) => {
                let id = format!("toolu_{number}");
                let block = json!({ "type": "tool_use", "id": id, "name": shell, "input": {} });
                let input = json!({ "command": command, "description": "as the prompt says" }).to_string();
                let delta = json!({ "type": "input_json_delta", "partial_json": input });
                self.say(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))?;
                self.say(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))?;
                "tool_use"
            }
            None => {
                let block = json!({ "type": "text", "text": "" });
                self.say(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))?;
                self.text("reply to ")?;
                Self::hold(script, room);
                self.text(script.turn())?;
                "end_turn"
            }
        };
        self.say(&json!({ "type": "content_block_stop", "index": 0 }))?;
        let delta = json!({ "stop_reason": stop, "stop_sequence": null });
        self.say(&json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 7 } }))?;
        self.say(&json!({ "type": "message_stop" }))
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let delta = json!({ "type": "text_delta", "text": text });
        self.say(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
    }

    /// Gemini asks first which of its models is to answer.
    fn route(&mut self) -> io::Result<()> {
        let choice = json!({ "complexity_reasoning": "none", "complexity_score": 1, "reasoning": "none", "model_choice": "flash" });
        let content = json!({ "role": "model", "parts": [{ "text": choice.to_string() }] });
        let candidate = json!({ "index": 0, "content": content, "finishReason": "STOP" });
        self.whole(200, &json!({ "candidates": [candidate] }))
    }

    fn google(&mut self, script: &Script, streamed: bool, room: &Room) -> io::Result<()> {
        let part = match script.command() {
            Some((shell, command)) => {
                json!({ "functionCall": { "name": shell, "args": { "command": command } } })
            }
            None => json!({ "text": format!("reply to {}", script.turn()) }),
        };
        let content = json!({ "role": "model", "parts": [part] });
        let usage = json!({ "promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18 });
        let candidate = json!({ "index": 0, "content": content, "finishReason": "STOP" });
        let reply = json!({ "candidates": [candidate], "usageMetadata": usage });
        Self::hold(script, room);
        if !streamed {
            return self.whole(200, &reply);
        }
        self.begin()?;
        self.say(&reply)
    }
}

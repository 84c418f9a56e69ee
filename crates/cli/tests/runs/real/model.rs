//! A model on the loopback interface, in the test's own process: it does what the newest prompt says
//! (`script.rs`), and remembers everything it was shown.

use super::openai;
use super::responses;
use super::script::{Call, Refusal, Script};
use crate::processes::PATIENCE;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// More than any request of an agent.
const LARGEST: usize = 32 << 20;

/// The model, until the test ends.
pub(crate) struct Model {
    pub(crate) port: u16,
    room: Arc<Room>,
}

#[derive(Default)]
pub(super) struct Room {
    desk: Mutex<Desk>,
    changed: Condvar,
}

#[derive(Default)]
struct Desk {
    /// The requests, in order.
    asked: Vec<Script>,
    /// How many held replies may go on.
    let_go: usize,
}

impl Room {
    /// How many requests there were.
    pub(super) fn count(&self) -> usize {
        self.desk.lock().unwrap().asked.len()
    }
}

impl Model {
    pub(crate) fn start() -> Model {
        let (model, port) = Model::out_of_reach();
        model.serve(port);
        model
    }

    /// A model whose port refuses all connections, until it serves there.
    pub(crate) fn out_of_reach() -> (Model, OwnedFd) {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let (inet, stream) = (AddressFamily::INET, SocketType::STREAM);
        let socket = rustix::net::socket_with(inet, stream, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&socket, &any).unwrap();
        let bound = SocketAddrV4::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
        (Model { port: bound.port(), room: Arc::default() }, socket)
    }

    /// Answers all requests from now on.
    pub(crate) fn serve(&self, port: OwnedFd) {
        rustix::net::listen(&port, 64).unwrap();
        let listener = TcpListener::from(port);
        let serving = Arc::clone(&self.room);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let room = Arc::clone(&serving);
                // A client that hangs up in the middle was stopped.
                std::thread::spawn(move || _ = serve(&stream, &room));
            }
        });
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

    /// Lets a held reply go on, now or as soon as it is held.
    pub(crate) fn let_go(&self) {
        self.room.desk.lock().unwrap().let_go += 1;
        self.room.changed.notify_all();
    }

    /// How often the model was asked to begin a turn.
    pub(crate) fn times(&self, turn: &str) -> usize {
        let desk = self.room.desk.lock().unwrap();
        desk.asked.iter().filter(|asked| asked.turn() == turn && asked.is_first()).count()
    }

    /// The turns shown with the newest request of a turn.
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

    /// How often the model was asked to begin a turn; each time but the first, the prompt must have said so.
    #[track_caller]
    pub(crate) fn times_told(&self, turn: &str) -> usize {
        let desk = self.room.desk.lock().unwrap();
        let begun = desk.asked.iter().filter(|asked| asked.turn() == turn && asked.is_first());
        let prompts: Vec<&str> = begun.map(|asked| asked.prompt.as_str()).collect();
        let untold = prompts.iter().skip(1).filter(|prompt| !prompt.contains("delivered again"));
        assert_eq!(untold.count(), 0, "a repetition that is not told: {prompts:?}");
        prompts.len()
    }

    /// How many requests the model has had.
    pub(crate) fn requests(&self) -> usize {
        self.room.desk.lock().unwrap().asked.len()
    }

    /// How many of them Claude Code made to suggest what a person might type next.
    pub(crate) fn suggestions(&self) -> usize {
        self.room.desk.lock().unwrap().asked.iter().filter(|asked| asked.is_suggestion()).count()
    }

    /// Waits until there were more requests than before.
    pub(crate) fn is_asked_again(&self, before: usize) {
        let until = Instant::now() + PATIENCE;
        let mut desk = self.room.desk.lock().unwrap();
        while desk.asked.len() <= before {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the model is not asked again; it was asked {:?}", desk.asked);
            desk = self.room.changed.wait_timeout(desk, left).unwrap().0;
        }
    }
}

fn serve(stream: &TcpStream, room: &Room) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let Some((path, body)) = request(stream)? else { return Ok(()) };
    let mut reply = Reply { stream, google: path.contains("enerateContent") };
    let (chat, responses) = (path.contains("/chat/completions"), responses::is_one(&path));
    let known = path.contains("/messages") || reply.google || chat || responses;
    if !known || path.contains("count_tokens") {
        return reply.whole(200, &json!({ "input_tokens": 10, "data": [], "models": [] }));
    }
    if chat && body["tools"].is_null() {
        // A request for a title is not a turn.
        return openai::title(&mut reply);
    }
    if body["generationConfig"]["responseMimeType"] == "application/json" {
        return reply.route();
    }
    let script = Script::of(&body);
    if !reply.google
        && body["tools"].as_array().is_none_or(Vec::is_empty)
        && body.to_string().contains("title")
    {
        // The Claude bridge asks for a title, too.
        return reply.anthropic(&Script::titled(), room);
    }
    let again = room.desk.lock().unwrap().asked.iter().any(|asked| asked.turn() == script.turn());
    room.desk.lock().unwrap().asked.push(script.clone());
    room.changed.notify_all();
    let script = if again && script.is_once() { script.mended() } else { script };
    match script.refusal() {
        refusal if responses && refusal.is_none_or(|refusal| refusal.is_limit) => {
            let number = room.desk.lock().unwrap().asked.len();
            responses::answer(stream, &script, number, || Reply::hold(&script, room))
        }
        Some(refusal) => reply.refuse(refusal),
        None if script.is_garbage() => reply.garbage(),
        None if reply.google => reply.google(&script, path.contains("streamGenerateContent"), room),
        None if chat => openai::chat(&mut reply, &script, room),
        None => reply.anthropic(&script, room),
    }
}

/// The path and the body of a request; `None` if it has no body.
pub(super) fn request(stream: &TcpStream) -> io::Result<Option<(String, Value)>> {
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

/// An error, as both vendors word it.
fn error(refusal: Refusal) -> Value {
    let (kind, status) = match refusal.status {
        401 => ("authentication_error", "UNAUTHENTICATED"),
        404 => ("not_found_error", "NOT_FOUND"),
        429 => ("rate_limit_error", "RESOURCE_EXHAUSTED"),
        _ => ("invalid_request_error", "INTERNAL"),
    };
    let mut error =
        json!({ "type": kind, "code": refusal.status, "message": "as the prompt says", "status": status });
    if refusal.is_limit {
        let quota = json!({ "quotaId": "GenerateRequestsPerDayPerProjectPerModel" });
        error["details"] =
            json!([{ "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [quota] }]);
    }
    json!({ "type": "error", "error": error })
}

/// The headers that tell a subscription that its limit is used up, and when it resets.
fn limits(seconds: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let at = (now + seconds).to_string();
    let unified = [
        ("status", "rejected"),
        ("reset", &at),
        ("representative-claim", "five_hour"),
        ("5h-utilization", "1"),
        ("5h-reset", &at),
        ("overage-status", "rejected"),
        ("overage-disabled-reason", "org_level_disabled"),
    ];
    unified.map(|(name, value)| format!("anthropic-ratelimit-unified-{name}: {value}\r\n")).concat()
}

/// Writes the answer to one request.
pub(super) struct Reply<'a> {
    stream: &'a TcpStream,
    google: bool,
}

impl Reply<'_> {
    /// One that is not of a model.
    pub(super) fn to(stream: &TcpStream) -> Reply<'_> {
        Reply { stream, google: false }
    }

    pub(super) fn whole(&mut self, status: u16, value: &Value) -> io::Result<()> {
        self.with_headers(status, "", value)
    }

    /// An answer with additional headers, each with its line end.
    fn with_headers(&mut self, status: u16, headers: &str, value: &Value) -> io::Result<()> {
        let text = value.to_string();
        let length = text.len();
        write!(
            self.stream,
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{text}"
        )
    }

    fn refuse(&mut self, refusal: Refusal) -> io::Result<()> {
        let after = refusal.retry_after.map(|seconds| format!("retry-after: {seconds}\r\n"));
        let limits = refusal.retry_after.filter(|_| refusal.is_limit).map(limits);
        let headers = after.unwrap_or_default() + &limits.unwrap_or_default();
        self.with_headers(refusal.status, &headers, &error(refusal))
    }

    /// Bytes that no agent can read, whatever it asked for.
    fn garbage(&mut self) -> io::Result<()> {
        self.begin()?;
        self.stream.write_all(b"data: {\"type\": \"mess\xff\r\n\r\nnot an event\r\n\r\ndata: [1,\r\n\r\n")
    }

    pub(super) fn begin(&mut self) -> io::Result<()> {
        write!(self.stream, "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    }

    pub(super) fn say(&mut self, event: &Value) -> io::Result<()> {
        if let Some(kind) = event["type"].as_str().filter(|_| !self.google) {
            write!(self.stream, "event: {kind}\r\n")?;
        }
        write!(self.stream, "data: {event}\r\n\r\n")
    }

    /// The mark that some agents expect after the last event.
    pub(super) fn over(&mut self) -> io::Result<()> {
        write!(self.stream, "data: [DONE]\r\n\r\n")
    }

    /// Waits until the test lets it go on, if the script says so.
    pub(super) fn hold(script: &Script, room: &Room) {
        let mut desk = room.desk.lock().unwrap();
        let until = Instant::now() + crate::processes::PATIENCE;
        while script.is_held() && desk.let_go == 0 && Instant::now() < until {
            desk = room.changed.wait_timeout(desk, PATIENCE).unwrap().0;
        }
        desk.let_go = desk.let_go.saturating_sub(usize::from(script.is_held()));
    }

    fn anthropic(&mut self, script: &Script, room: &Room) -> io::Result<()> {
        let usage = json!({ "input_tokens": 11, "output_tokens": 7 });
        // An agent takes two messages with the same id for one.
        let number = format!("{}_{}", std::process::id(), room.desk.lock().unwrap().asked.len());
        let mut message = json!({
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "model", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        if !script.streamed {
            message["content"] = json!([{ "type": "text", "text": format!("reply to {}", script.turn()) }]);
            message["stop_reason"] = "end_turn".into();
            return self.whole(200, &message);
        }
        self.begin()?;
        self.say(&json!({ "type": "message_start", "message": message }))?;
        let stop = match script.call() {
            Some(call) => {
                self.calls(call, &number)?;
                "tool_use"
            }
            None => {
                let block = json!({ "type": "text", "text": "" });
                self.say(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))?;
                self.text("reply to ")?;
                Self::hold(script, room);
                if script.is_cut() {
                    return Ok(());
                }
                self.text(script.turn())?;
                "end_turn"
            }
        };
        self.say(&json!({ "type": "content_block_stop", "index": 0 }))?;
        let delta = json!({ "stop_reason": stop, "stop_sequence": null });
        self.say(&json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 7 } }))?;
        self.say(&json!({ "type": "message_stop" }))
    }

    /// Makes the agent's shell run something.
    fn calls(&mut self, call: Call<'_>, number: &str) -> io::Result<()> {
        let mut input = json!({ "command": call.command, "description": "as the prompt says" });
        if call.in_background {
            input["run_in_background"] = true.into();
        }
        let block =
            json!({ "type": "tool_use", "id": format!("toolu_{number}"), "name": call.shell, "input": {} });
        let delta = json!({ "type": "input_json_delta", "partial_json": input.to_string() });
        self.say(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))?;
        self.say(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let delta = json!({ "type": "text_delta", "text": text });
        self.say(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
    }

    /// Gemini first asks which of its models should answer.
    fn route(&mut self) -> io::Result<()> {
        let choice = json!({ "complexity_reasoning": "none", "complexity_score": 1, "reasoning": "none", "model_choice": "flash" });
        let content = json!({ "role": "model", "parts": [{ "text": choice.to_string() }] });
        let candidate = json!({ "index": 0, "content": content, "finishReason": "STOP" });
        self.whole(200, &json!({ "candidates": [candidate] }))
    }

    fn google(&mut self, script: &Script, streamed: bool, room: &Room) -> io::Result<()> {
        let part = match script.call() {
            Some(Call { shell, command, .. }) => {
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
        if script.is_cut() && script.is_once() {
            let part = json!({ "text": "reply to " });
            let content = json!({ "role": "model", "parts": [part] });
            return self.say(&json!({ "candidates": [{ "index": 0, "content": content }] }));
        }
        if script.is_cut() {
            // The data ends in the middle of an event.
            return self.stream.write_all(b"data: {\"candidates\": [");
        }
        self.say(&reply)
    }
}

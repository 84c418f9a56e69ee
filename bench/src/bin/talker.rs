//! An agent that talks: it plays the protocol `scripted`, and prints lines at a steady pace for as long as a
//! turn takes.
//!
//! `pinfold-bench-talker SECONDS LINES_A_SECOND`, and any further words that identify the run that started
//! it.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made should stop at once")]

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

fn main() {
    let words: Vec<u64> = std::env::args().skip(1).take(2).map(|word| word.parse().unwrap()).collect();
    let [seconds, rate] = words[..] else { return };
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let id: String = line
            .split_once("\"id\":")
            .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect())
            .unwrap_or_default();
        if line.contains("\"type\":\"hello\"") {
            say(&format!("{{\"type\":\"hello\",\"id\":{id}}}\n"));
        } else if line.contains("\"type\":\"prompt\"") {
            say(&format!("{{\"type\":\"taken\",\"id\":{id}}}\n{{\"type\":\"began\",\"id\":{id}}}\n"));
            talk(seconds * rate, Duration::from_secs(1) / u32::try_from(rate).unwrap());
            say(&format!("{{\"type\":\"ended\",\"id\":{id},\"answer\":\"talked\"}}\n"));
        }
    }
}

fn talk(lines: u64, pause: Duration) {
    let text = "x".repeat(120);
    let mut line = Vec::with_capacity(256);
    let mut out = std::io::stdout().lock();
    // Agents do not speak in unison.
    let begun = Instant::now() + pause * (std::process::id() % 50) / 50;
    for number in 0..lines {
        let due = begun + pause * u32::try_from(number).unwrap();
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        line.clear();
        writeln!(line, "{{\"type\":\"delta\",\"number\":{number},\"text\":\"{text}\"}}").unwrap();
        out.write_all(&line).unwrap();
    }
}

fn say(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
}

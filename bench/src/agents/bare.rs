//! Claude Code without pinfold: the same process, driven by this program itself.

use crate::messages::millis;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// The arguments of the preset.
const WORDS: [&str; 9] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--permission-prompt-tool",
    "stdio",
    "--session-id=00000000-0000-4000-8000-000000000001",
];

pub(crate) struct Bare {
    child: Child,
    says: ChildStdin,
    hears: Lines<BufReader<ChildStdout>>,
    count: u64,
}

impl Bare {
    pub(crate) fn start(variables: &[(String, String)], dir: &Path) -> Bare {
        let mut command = Command::new("claude");
        command.args(WORDS).envs(variables.iter().cloned()).current_dir(dir);
        command.env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1").env("CLAUDE_CODE_DISABLE_AGENT_VIEW", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("`claude` is on the PATH");
        let (says, hears) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut bare = Bare { child, says, hears: BufReader::new(hears).lines(), count: 0 };
        bare.say(
            &json!({ "type": "control_request", "request_id": "1", "request": { "subtype": "initialize" } }),
        );
        bare.until("control_response");
        bare
    }

    fn say(&mut self, line: &Value) {
        self.says.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Returns the next line of a type.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let line = self.hears.next().unwrap().unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["type"] == kind {
                return line;
            }
        }
    }

    /// Makes one turn; returns how long it took until its result was read, in milliseconds.
    pub(crate) fn turn(&mut self, text: &str) -> f64 {
        self.count += 1;
        let uuid = format!("00000000-0000-4000-9000-{:012}", self.count);
        let message = json!({ "role": "user", "content": text });
        let begun = Instant::now();
        self.say(&json!({ "type": "user", "message": message, "uuid": uuid }));
        let result = self.until("result");
        let took = begun.elapsed();
        assert_eq!(result["result"], format!("reply to {text}"), "{result}");
        millis(took)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

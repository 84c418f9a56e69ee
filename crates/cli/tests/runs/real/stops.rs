//! Stops: nothing of an agent outlives one, whatever it ignores.

use super::gemini::with_a_shell;
use super::stage::Stage;
use crate::processes::lives;
use serde_json::{Value, json};

/// Ignores all that can be ignored, in a session of its own; writes down its pid in a file.
fn stubborn(file: &str) -> String {
    format!(
        "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ >{file}.new; mv {file}.new {file}; while :; do tail -f /dev/null; done'"
    )
}

/// An MCP server that answers, and stays when its client has gone; writes down its pid in a file.
fn server(file: &str) -> String {
    let answer = |result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{result}}}\\n");
    let hello = answer(
        r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"stubborn","version":"1"}}"#,
    );
    let tools = answer(r#"{"tools":[]}"#);
    format!(
        "trap '' TERM HUP INT; echo $$ >{file}.new; mv {file}.new {file}; \
         while read -r line; do \
         id=$(printf '%s' \"$line\" | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p'); \
         case \"$line\" in \
         *'\"method\":\"initialize\"'*) printf '{hello}' \"$id\";; \
         *'\"method\":\"tools/list\"'*) printf '{tools}' \"$id\";; \
         esac; done; \
         while :; do tail -f /dev/null; done"
    )
}

/// Writes an MCP server into a file of an agent's settings.
fn has_server(stage: &Stage, settings: &str, script: &str) {
    let path = stage.world.path(settings);
    let mut all: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    all["mcpServers"] = json!({ "stubborn": { "command": "/bin/sh", "args": ["-c", script] } });
    std::fs::write(path, all.to_string()).unwrap();
}

fn pid_in(stage: &Stage, file: &str) -> u32 {
    stage.world.until(file, || std::fs::read_to_string(file).ok()?.trim().parse().ok())
}

/// Stops a session in the middle of a tool, with a server beside it: none of them is left.
fn leaves_nothing(stage: &Stage, settings: &str, asks: bool) {
    let (tool, beside) = (stage.text("work/child"), stage.text("work/server"));
    has_server(stage, settings, &server(&beside));
    stage.ok(&["new", "api", "--agent", stage.agent(), "--stop-grace", "1s"]);
    stage.sends(&format!("TURN-one RUN={};;", stubborn(&tool)));
    if asks {
        stage.is_asked();
        stage.ok(&["answer", "api", "allow"]);
    }
    let all = [pid_in(stage, &tool), pid_in(stage, &beside), stage.pid()];
    assert!(all.iter().all(|pid| lives(*pid)));
    stage.ok(&["stop", "api"]);
    assert_eq!(all.map(lives), [false; 3]);
    stage.world.assert_no_members();
    for case in [
        "stop in a turn",
        "stop with a tool child",
        "stop with a tool child and an MCP server that ignore it",
    ] {
        stage.shown(case);
    }
}

#[test]
fn a_stop_of_claude_ends_what_ignores_it() {
    leaves_nothing(&Stage::new("claude"), "user/.claude.json", true);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_stop_of_gemini_ends_what_ignores_it() {
    leaves_nothing(&with_a_shell(), "user/.gemini/settings.json", false);
}

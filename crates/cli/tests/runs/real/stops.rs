//! Stops: nothing of an agent survives one, whatever it ignores. The kernel's list of processes is the judge,
//! before, during and after; pinfold is asked nothing.

use super::gemini::with_a_shell;
use super::stage::{BRIDGE, Stage};
use crate::processes::{around, children, lives};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Ignores everything that can be ignored, in its own session; writes its pid to a file.
fn stubborn(file: &str) -> String {
    format!(
        "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ >{file}.new; mv {file}.new {file}; while :; do tail -f /dev/null; done'"
    )
}

/// An MCP server that answers, and stays when its client is gone; writes its pid to a file.
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

/// Makes an agent start an MCP server; returns whether it can.
fn has_server(stage: &Stage, script: &str) -> bool {
    let words = json!({ "command": "/bin/sh", "args": ["-c", script] });
    match stage.agent() {
        "claude" | BRIDGE => has_in(stage, "user/.claude.json", "mcpServers", &words),
        "gemini" => has_in(stage, "user/.gemini/settings.json", "mcpServers", &words),
        "opencode" => {
            let words = json!({ "type": "local", "command": ["/bin/sh", "-c", script], "enabled": true });
            has_in(stage, "user/.config/opencode/opencode.json", "mcp", &words);
        }
        "codex" => {
            let path = stage.world.path("user/.codex/config.toml");
            let mut text = std::fs::read_to_string(&path).unwrap();
            let script = script.replace('\\', "\\\\").replace('"', "\\\"");
            text.push_str(&format!(
                "[mcp_servers.stubborn]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"{script}\"]\n"
            ));
            std::fs::write(path, text).unwrap();
        }
        _ => return false,
    }
    true
}

/// Writes an MCP server into an agent's settings file.
fn has_in(stage: &Stage, settings: &str, key: &str, server: &Value) {
    let path = stage.world.path(settings);
    let mut all: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    all[key] = json!({ "stubborn": server });
    std::fs::write(path, all.to_string()).unwrap();
}

/// A pid that a program has written down. A program in its own pid namespace has another number here.
fn pid_in(stage: &Stage, file: &str) -> u32 {
    stage.world.until(file, || std::fs::read_to_string(file).ok()?.trim().parse().ok())
}

/// A process with all its descendants.
fn tree(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while at < found.len() {
        found.extend(children(found[at]));
        at += 1;
    }
    found
}

/// Stops a session in the middle of a tool, with a server beside it: none of them survives.
fn leaves_nothing(stage: &Stage, asks: bool) {
    let (tool, beside) = (stage.text("work/child"), stage.text("work/server"));
    let with_server = has_server(stage, &server(&beside));
    stage.new_session_with(&["--stop-grace", "1s"]);
    // What is kept for later starts exists after the first one.
    stage.ok(&["new", "first", "--mode", "once", "--no-dir-lock", "--", "true"]);
    stage.ok(&["wait", "first", "--for", "stopped"]);
    let before = around(&stage.world.root);
    stage.sends(&format!("TURN-one RUN={};;", stubborn(&tool)));
    if asks {
        stage.is_asked();
        stage.ok(&["answer", "api", "allow"]);
    }
    pid_in(stage, &tool);
    if with_server {
        pid_in(stage, &beside);
    }
    let all: BTreeSet<u32> = around(&stage.world.root).difference(&before).copied().collect();
    let named = |word: &str| all.iter().filter(|pid| said_to(**pid).contains(word)).count();
    assert!(named("trap") > usize::from(with_server), "the tool and the server: {all:?}");
    let tree = tree(stage.pid());
    stage.ok(&["stop", "api"]);
    assert_eq!(tree.into_iter().filter(|pid| lives(*pid)).collect::<Vec<_>>(), Vec::<u32>::new());
    // The shim itself is the last to go.
    let left = || around(&stage.world.root).difference(&before).copied().collect::<Vec<u32>>();
    stage.world.until("nothing is left", || left().is_empty().then_some(()));
    assert_eq!(all.into_iter().filter(|pid| lives(*pid)).collect::<Vec<_>>(), Vec::<u32>::new());
    stage.shown("stop in a turn");
    stage.shown("stop with a tool child");
    if with_server {
        stage.shown("stop with a tool child and an MCP server that ignore it");
    }
}

/// The command line of a process.
fn said_to(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).into_owned()
}

#[test]
fn a_stop_of_claude_ends_what_ignores_it() {
    leaves_nothing(&Stage::new("claude"), true);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_stop_of_gemini_ends_what_ignores_it() {
    leaves_nothing(&with_a_shell(), false);
}

#[test]
fn a_stop_of_codex_ends_what_ignores_it_in_its_sandbox_too() {
    let stage = Stage::new("codex");
    leaves_nothing(&stage, true);
}

#[test]
fn a_stop_of_opencode_ends_what_ignores_it() {
    leaves_nothing(&Stage::new("opencode"), true);
}

#[test]
fn a_stop_of_pi_ends_what_ignores_it() {
    leaves_nothing(&Stage::new("pi"), false);
}

#[test]
fn a_stop_of_a_bridge_ends_what_ignores_it() {
    leaves_nothing(&Stage::new(BRIDGE), true);
}

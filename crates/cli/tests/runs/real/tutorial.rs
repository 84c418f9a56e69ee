//! Follows docs/tutorial.md as written, with the real Claude Code and the real Codex.

use super::stage::Stage;
use crate::world::finish_within;
use std::process::Command;
use std::time::Duration;

const PAGE: &str = include_str!("../../../../../docs/tutorial.md");
/// Two agents start, one after the other, several times.
const LIMIT: Duration = Duration::from_secs(300);

/// The blocks marked as run here.
fn script() -> String {
    let blocks = PAGE.split("real/tutorial.rs runs it in ./test agents -->\n```sh\n").skip(1);
    let blocks: Vec<&str> = blocks.map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 5, "the page has other marks now");
    format!("set -eEx\n{}", blocks.concat())
}

#[test]
fn it_works_as_it_is_written() {
    let stage = Stage::new("claude");
    stage.configure_codex(&stage.world.path("user/.codex"));
    let repository = "mkdir -p ~/src && ln -s \"$ROOT/work\" ~/src/api && cd \"$ROOT/work\" && git init -q -b main && \
        echo hello >README && git add . && git -c user.name=me -c user.email=me@localhost commit -q -m first";
    let usual = stage.command(&["version"]);
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("{repository}\n{}", script())])
        .stdin(std::process::Stdio::null())
        .env_clear();
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let path = usual.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value).unwrap();
    let folder = stage.world.binary.parent().unwrap();
    command.env("PATH", format!("{}:{}", folder.display(), path.to_string_lossy()));
    let answer = finish_within(command.current_dir(stage.world.path("work")), LIMIT);
    assert_eq!(answer.code, 0, "{answer:?}\n{}", stage.world.daemon_log());
    assert!(answer.stderr.contains("is blocked") || answer.stdout.contains("is blocked"), "{answer:?}");
}

//! The demo and the list of agents: verbs that need no daemon of the home.

use super::stage::Stage;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn the_demo_is_played() {
    let stage = Stage::new("demo");
    let temp = stage.world.path("temp");
    std::fs::create_dir(&temp).unwrap();
    let demo = |words: &[&str], temp: &str| {
        let mut command = stage.command(words);
        command.env("TMPDIR", stage.world.path(temp));
        command
    };
    stage.commands("demo", vec![demo(&["demo"], "temp"), demo(&["--json", "demo"], "temp")]);
    let missing = |words: &[&str]| demo(words, "missing");
    stage.commands("nowhere_to_play", vec![missing(&["demo"]), missing(&["--json", "demo"])]);
    stage.done();
}

#[test]
fn the_agents_are_listed() {
    let stage = Stage::new("agents");
    let bin = stage.world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for (name, script) in [("told", "#!/bin/sh\necho told 1.2.3\n"), ("silent", "#!/bin/sh\nexit 1\n")] {
        std::fs::write(bin.join(name), script).unwrap();
        std::fs::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let config = "[agents.told]\ncommand = [\"told\"]\n[agents.silent]\ncommand = [\"silent\"]\n\
         [agents.missing]\ncommand = [\"missing\"]\ninteractive = [\"missing\"]\n";
    std::fs::create_dir_all(&stage.world.home).unwrap();
    std::fs::set_permissions(&stage.world.home, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(stage.world.home.join("config.toml"), config).unwrap();
    let agents = |words: &[&str]| -> Command {
        let mut command = stage.command(words);
        command.env("PATH", &bin);
        command
    };
    stage.commands("agents", vec![agents(&["agents"]), agents(&["--json", "agents"])]);
    let registry = stage.world.path("registry.json");
    let entry = r#"{ "id": "mine", "name": "Mine", "version": "1.0.0", "distribution": { "npx": { "package": "mine@1.0.0", "args": ["--acp"] } } }"#;
    std::fs::write(&registry, entry).unwrap();
    let file = registry.to_str().unwrap();
    stage.both("agents_registry", &["agents", "--from-registry", file]);
    stage.both("agents_registry_unknown", &["agents", "--from-registry", file, "--entry", "other"]);
    stage.done();
}

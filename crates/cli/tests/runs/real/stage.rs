//! A world with a model in it, and a user's home that a real agent finds as after its first start.

use super::model::Model;
use crate::tty::Tty;
use crate::world::{Answer, World, finish_within};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Agents start slowly, several at once even more so.
const LIMIT: Duration = crate::processes::PATIENCE;
/// An agent without a preset of its own: any program that speaks the protocol can be named.
pub(crate) const BRIDGE: &str = "claude-agent-acp";
/// Agents show a few letters of the key; it is approved by its end.
const KEY: &str = "sk-not-a-key-for-the-tests-of-pinfold";

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) model: Model,
    agent: &'static str,
    /// The variables that this test changes.
    changed: Vec<(&'static str, Option<String>)>,
}

/// The folder of the agents, which `./test agents` sets.
pub(crate) fn agents() -> PathBuf {
    std::env::var_os("PINFOLD_TEST_AGENTS")
        .expect("`./test agents` installs the agents, and runs this")
        .into()
}

impl Stage {
    pub(crate) fn new(agent: &'static str) -> Stage {
        Stage::with_model(agent, Model::start())
    }

    pub(crate) fn with_model(agent: &'static str, model: Model) -> Stage {
        let stage = Stage { world: World::new(), model, agent, changed: Vec::new() };
        let user = stage.world.path("user");
        std::fs::create_dir_all(user.join(".gemini")).unwrap();
        std::fs::create_dir_all(stage.world.path("work")).unwrap();
        std::fs::create_dir_all(stage.world.path("other")).unwrap();
        std::fs::create_dir_all(stage.world.path("tmp")).unwrap();
        let trusted = json!({ "hasTrustDialogAccepted": true });
        let claude = json!({
            "hasCompletedOnboarding": true, "theme": "dark", "autoUpdates": false,
            "customApiKeyResponses": { "approved": [&KEY[KEY.len() - 20..]], "rejected": [] },
            "projects": { stage.text("work"): trusted, stage.text("other"): trusted },
        });
        std::fs::write(user.join(".claude.json"), claude.to_string()).unwrap();
        let gemini = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
            "general": { "enableAutoUpdate": false, "maxAttempts": 1, "retryFetchErrors": false }, "telemetry": { "enabled": false },
            "privacy": { "usageStatisticsEnabled": false },
        });
        std::fs::write(user.join(".gemini/settings.json"), gemini.to_string()).unwrap();
        stage.configure_open_agents();
        if agent == "codex" {
            stage.configure_codex(&user.join(".codex"));
        }
        stage
    }

    /// opencode and pi read from files where their model is.
    fn configure_open_agents(&self) {
        let user = self.world.path("user");
        std::fs::create_dir_all(user.join(".config/opencode")).unwrap();
        std::fs::create_dir_all(user.join(".pi/agent")).unwrap();
        let url = format!("http://127.0.0.1:{}/v1", self.model.port);
        let provider = json!({
            "npm": "@ai-sdk/openai-compatible", "name": "test",
            "options": { "baseURL": url, "apiKey": KEY }, "models": { "model": { "name": "model" } },
        });
        let opencode = json!({
            "autoupdate": false, "share": "disabled", "model": "test/model", "small_model": "test/model",
            "permission": { "bash": "ask", "edit": "ask" }, "provider": { "test": provider },
        });
        std::fs::write(user.join(".config/opencode/opencode.json"), opencode.to_string()).unwrap();
        let cost = json!({ "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 });
        let model = json!({
            "id": "model", "name": "model", "reasoning": false, "input": ["text"], "cost": cost,
            "contextWindow": 128_000, "maxTokens": 4096,
        });
        let provider =
            json!({ "baseUrl": url, "api": "openai-completions", "apiKey": KEY, "models": [model] });
        let pi = json!({ "providers": { "test": provider } });
        std::fs::write(user.join(".pi/agent/models.json"), pi.to_string()).unwrap();
        let chosen = json!({ "defaultProvider": "test", "defaultModel": "model" });
        std::fs::write(user.join(".pi/agent/settings.json"), chosen.to_string()).unwrap();
    }

    /// The name of its agent.
    pub(crate) fn agent(&self) -> &'static str {
        self.agent
    }

    /// Changes or removes a variable.
    pub(crate) fn with(mut self, name: &'static str, value: Option<&str>) -> Stage {
        self.changed.push((name, value.map(str::to_owned)));
        self
    }

    /// Writes the configuration of its home.
    pub(crate) fn configured(self, text: &str) -> Stage {
        std::fs::create_dir_all(&self.world.home).unwrap();
        std::fs::write(self.world.home.join("config.toml"), text).unwrap();
        self.ok(&["up", "--trust"]);
        self
    }

    pub(crate) fn configure_codex(&self, folder: &Path) {
        let port = self.model.port;
        let mut config = format!(
            "model = \"model\"\nmodel_provider = \"test\"\ncheck_for_update_on_startup = false\n[model_providers.test]\nname = \"test\"\n\
             base_url = \"http://127.0.0.1:{port}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n\
             request_max_retries = 0\nstream_max_retries = 0\n\
             [sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
        );
        for dir in ["work", "other"] {
            config.push_str(&format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", self.text(dir)));
        }
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("config.toml"), config).unwrap();
        // Codex asks before each command only if its thread is opened like this; its own file cannot say so.
        std::fs::create_dir_all(&self.world.home).unwrap();
        let asks = "[agents.codex.thread]\napprovalPolicy = \"untrusted\"\nsandbox = \"workspace-write\"\n";
        std::fs::write(self.world.home.join("config.toml"), asks).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.world.path(name).display().to_string()
    }

    /// A verb run by a user who has the agent and its key, and nothing else of the tester's.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let usual = self.world.command(words);
        let mut command = Command::new(&self.world.binary);
        command.args(words).stdin(std::process::Stdio::null()).env_clear();
        command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", agents().join("bin").display());
        let url = format!("http://127.0.0.1:{}", self.model.port);
        command.envs([("PATH", path.as_str()), ("LANG", "C.UTF-8"), ("TERM", "xterm-256color")]);
        command.env("HOME", self.world.path("user")).env("SHELL", "/bin/bash");
        // Gemini writes a report of each error there.
        command.env("TMPDIR", self.world.path("tmp"));
        command.envs([("ANTHROPIC_BASE_URL", url.as_str()), ("ANTHROPIC_API_KEY", KEY)]);
        command.envs([("GOOGLE_GEMINI_BASE_URL", url.as_str()), ("GEMINI_API_KEY", KEY)]);
        command.env("OPENAI_API_KEY", KEY);
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        command.envs(
            ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "PI_OFFLINE"]
                .map(|name| (name, "1")),
        );
        command.envs(["OPENCODE_DISABLE_LSP_DOWNLOAD", "PI_SKIP_VERSION_CHECK"].map(|name| (name, "1")));
        // The bridge does not start as root without it.
        command.env("IS_SANDBOX", "1");
        command.env("NO_PROXY", "127.0.0.1").current_dir(self.world.path("work"));
        for (name, value) in &self.changed {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Answer {
        finish_within(&mut self.command(words), LIMIT)
    }

    #[track_caller]
    pub(crate) fn ok(&self, words: &[&str]) -> Answer {
        let answer = self.run(words);
        assert_eq!(answer.code, 0, "{words:?}: {answer:?}\n{}", self.world.daemon_log());
        answer
    }

    /// Creates the session with the usual options.
    pub(crate) fn new_session(&self) {
        self.new_session_with(&[]);
    }

    /// The same, with more options.
    pub(crate) fn new_session_with(&self, options: &[&str]) {
        if self.agent == BRIDGE {
            let names = [
                "ANTHROPIC_BASE_URL",
                "ANTHROPIC_API_KEY",
                "IS_SANDBOX",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            ];
            let changed = self.changed.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name);
            let changed = changed.filter(|name| name.starts_with("CLAUDE_"));
            let variables = names.into_iter().chain(changed).flat_map(|name| ["--env", name]);
            let words: Vec<&str> = ["new", "api", "--agent", "acp"].into_iter().chain(variables).collect();
            self.ok(&[&words[..], options, &["--", BRIDGE]].concat());
        } else {
            self.ok(&[&["new", "api", "--agent", self.agent], options].concat());
        }
    }

    pub(crate) fn show(&self) -> Value {
        self.ok(&["--json", "show", "api"]).json()
    }

    pub(crate) fn pid(&self) -> u32 {
        crate::world::number(&self.show()["pid"])
    }

    /// Sends a message and returns the answer.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> String {
        self.ok(&["send", "api", text, "--wait"]).stdout.trim().to_owned()
    }

    /// Sends a message without waiting for the answer; returns its id.
    pub(crate) fn sends(&self, text: &str) -> String {
        self.ok(&["send", "api", text]).stdout.trim().to_owned()
    }

    /// Waits until a message is in this state.
    pub(crate) fn comes_to(&self, message: &str, state: &str) -> Value {
        self.world.message("api", message, state)
    }

    /// Waits until the agent asks.
    pub(crate) fn is_asked(&self) {
        self.world.until("a request", || Some(self.show()["requests"] != 0).filter(|asks| *asks));
    }

    /// Waits until an agent other than this one asks.
    pub(crate) fn is_asked_by_another(&self, pid: u32) {
        let asks =
            |session: &Value| session["requests"] != 0 && session["pid"].is_u64() && session["pid"] != pid;
        self.world.until("a request of another agent", || asks(&self.show()).then_some(()));
    }

    pub(crate) fn attach(&self) -> Tty {
        Tty::start(self.command(&["attach", "api"]), 40, 120)
    }

    /// Records what this agent was shown to do, for the table in the documentation.
    pub(crate) fn shown(&self, case: &str) {
        let Some(folder) = std::env::var_os("PINFOLD_TEST_AGENTS_SHOWN") else { return };
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{} {case}", self.agent)), "").unwrap();
    }
}

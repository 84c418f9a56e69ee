//! The presets that pinfold ships. A new agent is a file and one line here.

use super::PresetChanges;

const FILES: [(&str, &str); 19] = [
    ("acp", include_str!("../../presets/acp.toml")),
    ("agy", include_str!("../../presets/agy.toml")),
    ("aider", include_str!("../../presets/aider.toml")),
    ("amp", include_str!("../../presets/amp.toml")),
    ("claude", include_str!("../../presets/claude.toml")),
    ("codex", include_str!("../../presets/codex.toml")),
    ("command", include_str!("../../presets/command.toml")),
    ("copilot", include_str!("../../presets/copilot.toml")),
    ("cursor-agent", include_str!("../../presets/cursor-agent.toml")),
    ("droid", include_str!("../../presets/droid.toml")),
    ("gemini", include_str!("../../presets/gemini.toml")),
    ("goose", include_str!("../../presets/goose.toml")),
    ("grok", include_str!("../../presets/grok.toml")),
    ("kilo", include_str!("../../presets/kilo.toml")),
    ("kimi", include_str!("../../presets/kimi.toml")),
    ("opencode", include_str!("../../presets/opencode.toml")),
    ("pi", include_str!("../../presets/pi.toml")),
    ("qwen", include_str!("../../presets/qwen.toml")),
    ("scripted", include_str!("../../presets/scripted.toml")),
];

/// Returns the shipped preset with this name, if there is one.
#[must_use]
pub fn shipped(name: &str) -> Option<PresetChanges> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    // A test reads every file, so none fails here.
    PresetChanges::from_toml(text).ok()
}

/// Returns the names of the shipped presets.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::super::{AttachMode, Filling, Preset, Protocol, SessionIds, VendorTranscript};
    use super::*;

    fn preset(name: &str) -> Preset {
        shipped(name).unwrap().preset()
    }

    /// Returns the words that begin a session, and those that resume it.
    fn words(preset: &Preset) -> [String; 2] {
        let filling = Filling { dir: "/work", vendor_session: Some("s-1"), prompt: Some("hi"), socket: "/s" };
        let words = |transcript| preset.headless_on(filling, transcript).unwrap().join(" ");
        [words(VendorTranscript::Missing), words(VendorTranscript::Exists)]
    }

    #[test]
    fn every_preset_that_is_shipped_can_be_read() {
        for (name, text) in FILES {
            assert_eq!(PresetChanges::from_toml(text).err(), None, "{name}");
            assert!(shipped(name).is_some());
        }
        assert_eq!(names().count(), FILES.len());
        assert_eq!(shipped("nobody"), None);
    }

    #[test]
    fn a_command_reads_lines_and_is_named_by_each_session() {
        let command = shipped("command").unwrap().preset();
        assert_eq!((command.protocol, command.command), (Protocol::Line, None));
    }

    #[test]
    fn claude_is_begun_with_the_id_that_is_chosen_and_resumed_once_it_has_a_transcript() {
        let claude = preset("claude");
        let common = "claude -p --input-format stream-json --output-format stream-json --verbose --permission-prompt-tool stdio";
        let expected = [format!("{common} --session-id=s-1"), format!("{common} --resume=s-1")];
        assert_eq!(words(&claude), expected);
        assert_eq!((claude.protocol, claude.session), (Protocol::StreamJson, SessionIds::Choose));
        let filling = Filling { dir: "/work", vendor_session: Some("s-1"), prompt: None, socket: "/s" };
        let last = |words: Vec<String>| words.last().cloned().unwrap();
        assert_eq!(last(claude.interactive(filling).unwrap().unwrap()), "--resume=s-1");
        let shown = |transcript| last(claude.interactive_on(filling, transcript).unwrap().unwrap());
        assert_eq!(shown(VendorTranscript::Exists), "--resume=s-1");
        assert_eq!(shown(VendorTranscript::Missing), "--session-id=s-1");
        assert_eq!(claude.version().unwrap(), ["claude", "--version"]);
        assert_eq!(claude.set["CLAUDE_CODE_DISABLE_AGENT_VIEW"], "1");
    }

    #[test]
    fn claude_takes_its_own_variables_and_none_that_say_where_it_runs() {
        let claude = preset("claude");
        let rows = [
            ("ANTHROPIC_API_KEY", true),
            ("CLAUDE_CONFIG_DIR", true),
            ("CLAUDECODE", false),
            ("CLAUDE_CODE_SESSION_ID", false),
            ("CLAUDE_CODE_MESSAGING_TOKEN", false),
            ("GIT_DIR", false),
        ];
        for (name, taken) in rows {
            assert_eq!(claude.takes(name), taken, "{name}");
        }
        assert!(claude.strips("CLAUDECODE") && !claude.strips("PATH"));
    }

    #[test]
    fn the_store_of_claude_is_where_its_variable_says_and_its_files_are_below() {
        let store = preset("claude").store.unwrap();
        let home = |name: &str| (name == "HOME").then_some("/home/u");
        assert_eq!(store.folder(home).as_deref(), Some("/home/u/.claude"));
        let set = |name: &str| if name == "CLAUDE_CONFIG_DIR" { Some("/c") } else { home(name) };
        assert_eq!(store.folder(set).as_deref(), Some("/c"));
        let empty = |name: &str| if name == "CLAUDE_CONFIG_DIR" { Some("") } else { home(name) };
        assert_eq!(store.folder(empty).as_deref(), Some("/home/u/.claude"));
        assert_eq!(store.folder(|_| None), None);
        let claude = preset("claude");
        assert_eq!(claude.transcript_of("a-1").as_deref(), Some("projects/*/a-1.jsonl"));
        for odd in ["", "../x", "*", "a b"] {
            assert_eq!(claude.transcript_of(odd), None, "{odd}");
        }
        assert_eq!(claude.id_files(), Some(("sessions", "", ".json")));
        assert_eq!(preset("codex").id_files(), None);
        let gemini = preset("gemini").store.unwrap();
        assert_eq!(gemini.folder(home).as_deref(), Some("/home/u/.gemini"));
        let set = |name: &str| if name == "GEMINI_CLI_HOME" { Some("/c") } else { home(name) };
        assert_eq!(gemini.folder(set).as_deref(), Some("/c/.gemini"), "the variable names a home");
        let gemini = preset("gemini").transcript_of("0123456789-a");
        assert_eq!(gemini.as_deref(), Some("tmp/*/chats/session-*-01234567.jsonl"));
    }

    #[test]
    fn the_last_line_of_claude_names_the_session_that_it_leaves() {
        let claude = preset("claude");
        let rows = [
            (
                "claude --resume ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11",
                Some("ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11"),
            ),
            (
                "or: claude --resume ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11 --verbose",
                Some("ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11"),
            ),
            ("claude --resume", None),
            ("claude --resume --help", None),
            ("claude --resume ../x", None),
            ("bye", None),
        ];
        for (line, left) in rows {
            assert_eq!(claude.left_in(line), left, "{line}");
        }
        assert_eq!(preset("codex").left_in("claude --resume ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11"), None);
        let gemini = preset("gemini");
        assert_eq!(
            gemini.left_in("To resume this session: gemini --resume c7c60000-1b5e-4c4e-9d3b-2f6f3c1f7a11"),
            Some("c7c60000-1b5e-4c4e-9d3b-2f6f3c1f7a11")
        );
    }

    #[test]
    fn hooks_of_claude_tell_its_spool_which_session_it_leaves() {
        let claude = preset("claude");
        let rows: [(&[u8], Option<&str>); 8] = [
            (
                br#"r1 {"session_id":"ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11","reason":"clear"}"#,
                Some("ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11"),
            ),
            (
                b"r1 {\"session_id\":\"ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11\"}\n",
                Some("ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11"),
            ),
            (br#"r2 {"session_id":"ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11"}"#, None),
            (br#"r1 {"session_id":"ee390000-1b5e-4c4e-9d3b-2f6f3c1f7a11"#, None),
            (br#"r1 {"session_id":"--help"}"#, None),
            (br#"r1 {"session_id":"../x"}"#, None),
            (br#"r1 {"session_id":7}"#, None),
            (b"", None),
        ];
        for (spool, left) in rows {
            assert_eq!(claude.left_in_spool("r1", spool).as_deref(), left, "{}", spool.escape_ascii());
        }
        assert_eq!(preset("codex").left_in_spool("r1", rows[0].0), None);
        let words = [claude.interactive.unwrap(), claude.interactive_new.unwrap()];
        let [resumes, begins] = words.map(|words| words[1].clone());
        assert_eq!(resumes, begins);
        let settings: serde_json::Value =
            serde_json::from_str(resumes.strip_prefix("--settings=").unwrap()).unwrap();
        let hooks = &settings["hooks"];
        assert_eq!(hooks["SessionStart"], hooks["SessionEnd"]);
        let command = hooks["SessionEnd"][0]["hooks"][0]["command"].as_str().unwrap();
        assert_eq!(command, "printf %s \"$PINFOLD_RUN $(cat)\" >\"$PINFOLD_SPOOL\"");
    }

    #[test]
    fn a_key_of_claude_can_be_changed_and_the_others_stay() {
        let own = PresetChanges::from_toml(
            "interactive = ['claude', '--resume={vendor_session}', '--model', 'opus']",
        );
        let both = shipped("claude").unwrap().changed(&own.unwrap()).preset();
        assert_eq!((both.interactive.unwrap().len(), both.protocol), (4, Protocol::StreamJson));
        assert_eq!((both.set, both.strip), (preset("claude").set, preset("claude").strip));
    }

    #[test]
    fn codex_listens_at_the_socket_of_its_session_where_its_terminal_program_joins_it() {
        let codex = preset("codex");
        let listens = "codex app-server --listen unix:///s";
        assert_eq!(words(&codex), [listens, listens]);
        let filling = Filling { dir: "/work", vendor_session: Some("s-1"), prompt: None, socket: "/s" };
        let joins = codex.interactive(filling).unwrap().unwrap().join(" ");
        assert_eq!((joins.as_str(), codex.attach), ("codex --remote unix:///s resume s-1", AttachMode::Join));
        let lock = codex.writer_lock_of("s-1");
        assert_eq!(lock.as_deref(), Some("thread-writer-locks/s-1.lock"));
        assert_eq!(codex.writer_lock_of("../x"), None);
        assert!(
            codex.takes("CODEX_HOME") && codex.takes("OPENAI_API_KEY") && !codex.takes("CODEX_THREAD_ID")
        );
    }

    #[test]
    fn agents_that_run_once_get_the_message_among_their_words() {
        let gemini = "gemini --output-format stream-json";
        let rows = [
            (
                "gemini",
                [
                    format!("{gemini} --session-id s-1 --prompt=hi"),
                    format!("{gemini} --resume s-1 --prompt=hi"),
                ],
            ),
            (
                "aider",
                ["aider --no-pretty --no-stream --restore-chat-history --message=hi"; 2].map(str::to_owned),
            ),
        ];
        for (name, expected) in rows {
            assert_eq!((words(&preset(name)), preset(name).protocol), (expected, Protocol::Exec), "{name}");
        }
    }

    #[test]
    fn agents_with_a_protocol_of_many_run_for_many_messages_and_tell_their_session() {
        let rows = [
            ("opencode", Protocol::Acp, ["opencode acp"; 2]),
            ("pi", Protocol::Pi, ["pi --mode rpc", "pi --mode rpc --session s-1"]),
        ];
        for (name, protocol, expected) in rows {
            let preset = preset(name);
            assert_eq!(words(&preset), expected.map(str::to_owned));
            assert_eq!((preset.protocol, preset.session, preset.pty), (protocol, SessionIds::Learn, false));
            assert!(preset.store.is_some() && !preset.proven.is_empty());
        }
        let any = preset("acp");
        assert_eq!((any.protocol, any.session, any.command), (Protocol::Acp, SessionIds::Learn, None));
    }

    #[test]
    fn agents_in_a_terminal_are_started_anew_where_it_is_not_known_how_they_resume() {
        for name in
            ["agy", "amp", "copilot", "cursor-agent", "droid", "goose", "grok", "kilo", "kimi", "qwen"]
        {
            let preset = preset(name);
            assert_eq!(
                (words(&preset), preset.resume, preset.pty),
                ([name; 2].map(str::to_owned), None, true)
            );
        }
    }
}

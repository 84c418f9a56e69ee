//! Texts that others choose (messages, vendor IDs, tags) never become options of an agent, and an agent that
//! repeats IDs does not fail its turns.

use crate::world::World;
use serde_json::json;

const EVIL: &str = "--resume=evil";

impl World {
    /// Configures agents of protocol `exec` that print their arguments.
    fn with_exec_agents(&self) {
        let program = self.path("prints");
        let binary = self.binary.display();
        let sends =
            format!("case $1 in *sends*) {binary} send api -- --approval-mode=yolo >/dev/null;; esac");
        std::fs::write(&program, format!("{sends}\nfor word; do echo \"<$word>\"; done\n")).unwrap();
        let agent = |name: &str, words: &str, more: &str| {
            let program = program.display();
            format!(
                "[agents.{name}]\nprotocol = \"exec\"\ncommand = [\"sh\", \"{program}\"{words}]\n[agents.{name}.exec]\n{more}\n"
            )
        };
        let config = [
            agent("joined", ", \"--text={prompt}\"", ""),
            agent("after", ", \"--\", \"{prompt}\"", ""),
            agent("input", "", "prompt = \"stdin\""),
            agent("bare", ", \"{prompt}\"", ""),
        ];
        std::fs::create_dir_all(&self.home).unwrap();
        std::fs::write(self.home.join("config.toml"), config.concat()).unwrap();
    }

    /// Creates a session of an ACP agent that reads a line before each of these answers.
    fn acp(&self, name: &str, answers: &[&str]) {
        let script = self.path(&format!("{name}.sh"));
        let says = |answer: &&str| format!("read -r line\nprintf '%s\\n' '{answer}'\n");
        let text: String = answers.iter().map(says).collect();
        std::fs::write(&script, format!("{text}cat >/dev/null\n")).unwrap();
        self.ok(&["new", name, "--agent", "acp", "--", "sh", &script.display().to_string()]);
    }
}

#[test]
fn a_message_that_begins_with_a_dash_stays_in_its_word_and_a_message_of_a_run_is_marked() {
    let world = World::new();
    world.with_exec_agents();
    world.ok(&["new", "api", "--agent", "joined"]);
    let asked = |text: &str| world.ok(&["send", "api", "--wait", "60s", "--", text]).stdout;
    assert_eq!(asked("--help"), "<--text=--help>\n");
    assert_eq!(asked("this sends"), "<--text=this sends>\n");
    let own = world.json(&["inbox", "api", "-n", "all"]);
    let own =
        own.as_array().unwrap().iter().find(|message| message["text"] == "--approval-mode=yolo").unwrap();
    let done = world.message("api", own["id"].as_str().unwrap(), "done");
    assert_eq!(done["answer"], "<--text=[from session api] --approval-mode=yolo>");
}

#[test]
fn new_warns_of_an_agent_that_reads_a_message_as_an_option() {
    let world = World::new();
    world.with_exec_agents();
    for (agent, warns) in [("joined", false), ("after", false), ("input", false), ("bare", true)] {
        let made = world.ok(&["new", agent, "--agent", agent]);
        let warning = format!("warning: agent `{agent}` reads a message that begins with `-` as an option");
        assert_eq!(made.stderr.contains(&warning), warns, "{made:?}");
        assert_eq!(made.stderr.contains("`--` before `{prompt}`"), warns, "{made:?}");
    }
    assert_eq!(world.ok(&["--quiet", "new", "quiet", "--agent", "bare"]).stderr, "");
}

#[test]
fn a_vendor_id_is_given_only_in_the_form_of_its_vendor() {
    let world = World::new();
    let uuid = "0b9c1b5e-5a0f-4c4e-9d3b-2f6f3c1f7a11";
    world.ok(&["new", "set", "--mode", "on-demand", "--", "cat"]);
    for (agent, id) in [
        ("claude", EVIL),
        ("claude", "ses_abc"),
        ("codex", "thread-1"),
        ("gemini", "latest"),
        ("pi", "../x"),
        ("opencode", uuid),
        ("acp", "a b"),
        ("acp", "a/b"),
        ("acp", ""),
        ("acp", "{prompt}"),
    ] {
        let id = format!("--vendor-session={id}");
        let command: &[&str] = if agent == "acp" { &["--", "cat"] } else { &[] };
        let refused = world.run(&[&["new", "x", "--force", "--agent", agent, &id], command].concat());
        assert_eq!(refused.code, 2, "{agent} {id}: {refused:?}");
        assert!(refused.stderr.contains("hint: such an ID is "), "{refused:?}");
    }
    let set = world.run(&["set", "set", "--vendor-session=--resume=evil"]);
    assert_eq!(set.code, 2, "{set:?}");
    assert_eq!(world.sessions().len(), 1);
    for (agent, id) in [("claude", uuid), ("opencode", "ses_2f6f3c1f7A11")] {
        world.ok(&["new", agent, "--force", "--agent", agent, "--vendor-session", id]);
        assert_eq!(world.show(agent)["vendor_session"], id);
    }
}

#[test]
fn a_vendor_id_that_is_an_option_is_not_learned() {
    let world = World::new();
    let opened = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"sessionId":"{EVIL}"}}}}"#);
    let done = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"outputTokens":1}}}"#;
    world.acp("a", &[r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#, &opened, done]);
    world.ok(&["send", "a", "hello", "--wait", "60s"]);
    assert_eq!(world.show("a")["vendor_session"], json!(null));
    assert!(
        world.daemon_log().contains("named a vendor session that cannot be one"),
        "{}",
        world.daemon_log()
    );
    assert!(!world.ok(&["--json", "ls", "--all"]).stdout.contains(EVIL));
}

#[test]
fn responses_that_repeat_an_id_in_other_spellings_fail_no_turn() {
    let world = World::new();
    let lies = |id: u32, result: &str| {
        let ids = [format!("\"{id}\""), format!("{}", id + 1), "null".to_owned(), id.to_string()];
        ids.map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).join("\n")
    };
    // Of the lies, only the last line says what was used: nothing shows that another one worked.
    let turn = |id: u32| {
        let lies = lies(id, r#"{"stopReason":"end_turn"}"#);
        let (others, _) = lies.rsplit_once('\n').unwrap();
        format!(
            "{others}\n{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"stopReason\":\"end_turn\",\"usage\":{{\"outputTokens\":1}}}}}}"
        )
    };
    let hands = [lies(1, r#"{"protocolVersion":1}"#), lies(2, r#"{"sessionId":"s-1"}"#)];
    world.acp("a", &[&hands[0], &hands[1], &turn(3), &turn(4)]);
    for text in ["one", "two"] {
        let id = world.ok(&["send", "a", text]).stdout.trim().to_owned();
        world.message("a", &id, "done");
    }
    assert_eq!(world.show("a")["restarts"], 0);
}

#[test]
fn a_message_without_text_is_refused() {
    let world = World::new();
    world.ok(&["new", "chat", "--mode", "on-demand", "--", "cat"]);
    for text in ["", "  ", "\n\t"] {
        let refused = world.run(&["send", "chat", text]);
        assert!(refused.code == 2 && refused.stderr.contains("the message is empty"), "{refused:?}");
        assert!(refused.stderr.contains("hint: "), "{refused:?}");
    }
    let file = world.path("file");
    std::fs::write(&file, "words").unwrap();
    world.ok(&["send", "chat", "", "--file", &file.display().to_string()]);
    assert_eq!(world.json(&["inbox", "chat", "-n", "all"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_tag_has_no_control_characters() {
    let world = World::new();
    for tag in ["a\nb", "\u{1b}[2J", "\u{7f}"] {
        let refused = world.run(&["new", "x", "--tag", tag, "--mode", "on-demand", "--", "cat"]);
        assert!(refused.code == 2 && refused.stderr.contains("control character"), "{refused:?}");
    }
    world.ok(&["new", "x", "--tag", "plain", "--mode", "on-demand", "--", "cat"]);
    assert_eq!(world.run(&["set", "x", "--tag", "a\nb"]).code, 2);
    assert_eq!(world.show("x")["tags"], json!(["plain"]));
}

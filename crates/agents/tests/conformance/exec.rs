//! Agents that run once per message: what their recordings say, read by presets that are only data.

use crate::dice::Dice;
use crate::kit::{Story, conforms, ends, folded, observed, prompt};
use crate::recordings::{Recording, recorded};
use pinfold_agents::preset::{ChatCommands, Filling, PromptBy, shipped};
use pinfold_agents::{
    Delivery, EndedBy, Intent, MessageSender, Preset, PresetChanges, Prompt, Protocol, Setup, prompt_text,
};
use pinfold_core::{Exit, MessageId};

fn preset(name: &str) -> Preset {
    let text = match name {
        "codex-exec" => include_str!("../presets/codex-exec.toml"),
        "gemini-p" => include_str!("../../presets/gemini.toml"),
        other => {
            assert_eq!(other, "opencode-run");
            include_str!("../presets/opencode-run.toml")
        }
    };
    PresetChanges::from_toml(text).unwrap().preset()
}

/// A recording as a run for one message.
fn story(recording: &Recording) -> Story {
    let begun = Story::new().prompt(5, 1).written();
    let story = recording.lines.iter().fold(begun, |story, line| {
        let story = story.at(recording.began() + line.millis());
        match line.direction.as_str() {
            "out" => story.line(&line.text),
            "err" => story.err(format!("{}\n", line.text)),
            _ => story,
        }
    });
    match recording.exit {
        Some(exit) => story.ends(exit),
        None => story,
    }
}

/// Returns what is observed in a recording, except that the message was taken.
fn read(agent: &str, case: &str) -> Vec<String> {
    let recording = recorded(agent, case);
    let setup = Setup::new(&preset(agent), "/work", None);
    let mut told = ends(&observed(&setup, &story(&recording)));
    assert_eq!(told.remove(0), "taken 1");
    told
}

#[test]
fn recordings_of_codex_mean_what_they_meant() {
    let limit = "You’ve hit your usage limit. Visit https://chatgpt.com/settings/usage to purchase more credits or try again at 6:09 AM.";
    let unknown = "Error: thread/resume: thread/resume failed: no rollout found for thread id c6c52bd3-c628-4024-8084-0c9b6e43189f (code -32600)";
    let login = "unexpected status 401 Unauthorized: mock error, url: http://127.0.0.1:4000/v1/responses";
    let rows: [(&str, Vec<String>); 7] = [
        (
            "turn",
            vec![
                "session 01a1e2c2-627d-7cc1-b51d-c133bd7a69c9".into(),
                "done 1 \"MOCK-REPLY 1: TURN-one\" for 1000+50 in all".into(),
            ],
        ),
        (
            "resume",
            vec![
                "session 01a1e2c2-627d-7cc1-b51d-c133bd7a69c9".into(),
                "done 1 \"MOCK-REPLY 2: TURN-two\" for 1011+57 in all".into(),
            ],
        ),
        (
            "limit",
            vec![
                "session 01a1e2c2-81f2-70e3-910b-cc23fbc0055f".into(),
                "limit Reached".into(),
                format!("failed (Limit: {limit}) 1"),
            ],
        ),
        (
            "auth",
            vec![
                "session 01a1e2c2-8c74-7481-9260-33be53610b0f".into(),
                format!("login {login}"),
                format!("failed (Login: {login}) 1"),
            ],
        ),
        (
            "resume-unknown",
            vec!["refused Unknown".into(), format!("failed (Other: it exited with 1: `{unknown}`) 1")],
        ),
        // Refused or killed: the turn was cut short, and ends with the run.
        ("double", vec!["refused Busy".into()]),
        ("sigterm-stream", vec!["session 01a1e2c2-c0bc-7f53-9e28-c75343705568".into()]),
    ];
    for (case, expected) in rows {
        assert_eq!(read("codex-exec", case), expected, "{case}");
    }
}

#[test]
fn recordings_of_gemini_and_opencode_mean_what_they_meant() {
    let gemini = read("gemini-p", "turn");
    assert_eq!(gemini[0], "session d415d715-85ca-44b1-a43c-403c14248103");
    assert_eq!(gemini[1], "done 1 \"MOCK-REPLY 1: TURN-one\" for 1000+50");
    let limit = read("gemini-p", "limit");
    assert_eq!(limit[1], "limit Reached");
    assert!(limit[2].starts_with("failed (Limit: [API Error: You have exhausted"), "{limit:?}");
    assert_eq!(limit.len(), 3, "told once, though it is said twice");
    // It exits with 0 if it is ended in the middle of its turn.
    assert_eq!(read("gemini-p", "sigterm-group-stream").len(), 1);
    assert_eq!(read("gemini-p", "session-id-in-use"), ["refused Busy"]);
    let retried = read("gemini-p", "cut-retried");
    assert_eq!(retried[1], "done 1 \"MOCK-REPLY 2: TURN-one\" for 22+14", "the first try is not in it");
    let opencode = read("opencode-run", "turn");
    assert_eq!(opencode[0], "session ses_e1d3914f4ffe9zCwsyGuz30MuB");
    assert_eq!(opencode[1], "done 1 \"MOCK-REPLY 2: TURN-one\" for 1000+50");
    assert_eq!(read("opencode-run", "auth")[1], "failed (Other: mock error) 1");
    let unknown = read("opencode-run", "resume-unknown");
    assert_eq!(unknown[0], "refused Unknown");
    assert!(unknown[1].starts_with("failed (Other: it exited with 1: "), "{unknown:?}");
    assert_eq!(read("opencode-run", "stdin-open"), Vec::<String>::new());
}

#[test]
fn every_recording_conforms_under_its_preset() {
    let mut dice = Dice(5);
    for agent in ["codex-exec", "gemini-p", "opencode-run"] {
        let setup = Setup::new(&preset(agent), "/work", None);
        for recording in crate::recordings::all().filter(|recording| recording.agent == agent) {
            conforms(&setup, &story(&recording), &mut dice);
        }
    }
}

fn plain() -> Setup {
    Setup::new(&Preset { protocol: Protocol::Exec, ..Preset::default() }, "/work", None)
}

#[test]
fn without_rules_all_that_is_printed_is_the_answer_and_exit_0_is_done() {
    let printed = || Story::new().prompt(5, 1).written().out("two\nlines").err("noise\n");
    let rows = [
        (Exit::Code(0), vec!["taken 1", "done 1 \"two\\nlines\""]),
        (Exit::Code(1), vec!["taken 1", "failed (Other: it exited with 1: `noise`) 1 \"two\\nlines\""]),
        (Exit::Code(75), vec!["taken 1"]),
        (Exit::Signal(15), vec!["taken 1"]),
    ];
    for (exit, expected) in rows {
        let story = printed().ends(exit);
        assert_eq!(ends(&observed(&plain(), &story)), expected, "{exit}");
        conforms(&plain(), &story, &mut Dice(6));
    }
}

#[test]
fn an_exit_is_recognised_by_its_code_or_by_a_line_of_the_answer_and_then_the_turn_is_not_failed() {
    let mut setup = plain();
    setup.exec.recognises = toml::from_str("login = ['log in first']\ncodes = { 3 = 'busy' }").unwrap();
    setup.contended_if = Some("session lock busy".into());
    let busy = || Story::new().prompt(5, 1).written().line("error: session lock busy (pid 7)");
    let other = || Story::new().prompt(5, 1).written().line("42");
    let login = || Story::new().prompt(5, 1).written().line("log in first");
    let failed = "failed (Other: it exited with 4: `42`) 1 \"42\"";
    let rows = [
        (busy().ends(Exit::Code(1)), vec!["taken 1", "refused Busy"]),
        (busy().err("noise\n").ends(Exit::Code(1)), vec!["taken 1", "refused Busy"]),
        (busy().ends(Exit::Code(0)), vec!["taken 1", "done 1 \"error: session lock busy (pid 7)\""]),
        (busy().ends(Exit::Signal(9)), vec!["taken 1"]),
        (other().ends(Exit::Code(3)), vec!["taken 1", "refused Busy"]),
        (other().ends(Exit::Code(4)), vec!["taken 1", failed]),
        (
            login().ends(Exit::Code(1)),
            vec![
                "taken 1",
                "login log in first",
                "failed (Login: it exited with 1: `log in first`) 1 \"log in first\"",
            ],
        ),
    ];
    for (story, expected) in rows {
        assert_eq!(ends(&observed(&setup, &story)), expected);
        conforms(&setup, &story, &mut Dice(8));
    }
}

#[test]
fn what_was_printed_before_the_prompt_could_be_said_is_the_answer_too() {
    let story = Story::new().out("one\n").prompt(5, 1).out("two\n").ends(Exit::Code(0));
    assert_eq!(ends(&observed(&plain(), &story)), ["taken 1", "done 1 \"one\\ntwo\""]);
    conforms(&plain(), &story, &mut Dice(7));
    let (mut fold, _) = folded(&plain(), &Story::new().out("all of it\n"));
    fold.was_for(Delivery { message: MessageId(5), delivery: 1 });
    let told = ends(&fold.exited(Exit::Code(0), EndedBy::Itself));
    assert_eq!(told, ["taken 1", "done 1 \"all of it\""]);
}

#[test]
fn how_a_run_exits_that_was_asked_to_end_says_nothing_of_its_turn() {
    let story = Story::new().prompt(5, 1).out("half of\n");
    for exit in [Exit::Code(0), Exit::Code(1), Exit::Signal(15)] {
        let (mut fold, _) = folded(&plain(), &story);
        assert_eq!(ends(&fold.exited(exit, EndedBy::Us)), Vec::<String>::new(), "{exit}");
    }
    let said = Setup::new(&preset("codex-exec"), "/work", None);
    let story = Story::new().prompt(5, 1).line(r#"{"type":"turn.completed"}"#);
    let (mut fold, _) = folded(&said, &story);
    assert_eq!(ends(&fold.exited(Exit::Signal(15), EndedBy::Us)).len(), 1, "its own word counts");
}

#[test]
fn a_line_that_cannot_be_read_fails_the_turn_when_the_run_ends() {
    let begun = Story::new().prompt(5, 1).out(vec![b'x'; pinfold_agents::LONGEST_LINE + 1]).out("\nmore\n");
    let passed = "note: a line of output was too long, and passed over";
    assert_eq!(ends(&observed(&plain(), &begun)), ["taken 1", passed]);
    let told = ends(&observed(&plain(), &begun.ends(Exit::Code(0))));
    let why = "a line of its output has more than 32 MiB, and cannot be read";
    assert_eq!(told[2], format!("failed (LineTooLong: {why}) 1 \"more\""));
}

#[test]
fn a_message_comes_by_argument_or_on_standard_input_and_nothing_follows_it() {
    let (fold, _) = folded(&plain(), &Story::new());
    let said = fold.say(1, &prompt(5, 1, "--help")).unwrap();
    assert_eq!((said.bytes.len(), said.close), (0, true));
    let mut by_stdin = plain();
    by_stdin.exec.prompt = PromptBy::Stdin;
    let (fold, _) = folded(&by_stdin, &Story::new());
    let said = fold.say(1, &prompt(5, 1, "two\nlines")).unwrap();
    assert_eq!((&said.bytes[..], said.close), (&b"two\nlines"[..], true));
    assert!(fold.say(1, &Intent::Interrupt).is_err());
    let filling =
        Filling { dir: "/work", vendor_session: Some("s"), prompt: Some("--help {dir}"), socket: "/s" };
    let words = preset("codex-exec").headless(filling).unwrap();
    assert_eq!(words[words.len() - 2..], ["--", "--help {dir}"]);
}

#[test]
fn a_repetition_says_so_and_so_does_a_message_of_another_session() {
    let prompt = Prompt {
        message: MessageId(5),
        delivery: 2,
        attempt: 2,
        text: "go on".into(),
        repetition: true,
        files: vec!["/a/b".into()],
        from: Some(MessageSender { session: "boss".into(), own: false }),
    };
    let chat = ChatCommands::default();
    let text = prompt_text(&prompt, &chat);
    assert_eq!(text.lines().collect::<Vec<_>>()[1..], ["[from session boss] go on", "@/a/b"]);
    assert!(text.starts_with("[this message is delivered again"));
    let own = Some(MessageSender { session: "api".into(), own: true });
    let text = prompt_text(&Prompt { text: "--yolo".into(), repetition: false, from: own, ..prompt }, &chat);
    assert_eq!(text, "[from session api] --yolo\n@/a/b", "a run is not the user, not even to itself");
}

/// What an agent of a shipped preset is given.
fn given(agent: &str, text: &str, from: Option<MessageSender>) -> String {
    let chat = shipped(agent).unwrap().preset().chat;
    let (message, text, files) = (MessageId(5), text.to_owned(), Vec::new());
    prompt_text(&Prompt { message, delivery: 1, attempt: 1, text, repetition: false, files, from }, &chat)
}

#[test]
fn what_a_person_types_is_a_text_for_every_agent_except_the_commands_that_work() {
    let rows = [
        ("claude", "/", "/clear, /compact"),
        ("codex", "", ""),
        ("gemini", "/?", ""),
        ("opencode", "/", "/compact"),
        ("pi", "/", ""),
        ("acp", "/", "/clear, /compact"),
        ("aider", "/!", ""),
        ("command", "", ""),
    ];
    for (agent, marks, commands) in rows {
        for mark in ["/", "?", "!", "@", "#", "-"] {
            let text = format!("{mark}tmp is full");
            let word = if marks.contains(mark) { "[message] " } else { "" };
            assert_eq!(given(agent, &text, None), format!("{word}{text}"), "{agent}");
        }
        for command in ["/clear", "/compact"] {
            let bare = marks.is_empty() || commands.contains(command);
            assert_eq!(given(agent, command, None) == command, bare, "{agent} {command}");
            let more = given(agent, &format!("{command} the cache"), None);
            assert_eq!(more.starts_with('/'), marks.is_empty(), "{agent} {command}");
        }
    }
}

#[test]
fn a_command_of_a_run_is_a_text() {
    let run = Some(MessageSender { session: "boss".into(), own: false });
    assert_eq!(given("claude", "/clear", run), "[from session boss] /clear");
}

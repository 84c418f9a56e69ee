//! What the file may say, and the errors for what it may not.

use super::policy::KEYS;
use super::*;
use crate::define::preset::{MessageFormat, Protocol, TurnEndRule};
use pinfold_core::talk::Permissions;
use std::time::Duration;

const EXAMPLE: &str = r#"
# for all
[policy]
crash_hard_limit = 5
backoff_initial = "250ms"
backoff_jitter = 0

[agents.claude.policy]
crash_hard_limit = 7
permissions = "deny"

[sessions.api.policy]
crash_hard_limit = 0
idle_after = "0s"
"#;

#[test]
fn a_session_goes_by_its_own_numbers_then_its_agents_then_those_for_all() {
    let config = Config::parse(EXAMPLE).unwrap();
    let limit = |agent, session| config.settings(agent, session).policy.crash_hard_limit;
    assert_eq!(limit("command", "web"), 5);
    assert_eq!(limit("claude", "web"), 7);
    assert_eq!(limit("claude", "api"), 0);
    let api = config.settings("claude", "api");
    assert_eq!(
        (api.policy.idle_after, api.policy.backoff_initial),
        (Duration::ZERO, Duration::from_millis(250))
    );
    assert_eq!((api.policy.permissions, api.policy.crash_soft_limit), (Permissions::Deny, 10));
    assert!(api.policy.backoff_jitter.abs() < f64::EPSILON);
}

#[test]
fn an_empty_file_means_the_defaults() {
    let settings = Config::parse("").unwrap().settings("command", "x");
    assert_eq!(settings, Settings::default());
    assert_eq!((settings.inbox_limit, settings.session_limit), (64 << 20, 4096));
}

#[test]
fn every_key_of_the_documentation_is_known_and_set() {
    // One of these fits each key and is not its default.
    let written = ["42", "\"42s\"", "\"42M\"", "0.42", "true", "false", "\"deny\"", "\"allow\""];
    for key in KEYS {
        let changes = |config: &Config| config.settings("command", "x") != Settings::default();
        let read = |text: &&str| Config::parse(&format!("[policy]\n{key} = {text}\n")).ok().filter(changes);
        let config = written.iter().find_map(read).unwrap_or_else(|| panic!("{key} takes none of them"));
        assert_eq!(config.policy.keys(), [*key]);
    }
}

const MAY_BE: &str = "`may` is a list of these: status, list, metrics, read, send, new, set, apply, act, restore, purge, attach, answer, rm, backup, reload, down";

/// A text, the wrong line in it, and the error.
const WRONG: &[(&str, usize, &str)] = &[
    (
        "[policy]\n\ncrash_hard_limt = 5",
        3,
        "there is no key `crash_hard_limt`; the nearest one is `crash_hard_limit`",
    ),
    ("[polcy]\n", 1, "there is no key `polcy`; the nearest one is `policy`"),
    ("[sessions.api]\nmode = \"always\"", 2, "there is no key `mode`; the nearest one is `policy`"),
    ("[policy]\ncrash_hard_limit = -1", 2, "`crash_hard_limit` is a number, 0 or more"),
    ("[policy]\ncrash_hard_limit = \"abc\"", 2, "`crash_hard_limit` is a number, 0 or more"),
    ("[policy]\ninbox_limit = 5", 2, "`inbox_limit` is a size in quotes, as in \"512M\" or \"2G\""),
    ("[policy]\nbackoff_jitter = 1.5", 2, "`backoff_jitter` is a part of one, from 0.0 to 1.0"),
    ("[policy]\nbackoff_jitter = nan", 2, "`backoff_jitter` is a part of one, from 0.0 to 1.0"),
    ("[policy]\npermissions = \"maybe\"", 2, "`permissions` is \"ask\", \"allow\" or \"deny\""),
    ("[policy]\nlimit_resume = 1", 2, "`limit_resume` is true or false"),
    ("policy = 3", 1, "a table is expected here"),
    ("[policy]\nmemory_sample = \"0s\"", 2, "`memory_sample` is at least \"100ms\""),
    ("stop_grace = \"1s\"", 1, "there is no key `stop_grace`; the nearest one is `policy.stop_grace`"),
    (
        "[sessions.api]\nstop_grace = \"1s\"",
        2,
        "there is no key `stop_grace`; the nearest one is `policy.stop_grace`",
    ),
    ("[agents.x]\ncomand = [\"x\"]", 2, "there is no key `comand`; the nearest one is `command`"),
    ("[agents.x]\ncommand = []", 2, "`command` names no program"),
    ("[agents.x]\ncommand = [\"\", \"-v\"]", 2, "`command` names no program"),
    (
        "[agents.x]\ncommand = \"x -v\"",
        2,
        "`command` is a list of words, as in [\"prog\", \"--flag\", \"{dir}\"]",
    ),
    (
        "[agents.x]\nresume = [\n\"x\",\n\"{vendor_sesion}\"]",
        4,
        "`resume` has an unknown placeholder in `{vendor_sesion}`; the nearest one is `{vendor_session}`",
    ),
    (
        "[agents.x]\nprotocol = \"json\"",
        2,
        "`protocol` is one of \"line\", \"exec\", \"stream-json\", \"codex\", \"acp\", \"pi\", \"scripted\"",
    ),
    ("[agents.x]\ninput = \"xml\"", 2, "`input` is one of \"line\", \"json\""),
    ("[agents.x]\nturns = 1", 2, "`turns` is one of \"line\", \"done\""),
    ("[log]\nlevel = \"loud\"", 2, "`level` is one of \"error\", \"warn\", \"info\", \"debug\", \"trace\""),
    ("[agents.x]\nmay = [\n\"read\",\n\"fly\"]", 4, MAY_BE),
    ("[agents.x]\nmay = \"read\"", 2, MAY_BE),
    ("agents = 3", 1, "a table is expected here"),
    ("[agents]\n\nx = 3", 3, "a table is expected here"),
    ("[[policy]]\n", 1, "a table is expected here"),
    (
        "[agents.x]\nidle_after = \"1s\"",
        2,
        "there is no key `idle_after`; the nearest one is `policy.idle_after`",
    ),
    (
        "[agents.command]\ncommand = [\"x\"]",
        1,
        "agent `command` runs what each session names; only its policy and `may` can be set here",
    ),
    (
        "[sessions.\"a b\".policy]",
        1,
        "`a b` is not a name: use 1 to 64 of a-z A-Z 0-9 . _ -, not starting with . or -",
    ),
];

#[test]
fn what_cannot_be_used_is_named_with_its_line_and_the_nearest_key() {
    for (text, line, problem) in WRONG {
        let error = Config::parse(text).unwrap_err();
        assert_eq!((error.line, error.problem.as_str()), (*line, *problem), "{text}");
    }
    let bare = Config::parse("[policy]\nidle_after = 5").unwrap_err();
    assert!(bare.problem.contains("250ms"), "{bare}");
    let unitless = Config::parse("[policy]\nidle_after = \"5\"").unwrap_err();
    assert!(unitless.problem.contains("needs a unit"), "{unitless}");
    assert_eq!(Config::parse("[policy]\nx = = 3").unwrap_err().line, 2);
}

#[test]
fn an_agent_of_ones_own_is_a_preset() {
    let text = "[agents.mine]\ncommand = [\"mine\", \"--in\", \"{dir}\", \"{print}\"]\n\
         resume = [\"mine\", \"--resume\", \"{vendor_session}\"]\nprotocol = \"stream-json\"\n\
         input = \"json\"\nturns = \"done\"\npolicy.stop_grace = \"3s\"\n";
    let config = Config::parse(text).unwrap();
    let mine = config.preset("mine").unwrap();
    assert_eq!(mine.command.unwrap(), ["mine", "--in", "{dir}", "{print}"]);
    assert_eq!(mine.resume.unwrap(), ["mine", "--resume", "{vendor_session}"]);
    assert_eq!(
        (mine.protocol, mine.input, mine.turns),
        (Protocol::StreamJson, MessageFormat::Json, TurnEndRule::Done)
    );
    assert_eq!(config.settings("mine", "x").policy.stop_grace, Duration::from_secs(3));
    let known: Vec<&str> = config.presets().map(|(name, _)| name).collect();
    assert!(["claude", "gemini", "mine"].iter().all(|name| known.contains(name)), "{known:?}");
    assert!(!known.contains(&"command"), "each session names its own");
    assert_eq!(config.preset("yours"), None);
    assert_eq!(config.preset("acp").map(|preset| preset.command), Some(None), "any program that speaks it");
    assert_eq!(config.preset("scripted"), None, "the protocol of tests");
}

#[test]
fn a_file_changes_what_it_names_of_a_shipped_agent() {
    let own = "[agents.claude]\ninteractive = [\"claude\", \"--model\", \"opus\"]\nenv = [\"MY_*\"]\n\
         set = { A = \"1\" }\npty = false\nattach = \"takeover\"\n\
         store = { variable = \"MINE\", default = \".mine\" }\n[agents.claude.policy]\nstop_grace = \"1s\"\n";
    let both = Config::parse(own).unwrap();
    let (claude, shipped) = (both.preset("claude").unwrap(), Config::default().preset("claude").unwrap());
    assert_eq!(claude.interactive.unwrap(), ["claude", "--model", "opus"]);
    assert_eq!((claude.env, claude.set.len()), (vec!["MY_*".to_owned()], 1));
    assert_eq!(claude.store.unwrap().variable, "MINE");
    assert_eq!((claude.command, claude.protocol), (shipped.command, Protocol::StreamJson));
    assert_eq!(both.settings("claude", "x").policy.stop_grace, Duration::from_secs(1));
    assert!(both.preset("pi").is_some(), "what the file does not name is as shipped");
}

#[test]
fn a_command_without_a_protocol_makes_an_agent_of_ones_own_whatever_its_name() {
    let own = |more: &str| {
        let config = Config::parse(&format!("[agents.claude]\ncommand = [\"/opt/claude\"]\n{more}")).unwrap();
        config.preset("claude").unwrap()
    };
    let alone = own("");
    assert_eq!((alone.protocol, alone.resume, alone.env.len()), (Protocol::Line, None, 0));
    let changed = own("protocol = \"stream-json\"\n");
    assert!(changed.resume.is_some() && !changed.env.is_empty());
    assert_eq!(changed.command.unwrap(), ["/opt/claude"]);
}

#[test]
fn the_documentation_has_every_key_with_its_default() {
    let page = include_str!("../../../../../docs/config.md");
    let block = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let documented = Config::parse(block).unwrap();
    assert_eq!(documented.settings("command", "x"), Settings::default());
    assert_eq!(documented.policy.keys(), KEYS, "all of them are in docs/config.md");
    let written = |key: &str| block.lines().any(|line| line.starts_with(&format!("{key} = ")));
    for key in ["command", "resume", "interactive", "protocol", "env", "set", "strip", "pty", "attach", "may"]
    {
        assert!(written(key), "{key} is not in docs/config.md");
    }
    for table in ["[agents.NAME]", "[agents.NAME.policy]", "[sessions.NAME.policy]"] {
        assert!(block.lines().any(|line| line.starts_with(table)), "{table} is not in docs/config.md");
    }
}

#[test]
fn a_file_that_is_no_text_names_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, b"[policy]\n\xff\n").unwrap();
    let LoadError::Wrong { source, .. } = load(&path).unwrap_err() else { panic!("it was read") };
    assert_eq!((source.line, source.problem.as_str()), (2, "this is not UTF-8 text"));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(load(&path).unwrap(), Config::default());
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(load(&path), Err(LoadError::Unreadable { .. })));
}

#[test]
fn retention_has_its_own_table_and_off_is_for_ever() {
    let retention = |text: &str| Config::parse(text).map(|config| config.retention());
    let day = Duration::from_secs(86_400);
    assert_eq!(retention(""), Ok(Retention::default()));
    let set = "[retention]\nevents = \"30d\"\nruns = \"off\"\nmessages = \"7d\"\nsize = \"2G\"\n";
    let expected =
        Retention { events: Some(30 * day), runs: None, messages: Some(7 * day), size: Some(2 << 30) };
    assert_eq!(retention(set), Ok(expected));
    assert_eq!(retention("[retention]\nevents = \"0s\"\n").unwrap().events, None, "no limit");
    for (text, problem) in [
        ("event = \"1d\"", "there is no key `event`; the nearest one is `events`"),
        ("events = 400", "`events` is a duration in quotes"),
        ("size = \"1\"", "`size` is a size or \"off\""),
    ] {
        let error = retention(&format!("[retention]\n{text}\n")).unwrap_err();
        assert!(error.line == 2 && error.problem.contains(problem), "{error:?}");
    }
}

#[test]
fn what_a_program_may_do_to_a_terminal_is_said_in_words_that_are_known() {
    use pinfold_terminal::Allow;
    assert_eq!(Config::parse("").unwrap().attach(), Allow::default());
    assert_eq!(Config::parse("[attach]\nallow = []\n").unwrap().attach(), Allow::NOTHING);
    let clipboard = Config::parse("[attach]\nallow = [\"clipboard\"]\n").unwrap().attach();
    assert_eq!(clipboard, Allow { clipboard: true, ..Allow::NOTHING });
    for (text, line, said) in [
        ("[attach]\nalow = []\n", 2, "`allow`"),
        ("[attach]\nallow = [\n\"clipbord\"]\n", 3, "`clipboard`"),
        ("[attach]\nallow = \"title\"\n", 2, "list of words"),
        ("[attach]\nallow = [1]\n", 2, "list of words"),
    ] {
        let error = Config::parse(text).unwrap_err();
        assert!(error.line == line && error.problem.contains(said), "{text:?}: {error}");
    }
}

#[test]
fn an_agent_that_runs_once_can_read_its_message_and_a_wrong_word_is_answered_with_the_right_ones() {
    let agent = "[agents.x]\ncommand = [\"x\"]\nprotocol = \"exec\"\n[agents.x.exec]\nprompt = ";
    assert!(Config::parse(&format!("{agent}\"stdin\"")).is_ok());
    for wrong in ["\"pipe\"", "3"] {
        let error = Config::parse(&format!("{agent}{wrong}")).unwrap_err();
        assert_eq!((error.line, error.problem.as_str()), (5, "`prompt` is `argv` or `stdin`"), "{wrong}");
    }
}

#[test]
fn the_terminal_ui_is_told_its_keys_and_a_wrong_word_is_answered_with_the_nearest() {
    let tui = |text: &str| Config::parse(text).unwrap().tui();
    let usual = tui("");
    assert!(usual.mouse && usual.keys.is_empty() && usual.notify == ["bell", "title"]);
    let told = tui(
        "[tui]\nmouse = false\ncolors = \"16\"\nnotify = []\n[tui.keys]\nstop = \"X\"\nquit = [\"q\", \"ctrl-c\"]\n",
    );
    assert!(!told.mouse && told.notify.is_empty() && told.colors == Colors::Sixteen);
    assert_eq!((&told.keys["stop"][..], told.keys["quit"].len()), (&["X".to_owned()][..], 2));
    let rows = [
        ("[tui]\nmose = true\n", 2, "`mouse`"),
        ("[tui]\nnotify = [\"bel\"]\n", 2, "`bell`"),
        ("[tui.keys]\nstopp = \"x\"\n", 2, "`stop`"),
        ("[tui.keys]\nstop = 3\n", 2, "a key in quotes"),
        ("[tui]\ncolors = \"255\"\n", 2, "\"256\""),
    ];
    for (text, line, named) in rows {
        let error = Config::parse(text).unwrap_err();
        assert!(error.line == line && error.problem.contains(named), "{text}: {error}");
    }
}

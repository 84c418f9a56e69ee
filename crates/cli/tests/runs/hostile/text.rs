//! Other people's text: what a terminal would obey is made visible, whichever verb prints it; and the output
//! of a terminal is shown as its screen showed it.

use crate::teller;
use crate::tty::Tty;
use crate::world::{Answer, Following, World, verbs_in};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// Everything that a name can do to a terminal: colours, a title, the bell, a query, C1, DEL, other lines,
/// another writing direction.
const HOSTILE: &str = "e\x1b[31m\x1b]0;own\x07\x1b[c\u{9b}6n\u{85}\x7f\r\nforged: yes\t\u{202e}x";
/// Every verb has printed everything within this time.
const SOON: Duration = crate::processes::PATIENCE;

/// Text that a terminal would obey, or that would pass for a line of ours.
fn obeyed(text: &str) -> Option<String> {
    let control = |character: char| {
        (character.is_control() && character != '\n')
            || ('\u{202a}'..='\u{202e}').contains(&character)
            || ('\u{2066}'..='\u{2069}').contains(&character)
    };
    let line = text.lines().find(|line| line.contains(control) || line.starts_with("forged"))?;
    Some(format!("{line:?}"))
}

/// A world in which every name is hostile.
struct Place {
    world: World,
    work: PathBuf,
    /// The verbs that were tried.
    tried: BTreeSet<String>,
}

impl Place {
    fn new() -> Place {
        let mut world = World::new();
        world.home = world.path(HOSTILE).join("home");
        let work = world.path(HOSTILE).join("work");
        std::fs::create_dir_all(&work).unwrap();
        Place { world, work, tried: BTreeSet::new() }
    }

    /// Runs the command with and without `--json`; neither may pass anything on.
    fn try_both(&mut self, words: &[&str]) -> Answer {
        let json = self.try_one(&[&["--json"], words].concat());
        assert!(
            json.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()),
            "{words:?} is not JSON: {json:?}"
        );
        self.try_one(words)
    }

    fn try_one(&mut self, words: &[&str]) -> Answer {
        self.tried.extend(words.iter().find(|word| !word.starts_with("--")).map(|verb| (*verb).to_owned()));
        let mut command = self.world.command(words);
        command.env("TMPDIR", self.world.path(HOSTILE));
        let answer = crate::world::finish_within(&mut command, SOON);
        for said in [&answer.stdout, &answer.stderr] {
            assert_eq!(obeyed(said), None, "{words:?}");
        }
        answer
    }

    /// A lock held under a hostile key, for a hostile reason, by a hostile command.
    fn hold(&self, resource: &str) -> Following {
        let script = "echo held; exec sleep 1000";
        let words = ["lock", resource, "--reason", HOSTILE, "--", "sh", "-c", script, HOSTILE];
        let held = self.world.follow(&words);
        held.until("the lock", |line| line == "held");
        held
    }
}

/// The verbs of the program.
fn verbs(world: &World) -> BTreeSet<String> {
    verbs_in(&world.ok(&["--help"]).stdout).into_iter().collect()
}

/// What is tried before and while a lock is held: one verb per line, with hostile text wherever it takes any.
const BEFORE: &str = "up
    new a --dir {work} -- sh -c {script} {bad}
    new tagged --tag {bad} -- sleep 1000
    new twin --dir {work} -- sleep 1000
    new chat --mode on-demand --turns done -- sh -c {reads}
    new none --dir {work}/none -- sleep 1000
    new none -- /{bad}
    set a --memory {bad}";
const MEANWHILE: &str = "ls
    ls --all --tag {bad}
    ls --state {bad}
    show a
    show twin
    tree
    why a
    why twin
    status
    metrics
    tui --frame 80x24
    tui --frame {bad}
    usage
    usage --by {bad}
    accounts
    accounts --resume {bad}
    send chat {bad} --key {bad}
    send chat again --wait 1s
    inbox chat
    inbox chat --retry {bad}
    inbox {bad}
    events
    events --since {bad}
    locks
    who {work}
    who {work}/none
    lock {key} -- true
    lock {work} -- true
    lock key:free -- /{bad}
    run here --dir {work} -- true
    run here --tag {bad} -- /{bad}
    unlock {key}
    unlock {key}none --kill
    agents
    logs a --run {bad}
    wait a --for {bad}
    attach none
    start twin
    stop a --timeout {bad}
    purge --mode {bad}
    purge --dry-run
    answer {bad} allow {bad}
    rm {bad}
    rm {bad} a --yes
    rename a {bad}
    rename {bad} b
    search {bad}
    search work --session {bad}
    export
    export {bad}
    apply {bad}
    reload
    service install --print --manager systemd
    service {bad}
    completions {bad}
    man {bad}
    help {bad}
    version
    backup {work}/copy{bad}
    backup {work}/none/{bad}
    restore-backup {bad}
    unlock {key} --kill";

impl Place {
    /// Tries the verbs of a table.
    fn try_all(&mut self, table: &str) {
        let fill = |word: &str| {
            let word = word.replace("{work}", self.work.to_str().unwrap()).replace("{key}", "key:{bad}");
            word.replace("{bad}", HOSTILE)
                .replace("{script}", "exec sleep 1000")
                .replace("{reads}", "read -r l; exit 3")
        };
        let lines: Vec<Vec<String>> =
            table.lines().map(|line| line.split_whitespace().map(fill).collect()).collect();
        for words in lines {
            self.try_both(&words.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

#[test]
fn no_verb_passes_on_what_a_terminal_would_obey() {
    let mut place = Place::new();
    place.try_all(BEFORE);
    let held = place.hold(&format!("key:{HOSTILE}"));
    for verb in
        ["show", "why", "attach", "interrupt", "logs", "start", "stop", "restart", "archive", "restore"]
    {
        place.try_both(&[verb, HOSTILE]);
        place.try_both(&[verb, "a", &format!("--{HOSTILE}")]);
    }
    place.try_all(MEANWHILE);
    drop(held);
    place.try_all("down\nstatus");
    let broken = "[agents.\"\\u001b[31m\"]\n\"\\u009b\" = 1\n";
    std::fs::write(place.world.home.join("config.toml"), broken).unwrap();
    place.try_all("agents\nup\n--home {bad} status");
    place.try_one(&["demo"]);
    let verbs = verbs(&place.world);
    let untried: Vec<&String> = verbs.difference(&place.tried).collect();
    assert!(untried.is_empty(), "{untried:?} were not tried");
}

#[test]
fn what_cannot_be_shown_is_written_as_json_writes_it() {
    let place = Place::new();
    let work = place.work.to_str().unwrap();
    place.world.ok(&["new", "a", "--dir", work, "--", "sleep", "1000"]);
    let shown =
        "/e\\u001b[31m\\u001b]0;own\\u0007\\u001b[c\\u009b6n\\u0085\\u007f\\r\\nforged: yes\\t\\u202ex/work";
    let text = place.world.ok(&["show", "a"]).stdout;
    assert!(
        text.lines().any(|line| line.trim_start().starts_with("Directory: ") && line.contains(shown)),
        "{text}"
    );
    let json = place.world.ok(&["--json", "show", "a"]);
    assert_eq!(json.json()["dir"], work, "the same for programs");
    assert!(json.stdout.contains(shown), "{}", json.stdout);
}

#[test]
fn a_status_that_an_agent_tells_is_shown_and_not_obeyed() {
    let world = World::new();
    let status = teller::says(&format!("STATUS={}", HOSTILE.replace('\n', " ")));
    let script = format!("{}; exec sleep 1000", teller::words().join(" "));
    world.ok(&["new", "a", "--env", &status, "--", "sh", "-c", &script]);
    let until = std::time::Instant::now() + SOON;
    while world.show("a")["status"].is_null() {
        assert!(std::time::Instant::now() < until, "no status: {}", world.show("a"));
    }
    for words in
        [&["show", "a"] as &[&str], &["why", "a"], &["ls"], &["--json", "show", "a"], &["--json", "ls"]]
    {
        let answer = world.ok(words);
        assert_eq!(obeyed(&answer.stdout), None, "{words:?}");
    }
}

/// What a person sees who runs a verb in a terminal.
fn on_terminal(world: &World, words: &[&str]) -> String {
    const OVER: &str = "<over>\r\n";
    let mut command = world.command(&[]);
    command.env("NO_COLOR", "1");
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "\"$0\" \"$@\"; echo '<over>'; read -r _"])
        .arg(&world.binary)
        .args(words)
        .current_dir(&world.root);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let mut tty = Tty::start(shell, 24, 80);
    assert!(tty.comes_to(OVER), "{words:?} does not end: {}", tty.contents());
    let all = tty.everything();
    all.strip_suffix(OVER).unwrap_or(&all).replace("\r\n", "\n")
}

#[test]
fn nothing_is_passed_on_to_a_terminal_either() {
    let place = Place::new();
    let work = place.work.to_str().unwrap();
    place.world.ok(&["new", "a", "--dir", work, "--", "sh", "-c", "exec sleep 1000", HOSTILE]);
    for words in
        [&["show", "a"] as &[&str], &["ls"], &["locks"], &["who", work], &["lock", work, "--", "true"]]
    {
        assert_eq!(obeyed(&on_terminal(&place.world, words)), None, "{words:?}");
    }
}

/// Output with colours, queries and a bell.
const COLOURFUL: &str =
    r"printf '\033[1;31mred\033[m, \033]0;title\007\033[c\033[6n\033[>0q\033]11;?\007plain\a\tend\n'";

#[test]
fn the_output_of_an_agent_is_text_on_a_terminal_and_untouched_in_a_pipe() {
    let world = World::new();
    let script = format!("{COLOURFUL}; exec sleep 1000");
    world.ok(&["new", "a", "--", "sh", "-c", &script]);
    world.printed("a", "\x1b[1;31mred");
    let printed = "\x1b[1;31mred\x1b[m, \x1b]0;title\x07\x1b[c\x1b[6n\x1b[>0q\x1b]11;?\x07plain\x07\tend\n";
    assert_eq!(world.ok(&["logs", "a"]).stdout, printed);
    assert_eq!(on_terminal(&world, &["logs", "a"]), "red, plain\\u0007\tend\n");
    assert_eq!(on_terminal(&world, &["logs", "a", "--raw"]), printed);
}

#[test]
fn an_answer_is_text_on_a_terminal_and_untouched_in_a_pipe() {
    let world = World::new();
    let answers = r#"while read -r line; do printf '%s\n' 'PINFOLD_DONE "\u001b[31mred\u001b[m\nand \u009bmore"'; done"#;
    world.ok(&["new", "chat", "--mode", "on-demand", "--turns", "done", "--", "sh", "-c", answers]);
    assert_eq!(
        world.ok(&["send", "chat", "x", "--wait", "20s"]).stdout,
        "\x1b[31mred\x1b[m\nand \u{9b}more\n"
    );
    let seen = on_terminal(&world, &["send", "chat", "x", "--wait", "20s"]);
    assert_eq!(seen, "red\nand \\u009bmore\n");
}

/// A session whose script draws on its terminal; everything is printed once the file `ready` exists.
fn pty(script: &str) -> World {
    let world = World::new();
    let script = format!("stty -echo; {script}; : >\"$ROOT/ready\"; exec sleep 1000");
    world.ok(&["new", "t", "--pty", "--env", "ROOT", "--", "sh", "-c", &script]);
    let until = std::time::Instant::now() + SOON;
    while !world.path("ready").exists() {
        assert!(std::time::Instant::now() < until, "it does not print");
    }
    world
}

/// Waits until the log has what was printed before; the shim reads before it answers.
fn logged(world: &World, wanted: &str) {
    let until = std::time::Instant::now() + SOON;
    while !world.ok(&["--json", "logs", "t"]).stdout.contains(wanted) {
        assert!(std::time::Instant::now() < until, "`{wanted}` is not logged");
    }
}

/// Progress on one line, a frame painted twice, queries, a title.
const PAINTS: &str = r"printf 'one\033[c\033[6n\033[>0q\033]11;?\007\n10%%\r50%%\r\033[32m100%%\033[m\n\033]0;title\007';
    printf 'first frame\nstatus: busy\n\033[2A\033[Jsecond frame\nstatus: done\nlast'";

#[test]
fn the_log_of_a_terminal_is_what_its_screen_showed() {
    let world = pty(PAINTS);
    logged(&world, "last");
    let text = "one\n100%\nsecond frame\nstatus: done\nlast\n";
    assert_eq!(world.ok(&["logs", "t"]).stdout, text);
    assert_eq!(on_terminal(&world, &["logs", "t"]), text);
    assert_eq!(world.ok(&["logs", "t", "-n", "2"]).stdout, "status: done\nlast\n");
    let lines = world.json(&["logs", "t"]);
    assert_eq!((&lines[1]["text"], &lines[1]["stream"]), (&"100%".into(), &"stdout".into()));
    let raw = world.ok(&["logs", "t", "--raw"]).stdout;
    assert!(raw.contains("one\x1b[c\x1b[6n\x1b[>0q") && raw.contains("10%\r50%"), "{raw:?}");
}

#[test]
fn a_terminal_is_followed_line_by_line_as_its_lines_come_to_rest() {
    let world = pty(PAINTS);
    let following = world.follow(&["logs", "t", "-f"]);
    let came: Vec<String> = (0..4).map(|_| following.until("a line", |_| true)).collect();
    assert_eq!(came, ["one", "100%", "second frame", "status: done"]);
}

#[test]
fn what_scrolled_away_is_in_the_log_of_a_terminal() {
    let world =
        pty("i=0; while test $i -lt 100; do i=$((i+1)); printf '\\033[32mline %d\\033[m\\n' $i; done");
    logged(&world, "line 100");
    let wanted: Vec<String> = (1..=100).map(|number| format!("line {number}")).collect();
    assert_eq!(world.ok(&["logs", "t"]).stdout.lines().collect::<Vec<_>>(), wanted);
    assert_eq!(world.ok(&["logs", "t", "-n", "1"]).stdout, "line 100\n");
    let following = world.follow(&["logs", "t", "-f", "-n", "3"]);
    assert_eq!(following.until("a line", |_| true), "line 98");
}

#[test]
fn a_full_screen_program_is_shown_as_it_stands() {
    let world = pty(r"printf 'before\n\033[?1049h\033[Hmenu\033[2;1Hitem'");
    logged(&world, "item");
    assert_eq!(world.ok(&["logs", "t"]).stdout, "before\nmenu\nitem\n");
}

/// Configures a program that takes `--version` for an ordinary argument.
fn preset(world: &World, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(&world.home).unwrap();
    let program = world.path("program");
    let mut file = std::fs::File::create(&program).unwrap();
    file.write_all(format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
    let text = format!("[agents.odd]\ncommand = [\"{}\"]\n", program.display());
    std::fs::write(world.home.join("config.toml"), text).unwrap();
}

#[test]
fn agents_ends_what_it_started_to_ask_for_its_version() {
    let world = World::new();
    preset(&world, "sleep 1000 & echo $! >\"$ROOT/child\"; cat; exec sleep 1000");
    let mut command = world.command(&["agents"]);
    let answer = crate::world::finish_within(command.stdin(Stdio::null()), SOON);
    assert_eq!(answer.code, 0, "{answer:?}");
    let child: u32 = std::fs::read_to_string(world.path("child")).unwrap().trim().parse().unwrap();
    let over = crate::processes::Held::open(child).is_none_or(|held| held.ends_within(SOON));
    assert!(over, "a child of what was asked lives on");
}

#[test]
fn agents_waits_for_no_child_that_keeps_the_pipe() {
    let world = World::new();
    preset(&world, "setsid sleep 1000 & echo odd 1.2; exit 0");
    let answer = world.within(SOON, &["--json", "agents"]);
    let agents = answer.json();
    let odd = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "odd").unwrap();
    assert_eq!(odd["found"], world.path("program").to_str().unwrap(), "{answer:?}");
}

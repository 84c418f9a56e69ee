//! Agents of protocol `exec`: one run for each message, and the end of the run ends the turn.

use crate::world::World;
use std::os::unix::fs::PermissionsExt;

/// The agents of these tests; `$1` is the message where it comes as an argument.
const AGENTS: [(&str, &str, &str); 7] = [
    ("argument", "echo \"you said: $1\"; echo and more", ""),
    ("input", "printf 'got: '; cat", "prompt = \"stdin\""),
    ("long", "head -c 34603008 /dev/zero | tr '\\0' x; echo; echo more", ""),
    ("deaf", "echo deaf", "prompt = \"stdin\""),
    ("fails", "echo part; echo 'oh no' >&2; exit 3", ""),
    (
        "json",
        r#"echo '{"type":"item","text":"read"}'; echo '{"type":"done"}'"#,
        r#"reads = [{ when = { "/type" = "item" }, answer = "/text" }, { when = { "/type" = "done" }, ends = "done" }]"#,
    ),
    (
        "slow",
        "echo $PINFOLD_RUN >>\"$ROOT/begun\"; echo a; until test -e \"$ROOT/go\"; do sleep 0.02; done; echo \"$1\"",
        "",
    ),
];

impl World {
    /// Configures these agents, with more lines of `config.toml`.
    fn with_agents(&self, more: &str) {
        std::fs::create_dir_all(&self.home).unwrap();
        std::fs::set_permissions(&self.home, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut config = more.to_owned();
        for (name, script, exec) in AGENTS {
            let script = format!("{}{script}", crate::world::GUARD);
            std::fs::write(self.path(name), script).unwrap();
            let file = self.path(name).display().to_string();
            let words = if exec.contains("stdin") { "" } else { ", \"{prompt}\"" };
            config += &format!(
                "[agents.{name}]\nprotocol = \"exec\"\ncommand = [\"sh\", \"{file}\"{words}]\n[agents.{name}.exec]\n{exec}\n"
            );
        }
        std::fs::write(self.home.join("config.toml"), config).unwrap();
    }

    /// Creates a session of one of these agents, with its name.
    fn made(&self, agent: &str) {
        let dir = self.path(&format!("{agent}.d"));
        std::fs::create_dir_all(&dir).unwrap();
        self.ok(&["new", agent, "--agent", agent, "--dir", &dir.display().to_string(), "--env", "ROOT"]);
    }

    fn asked(&self, agent: &str, text: &str) -> String {
        self.ok(&["send", agent, text, "--wait", "240s"]).stdout
    }

    fn begun(&self) -> usize {
        std::fs::read_to_string(self.path("begun")).unwrap_or_default().lines().count()
    }
}

#[test]
fn what_an_agent_that_runs_for_each_message_prints_is_the_answer() {
    let world = World::new();
    world.with_agents("");
    let odd = "two\nlines \"quoted\" 'too' $HOME `id` {dir}";
    for (agent, answer) in [
        ("argument", format!("you said: {odd}\nand more\n")),
        ("input", format!("got: {odd}\n")),
        ("deaf", "deaf\n".into()),
        ("json", "read\n".into()),
    ] {
        world.made(agent);
        assert_eq!(world.asked(agent, odd), answer, "{agent}");
        assert_eq!(world.events_of(agent, "run_started").len(), 1, "{agent}");
        assert_eq!(world.show(agent)["state"], "idle");
    }
    world.check_history();
}

#[test]
fn twenty_messages_in_a_row_are_twenty_runs_and_no_reason_to_wait() {
    let world = World::new();
    world.with_agents("[policy]\nclean_limit = 2\nbackoff_initial = \"1h\"\nbackoff_max = \"2h\"\n");
    for agent in ["argument", "input", "fails"] {
        world.made(agent);
        for number in 0..20 {
            world.ok(&["send", agent, &number.to_string()]);
        }
        let settled = || {
            let inbox = world.show(agent)["inbox"].clone();
            (inbox["done"].as_u64()? + inbox["failed"].as_u64()? == 20).then_some(inbox)
        };
        let inbox = world.until("all were worked off", settled);
        assert_eq!(inbox["failed"], if agent == "fails" { 20 } else { 0 });
        assert_eq!(world.events_of(agent, "run_started").len(), 20);
        for kind in ["backoff", "health_warn"] {
            assert_eq!(world.events_of(agent, kind).len(), 0, "{agent} {kind}");
        }
    }
    world.check_history();
}

#[test]
fn a_message_whose_file_is_gone_fails_before_an_agent_is_started_for_it() {
    let world = World::new();
    world.with_agents("");
    world.made("argument");
    let (here, gone) = (world.path("here"), world.path("gone"));
    [&here, &gone].into_iter().for_each(|file| std::fs::write(file, "words").unwrap());
    let (here, gone) = (here.display().to_string(), gone.display().to_string());
    assert_eq!(
        world.ok(&["send", "argument", "read", "--file", &here, "--wait", "240s"]).stdout,
        format!("you said: read\n@{here}\nand more\n")
    );
    world.ok(&["stop", "argument"]);
    let send = |file: &str| world.ok(&["send", "argument", "read", "--file", file]).stdout.trim().to_owned();
    let (first, second, third) = (send(&gone), send(&gone), send(&here));
    std::fs::remove_file(&gone).unwrap();
    world.ok(&["start", "argument"]);
    world.message("argument", &third, "done");
    for lost in [first, second] {
        let failed = world.message("argument", &lost, "failed");
        let reason = failed["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("file `{gone}` does not exist any more")), "{failed}");
    }
    assert_eq!(world.events_of("argument", "run_started").len(), 2, "for those that are done, and no others");
    // With nothing left it is not started, and takes the next one.
    std::fs::write(&gone, "words").unwrap();
    world.ok(&["stop", "argument"]);
    let last = send(&gone);
    std::fs::remove_file(&gone).unwrap();
    let start = world.run(&["start", "argument"]);
    assert!(start.code == 1 && start.stderr.contains("was not started"), "{start:?}");
    world.message("argument", &last, "failed");
    assert_eq!(world.asked("argument", "hello"), "you said: hello\nand more\n");
    assert_eq!(world.events_of("argument", "run_started").len(), 3);
    world.check_history();
}

#[test]
fn a_file_that_its_agent_removes_fails_nothing() {
    let world = World::new();
    world.with_agents("");
    world.made("slow");
    let file = world.path("mine");
    std::fs::write(&file, "words").unwrap();
    let words = ["send", "slow", "eat", "--file", &file.display().to_string()];
    let id = world.ok(&words).stdout.trim().to_owned();
    world.until("its agent has it", || (world.begun() == 1).then_some(()));
    std::fs::remove_file(&file).unwrap();
    world.kill_daemon();
    world.ok(&["up"]);
    std::fs::write(world.path("go"), "").unwrap();
    world.message("slow", &id, "done");
    assert_eq!(world.begun(), 1);
}

#[test]
fn an_exit_with_an_error_is_a_failed_turn_and_the_next_message_is_told() {
    let world = World::new();
    world.with_agents("");
    world.made("fails");
    for _ in 0..3 {
        let answer = world.run(&["send", "fails", "hello", "--wait", "240s"]);
        assert_eq!(answer.code, 1);
        assert!(answer.stderr.contains("it exited with 3: `oh no`"), "{}", answer.stderr);
    }
    let reason = &world.inbox("fails")[0]["reason"];
    assert_eq!(reason, "it exited with 3: `oh no`");
    assert_eq!(world.events_of("fails", "message_failed")[0]["text"], *reason);
    assert!(world.ok(&["inbox", "fails"]).stdout.contains("turn failed: it exited with 3: `oh no`"));
    let shown = world.show("fails");
    assert_eq!((&shown["state"], &shown["crashes"]), (&"idle".into(), &0.into()));
    assert_eq!(world.events_of("fails", "run_started").len(), 3);
}

#[test]
fn a_line_that_is_too_long_to_be_read_is_the_reason_that_is_told() {
    let world = World::new();
    world.with_agents("");
    world.made("long");
    let answer = world.run(&["send", "long", "hello", "--wait", "240s"]);
    assert_eq!(answer.code, 1);
    assert!(answer.stderr.contains("a line of its output has more than 32 MiB"), "{}", answer.stderr);
}

#[test]
fn a_message_that_cannot_be_an_argument_is_refused_and_standard_input_takes_it() {
    let world = World::new();
    world.with_agents("");
    world.made("argument");
    world.made("input");
    let long = "x".repeat(200_000);
    let file = world.path("long");
    std::fs::write(&file, &long).unwrap();
    let send = |agent: &str| {
        let mut command = world.command(&["send", agent, "-", "--wait", "240s"]);
        command.stdin(std::fs::File::open(&file).unwrap());
        crate::world::finish(&mut command)
    };
    let refused = send("argument");
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("no more than 120 KiB"), "{}", refused.stderr);
    assert!(refused.stderr.contains("prompt = \"stdin\""), "{}", refused.stderr);
    assert_eq!(send("input").stdout, format!("got: {long}\n"));
    std::fs::write(&file, "x".repeat(119_000)).unwrap();
    assert_eq!(send("argument").code, 0);
    std::fs::write(&file, "a\0b").unwrap();
    assert_eq!(send("argument").code, 2);
}

#[test]
fn an_agent_without_a_place_for_its_message_is_refused() {
    let world = World::new();
    world.with_agents("[agents.none]\nprotocol = \"exec\"\ncommand = [\"true\"]\n");
    let refused = world.run(&["new", "none", "--agent", "none"]);
    assert_eq!(refused.code, 78);
    assert!(refused.stderr.contains("{prompt}") && refused.stderr.contains("stdin"), "{}", refused.stderr);
    assert!(world.sessions().is_empty());
}

#[test]
fn a_run_outlives_the_daemon_and_what_it_printed_is_the_answer() {
    let world = World::new();
    world.with_agents("");
    world.made("slow");
    for round in 1..=2 {
        let id = world.ok(&["send", "slow", "survives"]).stdout.trim().to_owned();
        world.until("it began", || (world.begun() == round).then_some(()));
        world.kill_daemon();
        if round == 2 {
            world.ok(&["ls"]);
        }
        std::fs::write(world.path("go"), "").unwrap();
        assert_eq!(world.message("slow", &id, "done")["answer"], "a\nsurvives");
        std::fs::remove_file(world.path("go")).unwrap();
    }
    assert_eq!(world.begun(), 2, "each message had one run");
    world.check_history();
}

#[test]
fn an_interrupt_ends_the_run_and_a_stop_keeps_the_message() {
    let world = World::new();
    world.with_agents("");
    world.made("slow");
    let interrupted = world.ok(&["send", "slow", "one"]).stdout.trim().to_owned();
    world.message("slow", &interrupted, "delivered");
    world.ok(&["interrupt", "slow"]);
    assert_eq!(world.message("slow", &interrupted, "failed")["failure"], "interrupted");
    let kept = world.ok(&["send", "slow", "two"]).stdout.trim().to_owned();
    world.message("slow", &kept, "delivered");
    world.ok(&["stop", "slow"]);
    assert_eq!(world.message("slow", &kept, "queued")["tries"], 0);
    std::fs::write(world.path("go"), "").unwrap();
    world.ok(&["start", "slow"]);
    let done = world.message("slow", &kept, "done");
    assert!(done["answer"].as_str().unwrap().contains("delivered again"), "{done}");
    assert_eq!(world.within(crate::processes::PATIENCE, &["start", "slow"]).code, 0, "nothing is to be run");
    assert_eq!(world.show("slow")["state"], "idle");
    world.check_history();
}

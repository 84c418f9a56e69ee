//! Mistakes that a new user makes, through the real binary: each is named, with what to do instead, and
//! creates nothing. `mistakes::each_mistake_is_named`, beside the code, has those of the command line alone.

use crate::world::World;
use serde_json::json;

/// A wrong line, its exit code, and what must be said about it.
struct Mistake {
    words: &'static [&'static str],
    code: i32,
    says: &'static [&'static str],
}

const fn mistake(words: &'static [&'static str], code: i32, says: &'static [&'static str]) -> Mistake {
    Mistake { words, code, says }
}

const MISTAKES: [Mistake; 26] = [
    // A file in place of a directory, a directory that does not exist, and a folder in place of a program.
    mistake(
        &["new", "x", "--dir", "notes.txt", "--", "cat"],
        78,
        &["it is a file, not a directory", "is where it stands"],
    ),
    mistake(&["new", "x", "--dir", "nowhere", "--", "cat"], 78, &["does not exist", "mkdir -p /"]),
    mistake(&["new", "x", "--", "./folder"], 78, &["`./folder` is a directory", "--dir ./folder"]),
    // A script that is not executable yet, and lines for a shell.
    mistake(
        &["new", "x", "--", "./script.sh"],
        78,
        &["may not be executed", "chmod +x ./script.sh", "-- sh ./script.sh"],
    ),
    mistake(&["new", "x", "--", "make && ./run"], 78, &["-- sh -c 'make && ./run'"]),
    mistake(&["new", "x", "--", "KEY=value", "cat"], 78, &["`--env KEY=...` sets a variable"]),
    // The program's own options before the `--`, and a program in place of a verb.
    mistake(&["new", "sh", "--login"], 2, &["put `--` before the command: pinfold new -- sh --login"]),
    mistake(&["sleep", "10"], 2, &["there is no verb `sleep`", "pinfold new -- sleep 10"]),
    mistake(&["api"], 2, &["`api` is a session", "pinfold show api"]),
    // Numbers without units, and units without numbers.
    mistake(&["new", "x", "--memory", "2000", "--", "cat"], 2, &["`2000` needs a unit", "512M"]),
    mistake(&["new", "x", "--idle", "5", "--", "cat"], 2, &["`5` needs a unit", "10s"]),
    mistake(&["send", "api", "hello", "--wait", "30"], 2, &["`30` needs a unit", "--wait 30s"]),
    mistake(
        &["events", "--since", "yesterday"],
        2,
        &["is not a duration, time or sequence number", "--since 5m"],
    ),
    // Words that are nearly right.
    mistake(&["new", "x", "--mode", "allways", "--", "cat"], 2, &["mode `allways` is not known", "always"]),
    mistake(
        &["new", "x", "--agent", "claud"],
        78,
        &["no agent `claud` is known", "the nearest one is `claude`"],
    ),
    mistake(&["ls", "--state", "runing"], 2, &["there is no state `runing`", "running"]),
    mistake(&["wait", "api", "--for", "done"], 2, &["there is no state `done`", "stopped"]),
    mistake(&["service", "instal"], 2, &["pinfold service install"]),
    mistake(&["new", "my agent", "--", "cat"], 2, &["`my agent` is not a name", "a-z A-Z 0-9"]),
    // All of them, none of them, or something missing.
    mistake(&["stop", "--all"], 2, &["pinfold stop $(pinfold ls -q)"]),
    mistake(&["stop", "all"], 1, &["there is no session `all`", "$(pinfold ls -q)"]),
    mistake(&["stop"], 2, &["which one?", "pinfold ls"]),
    mistake(&["send", "api"], 2, &["pinfold send api 'TEXT'"]),
    mistake(&["set", "api"], 2, &["no change is given for `api`", "pinfold help set"]),
    mistake(&["rm", "api"], 2, &["for good", "`--yes` does it"]),
    mistake(
        &["new", "x", "--env", "NO_SUCH_KEY", "--", "cat"],
        2,
        &["`NO_SUCH_KEY` is not set here", "--env NO_SUCH_KEY=VALUE"],
    ),
];

#[test]
fn a_new_users_mistakes_are_named_and_create_nothing() {
    let world = World::new();
    std::fs::write(world.root.join("notes.txt"), "notes\n").unwrap();
    std::fs::write(world.root.join("script.sh"), "echo hello\n").unwrap();
    std::fs::create_dir(world.root.join("folder")).unwrap();
    world.ok(&["new", "api", "--mode", "on-demand", "--", "cat"]);
    let before = world.json(&["ls", "-a"]);
    for Mistake { words, code, says } in &MISTAKES {
        let answer = world.run(words);
        assert_eq!(answer.code, *code, "{words:?}: {answer:?}");
        assert_eq!(answer.stdout, "", "{words:?}");
        for said in *says {
            assert!(answer.stderr.contains(said), "{words:?} does not say `{said}`: {answer:?}");
        }
        let object = world.run(&[&["--json"], *words].concat()).error();
        assert!(object["message"].is_string() && object["kind"].is_string(), "{words:?}: {object}");
    }
    let names = |list: &serde_json::Value| {
        list.as_array().unwrap().iter().map(|one| one["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&world.json(&["ls", "-a"])), names(&before));
    assert_eq!(names(&before), [json!("api")]);
}

#[test]
fn a_session_that_is_not_there_does_not_hide_the_others() {
    let world = World::new();
    for name in ["a", "b"] {
        world.ok(&["new", name, "--", "sh", "-c", "echo here; exec sleep 100000"]);
        world.printed(name, "here");
    }
    let answer = world.run(&["logs", "a", "nope", "b"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert_eq!(answer.stdout, "a    | here\nb    | here\n");
    assert_eq!(answer.stderr.matches("there is no session `nope`").count(), 1, "{answer:?}");
    let array = world.run(&["--json", "logs", "a", "nope"]).json();
    assert_eq!((&array[0]["text"], &array[1]["session"]), (&json!("here"), &json!("nope")), "{array}");
    let mut command = world.command(&["logs", "-f", "a", "nope"]);
    let mut following =
        command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let lines = crate::lines::Lines::of(following.stderr.take().unwrap());
    lines.until("the one that is not there, at once", |line| line.contains("there is no session `nope`"));
    _ = following.kill();
    _ = following.wait();
}

#[test]
fn set_says_what_it_did() {
    let world = World::new();
    world.ok(&["new", "a", "--", "sleep", "100000"]);
    let said = world.ok(&["set", "a", "--memory", "1G", "--tag", "x", "--tag", "y"]).stderr;
    assert!(said.contains("a: ") && said.contains("memory 1G") && said.contains("tags x y"), "{said}");
    assert!(said.contains("from its next run on; `pinfold restart a` starts that now"), "{said}");
    world.ok(&["stop", "a"]);
    assert!(!world.ok(&["set", "a", "--memory", "2G"]).stderr.contains("restart"));
    assert_eq!(world.ok(&["--quiet", "set", "a", "--memory", "2G"]).stderr, "");
    let secret = world.ok(&["set", "a", "--env", "KEY=sk-secret"]).stderr;
    assert!(secret.contains("env KEY") && !secret.contains("sk-secret"), "{secret}");
}

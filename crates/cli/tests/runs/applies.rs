//! `apply`: a file is done as a whole, or not at all.

use crate::world::{Answer, World, finish};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

impl World {
    fn declares(&self, text: &str) -> String {
        let path = self.path("sessions.toml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn applies(&self, text: &str, more: &[&str]) -> Answer {
        let file = self.declares(text);
        self.run(&[&["apply", &file], more].concat())
    }

    /// All that `apply` could have changed, archived sessions included.
    fn stored(&self) -> Vec<Value> {
        let all = self.json(&["ls", "--all"]);
        let kept = ["name", "state", "mode", "tags", "parent", "env"];
        let of = |session: &Value| kept.iter().map(|field| session[field].clone()).collect();
        all.as_array().unwrap().iter().map(of).collect()
    }

    /// The names of the sessions that are not archived.
    fn names(&self) -> Vec<String> {
        let all = self.json(&["ls"]);
        let mut names: Vec<String> =
            all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
        names.sort_unstable();
        names
    }

    fn folders(&self) -> usize {
        std::fs::read_dir(self.home.join("sessions")).map_or(0, Iterator::count)
    }
}

const GOOD: &str = "[sessions.good]\ncommand = [\"sleep\", \"100000\"]\nmode = \"on-demand\"\n";

#[test]
fn a_mistake_anywhere_in_a_file_changes_nothing() {
    let world = World::new();
    world.ok(&["new", "old", "--mode", "on-demand", "--idle", "1h", "--", "cat"]);
    world.ok(&["new", "below", "--mode", "on-demand", "--parent", "old", "--", "cat"]);
    let new = |fields: &str| format!("[sessions.bad]\ncommand = [\"cat\"]\n{fields}\n");
    let rows = [
        ("[sessions.bad]\nagent = \"nobody\"\n".to_owned(), 78, "no agent `nobody`"),
        (new("env = { \"A=B\" = \"1\" }"), 2, "cannot be the name of a variable"),
        (new("parent = \"bad\""), 78, "is the session itself, or below it"),
        (new("parent = \"elsewhere\""), 1, "no session `elsewhere`"),
        (new("dir = \"/no/such/directory\""), 78, "/no/such/directory"),
        ("[sessions.bad]\ncommand = [\"no-such-program\"]\n".to_owned(), 78, "no-such-program"),
        (new("tags = [\"a\\nb\"]"), 2, "control character"),
        (new("vendor_session = \"--resume=evil\""), 2, "not the ID of a vendor session"),
        (new("parent = \"worse\"\n[sessions.worse]\ncommand = [\"cat\"]\nparent = \"bad\""), 78, "below it"),
        ("[sessions.old]\nparent = \"below\"\n".to_owned(), 78, "below it"),
        (
            "[sessions.old]\nparent = \"middle\"\n[sessions.middle]\ncommand = [\"cat\"]\nparent = \"below\"\n"
                .to_owned(),
            78,
            "below it",
        ),
        ("[sessions.old]\nagent = \"claude\"\n".to_owned(), 78, "cannot become one of agent `claude`"),
        ("[sessions.old]\ncommand = [\"no-such-program\"]\n".to_owned(), 78, "no-such-program"),
        ("[sessions.old]\ntags = [\"\\u0007\"]\n".to_owned(), 2, "control character"),
    ];
    let before = world.stored();
    for (bad, code, problem) in rows {
        for more in [&["--dry-run"][..], &[]] {
            let text = format!("{GOOD}{bad}\n[sessions.zzz]\ncommand = [\"cat\"]\n");
            let answer = world.applies(&text, more);
            assert_eq!(answer.code, code, "{bad}: {answer:?}");
            assert!(answer.stderr.contains(problem), "{bad}: {answer:?}");
            assert!(answer.stderr.contains("sessions.toml: session `"), "{bad}: {answer:?}");
            assert_eq!(world.stored(), before, "{bad}");
        }
    }
    assert_eq!(world.folders(), 2, "nothing is left of what was not created");
}

#[test]
fn a_file_is_done_as_a_whole_with_children_before_and_after_their_parents() {
    let world = World::new();
    world.ok(&["new", "old", "--mode", "on-demand", "--idle", "1h", "--", "cat"]);
    let text = format!(
        "{GOOD}parent = \"zeta\"\nenv = {{ A = \"1\" }}\n\n[sessions.old]\nparent = \"good\"\ntags = [\"t\"]\n\n\
         [sessions.zeta]\ncommand = [\"sleep\", \"100000\"]\n"
    );
    let seen = world.applies(&text, &["--dry-run"]);
    assert!(seen.stderr.contains("+ good") && seen.stderr.contains("nothing was changed"), "{seen:?}");
    assert_eq!(world.sessions().len(), 1);
    let done = world.applies(&text, &[]);
    assert_eq!(done.code, 0, "{done:?}");
    let sessions = world.sessions();
    let parent = |name: &str| sessions[name]["parent"].clone();
    assert_eq!((parent("good"), parent("old")), (json!("zeta"), json!("good")));
    assert_eq!((&sessions["old"]["tags"], &sessions["zeta"]["state"]), (&json!(["t"]), &json!("running")));
    let again = world.applies(&text, &[]);
    assert!(again.code == 0 && again.stderr.contains("nothing to do"), "{again:?}");
    world.kill_daemon();
    assert_eq!(world.sessions()["good"]["parent"], "zeta");
    world.check_history();
}

#[test]
fn a_busy_lock_does_not_keep_a_file_from_being_applied() {
    let world = World::new();
    std::fs::create_dir_all(world.path("d")).unwrap();
    world.ok(&["new", "holder", "--dir", &world.path("d").display().to_string(), "--", "sleep", "100000"]);
    world.wait("holder", "running");
    let done = world.applies("[sessions.second]\ndir = \"d\"\ncommand = [\"cat\"]\nmode = \"always\"\n", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(world.show("second")["state"], "blocked");
    assert!(done.stderr.contains("second is created: ") && done.stderr.contains("holder"), "{done:?}");
}

#[test]
fn prune_archives_running_sessions_and_what_waits_in_them_is_kept() {
    let world = World::new();
    world.guarded("runs", &[], "exec sleep 100000");
    world.ok(&["new", "waits", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["stop", "waits"]);
    world.ok(&["send", "waits", "later"]);
    let seen = world.applies(GOOD, &["--prune", "--dry-run"]);
    assert!(seen.stderr.contains("- runs (stopped, then to the archive)"), "{seen:?}");
    assert!(seen.stderr.contains("- waits (to the archive)"), "{seen:?}");
    assert_eq!(world.sessions().len(), 2);
    let done = world.applies(GOOD, &["--prune"]);
    assert!(done.code == 0 && done.stderr.contains("runs is archived"), "{done:?}");
    assert_eq!(world.names(), ["good"]);
    world.assert_no_members();
    world.ok(&["restore", "waits"]);
    assert_eq!(world.json(&["inbox", "waits", "-n", "all"])[0]["text"], "later");
    world.check_history();
}

#[test]
fn prune_never_archives_the_session_that_asks_nor_the_parent_of_a_declared_one() {
    let world = World::new();
    let file = world.declares(GOOD);
    let binary = world.binary.display();
    let script =
        format!("{binary} apply --prune {file} 2>\"$ROOT/told\"; echo applied $?; exec sleep 100000");
    let root = format!("ROOT={}", world.root.display());
    world.ok(&["new", "own", "--env", &root, "--", "sh", "-c", &script]);
    assert_eq!(world.printed("own", "applied "), "0");
    let told = std::fs::read_to_string(world.path("told")).unwrap();
    assert!(told.contains("own is left alone: it is the session that asks"), "{told}");
    assert_eq!(world.sessions()["good"]["parent"], "own", "a session that a run makes is its child");
    let child = "[sessions.child]\ncommand = [\"cat\"]\nmode = \"on-demand\"\nparent = \"own\"\n";
    let refused = world.applies(child, &["--prune"]);
    assert!(refused.code == 78 && refused.stderr.contains("`--prune` archives it"), "{refused:?}");
    assert_eq!(world.show("own")["state"], "running");
}

#[test]
fn a_run_applies_only_to_its_own_family() {
    let world = World::new();
    world.ok(&["new", "other", "--mode", "on-demand", "--", "cat"]);
    let file = world.declares(&format!("{GOOD}[sessions.other]\nidle = \"7m\"\n"));
    let binary = world.binary.display();
    let body = json!({ "change": [{ "name": "other", "idle": "7m" }] });
    let call = format!("curl -s --unix-socket \"$PINFOLD_SOCKET\" -d '{body}' http://d/v1/apply");
    let script = format!(
        "{binary} apply {file} 2>\"$ROOT/told\"; echo applied $?; {call}; echo; echo called; exec sleep 100000"
    );
    let root = format!("ROOT={}", world.root.display());
    world.ok(&["new", "own", "--env", &root, "--", "sh", "-c", &script]);
    let code = world.printed("own", "applied ");
    world.printed("own", "called");
    // It does not see the other session, so it tries to create it.
    assert_eq!(code, "73", "{}", std::fs::read_to_string(world.path("told")).unwrap());
    let said = world.ok(&["logs", "own"]).stdout;
    assert!(said.contains("not_permitted"), "{said}");
    assert!(!world.sessions().contains_key("good"), "all or nothing");
}

#[test]
fn what_is_not_a_file_of_a_bounded_size_is_refused_at_once() {
    let world = World::new();
    world.ok(&["up"]);
    let fifo: PathBuf = world.path("fifo");
    assert!(finish(std::process::Command::new("mkfifo").arg(&fifo)).code == 0);
    let large = world.path("large");
    std::fs::File::create(&large).unwrap().set_len((8 << 20) + 1).unwrap();
    for path in [&fifo, &large, &world.root, &PathBuf::from("/dev/zero")] {
        let answer = world.within(Duration::from_secs(60), &["apply", &path.display().to_string()]);
        assert_eq!(answer.code, 78, "{}: {answer:?}", path.display());
    }
    let empty = world.path("empty");
    std::fs::write(&empty, "").unwrap();
    world.ok(&["down"]);
    for path in [&empty, &fifo, &world.root] {
        let restored = world.run(&["restore-backup", &path.display().to_string()]);
        assert_eq!(restored.code, 65, "{}: {restored:?}", path.display());
    }
}

#[test]
fn five_hundred_sessions_are_one_file() {
    let world = World::new();
    let one = |n: u32| format!("[sessions.s{n}]\ncommand = [\"cat\"]\nmode = \"on-demand\"\n");
    let all: String = (0..500).map(one).collect();
    assert_eq!(world.applies(&all, &[]).code, 0);
    assert_eq!(world.sessions().len(), 500);
    let changed: String = (0..500).map(|n| format!("{}idle = \"7m\"\n", one(n))).collect();
    assert_eq!(world.applies(&changed, &[]).code, 0);
    let none = world.applies("", &["--prune"]);
    assert_eq!((none.code, world.names().len()), (0, 0), "{}", none.stderr.lines().last().unwrap());
    world.check_history();
}

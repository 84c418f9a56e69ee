//! Accounts, usage, limits and budgets through the real binaries: what the model is asked, what is counted,
//! and what survives the daemon's death.

use crate::world::World;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// Plays the protocol `scripted` with a model behind it: each prompt is a request, noted in a file. While the
/// file `limited` or `logged_out` exists, the model refuses. A turn costs 10 tokens in, 2 out, and half a
/// dollar.
const SPENDER: &str = r#"
field() { printf '%s' "$line" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
usage='{"turn":{"input_tokens":10,"output_tokens":2,"cached_tokens":4,"cost_usd":0.5},"model":"m","context_used":12,"context_size":100}'
while IFS= read -r line; do
    type=$(field type); id=$(field id)
    case $type in
    hello) echo "{\"type\":\"hello\",\"id\":$id}" ;;
    prompt)
        printf '%s %s\n' "$PINFOLD_SESSION" "$(field text)" >>"$ROOT/asked"
        printf '%s\n' "$line" >>"$ROOT/lines"
        echo "{\"type\":\"taken\",\"id\":$id}"
        if [ -e "$ROOT/limited" ] && [ "$PLAYS" = player ]; then
            echo '{"type":"limit","reach":"reached","window":"five_hour","used":1.0}'
            echo "{\"type\":\"ended\",\"id\":$id,\"how\":\"failed\",\"kind\":\"limit\",\"why\":\"limit reached\"}"
        elif [ -e "$ROOT/logged_out" ]; then
            echo "{\"type\":\"ended\",\"id\":$id,\"how\":\"failed\",\"kind\":\"login\",\"why\":\"Please run /login\"}"
        else
            printf '%s\n' "$PINFOLD_SESSION" >>"$ROOT/spent"
            echo "{\"type\":\"ended\",\"id\":$id,\"answer\":\"played\",\"usage\":$usage}"
        fi ;;
    esac
done
"#;

impl World {
    /// Configures the agents `player` and `another`, with an account each.
    fn with_spenders(&self, more: &str) {
        let script = self.path("spender.sh");
        std::fs::write(&script, format!("{}{SPENDER}", crate::world::GUARD)).unwrap();
        std::fs::create_dir_all(&self.home).unwrap();
        std::fs::set_permissions(&self.home, std::fs::Permissions::from_mode(0o700)).unwrap();
        let agent = |name: &str| {
            let command = format!("command = [\"sh\", \"{}\"]", script.display());
            format!("[agents.{name}]\n{command}\nprotocol = \"scripted\"\nset = {{ PLAYS = \"{name}\" }}\n")
        };
        let config = format!("{}{}{more}", agent("player"), agent("another"));
        std::fs::write(self.home.join("config.toml"), config).unwrap();
    }

    fn spender(&self, name: &str, agent: &str, more: &[&str]) {
        std::fs::create_dir_all(self.path(name)).unwrap();
        let dir = self.path(name).display().to_string();
        self.ok(&[&["new", name, "--agent", agent, "--dir", &dir, "--env", "ROOT"], more].concat());
    }

    fn asked_for(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(self.path("asked")).unwrap_or_default();
        let pair = |line: &str| line.split_once(' ').map(|(one, two)| (one.to_owned(), two.to_owned()));
        text.lines().filter_map(pair).collect()
    }

    /// How many turns the model was paid for.
    fn spent(&self) -> u64 {
        std::fs::read_to_string(self.path("spent")).unwrap_or_default().lines().count() as u64
    }

    fn is_held(&self, account: &str) -> Option<Value> {
        let all = self.json(&["accounts"]);
        let found = all.as_array().unwrap().iter().find(|one| one["account"] == account)?;
        Some(found.clone()).filter(|one| !one["held"].is_null())
    }

    fn states(&self, state: &str) -> usize {
        let all = self.json(&["ls"]);
        all.as_array().unwrap().iter().filter(|one| one["state"] == state).count()
    }
}

/// Twenty held sessions look the same before and after the daemon's death.
#[track_caller]
fn is_held_over_a_death(world: &World) {
    world.kill_daemon();
    world.ok(&["up"]);
    let held = world.until("it is held over a death of the daemon", || world.is_held("player:default"));
    assert_eq!((&held["held"], &held["window"]), (&json!("limit"), &json!("five_hour")));
    assert_eq!(held["held_sessions"].as_array().unwrap().len(), 20);
    let shown = world.show("s7");
    assert_eq!(
        (&shown["state"], &shown["activity"], &shown["holder"], &shown["request"]["kind"]),
        (&json!("blocked"), &json!("limited"), &Value::Null, &json!("limit"))
    );
    assert_eq!((&shown["inbox"]["queued"], &shown["inbox"]["failed"]), (&json!(2), &json!(0)));
    let waiting = &world.json(&["inbox", "s7"])[0];
    assert_eq!(waiting["tries"], 0, "{waiting}");
    assert!(waiting["waits_for"].as_str().unwrap().contains("usage limit"), "{waiting}");
}

#[test]
fn twenty_sessions_meet_a_limit_at_once_and_none_of_their_messages_is_lost() {
    let world = World::new();
    world.with_spenders("");
    std::fs::write(world.path("limited"), "").unwrap();
    let names: Vec<String> = (0..20).map(|number| format!("s{number}")).collect();
    for name in &names {
        world.spender(name, "player", &[]);
    }
    for name in &names {
        for text in ["one", "two"] {
            world.ok(&["send", name, text]);
        }
    }
    world.spender("other", "another", &[]);
    assert_eq!(world.ok(&["send", "other", "hello", "--wait", "240s"]).stdout, "played\n", "another account");
    world.until("all are held", || (world.states("blocked") == 20).then_some(()));
    let before = world.asked_for().len() - 1;
    assert!((1..=20).contains(&before), "{before}");
    is_held_over_a_death(&world);
    assert_eq!(world.asked_for().len() - 1, before, "nobody asks while it is held");

    std::fs::remove_file(world.path("limited")).unwrap();
    world.ok(&["answer", "s3", "allow"]);
    world.until("all is done", || {
        let all = world.json(&["ls"]);
        let done = |one: &Value| one["name"] == "other" || one["inbox"]["done"] == 2;
        all.as_array().unwrap().iter().all(done).then_some(())
    });
    let asked = world.asked_for();
    let after = asked.len() - 1 - before;
    println!(
        "requests at the model: {before} of 20 sessions before the hold, {after} for 40 messages after it"
    );
    assert_eq!(after, 40, "each message once");
    for name in &names {
        let texts: Vec<&str> =
            asked.iter().filter(|(of, _)| of == name).map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts[texts.len() - 2..], ["one", "two"], "{name}: in order");
    }
    let kinds = world.json(&["events", "-n", "all"]).to_string();
    assert_eq!(kinds.matches("\"account_held\"").count(), 1);
    assert_eq!(world.is_held("player:default"), None);
}

#[test]
fn a_login_dies_and_comes_back() {
    let world = World::new();
    world.with_spenders("[policy]\nlimit_resume = true\n");
    std::fs::write(world.path("logged_out"), "").unwrap();
    for name in ["a", "b"] {
        world.spender(name, "player", &[]);
        world.ok(&["send", name, "hello"]);
    }
    let held = world.until("its login is missed", || world.is_held("player:default"));
    assert_eq!((&held["held"], &held["resets"]), (&json!("login"), &Value::Null));
    world.until("both are held", || (world.states("blocked") == 2).then_some(()));
    assert_eq!(
        (&world.show("b")["request"]["kind"], &world.show("b")["next"]),
        (&json!("login"), &Value::Null)
    );
    let asked = world.asked_for().len();
    // Still logged out: one request of a person is one try.
    world.ok(&["accounts", "--resume", "player:default"]);
    world.until("one tried", || (world.asked_for().len() == asked + 1).then_some(()));
    world.until("it is held again", || (world.states("blocked") == 2).then_some(()));
    assert_eq!(world.asked_for().len(), asked + 1);
    std::fs::remove_file(world.path("logged_out")).unwrap();
    world.ok(&["answer", "b", "allow", "login"]);
    for name in ["a", "b"] {
        world.until("it is done", || (world.show(name)["inbox"]["done"] == 1).then_some(()));
    }
    assert_eq!(world.run(&["answer", "a", "allow"]).code, 1, "nothing is asked any more");
    let kinds = world.json(&["events", "-n", "all"]).to_string();
    assert_eq!(kinds.matches("\"account_held\"").count(), 1);
}

#[test]
fn usage_equals_what_the_model_counted_over_deaths_and_removals() {
    let world = World::new();
    world.with_spenders("[accounts.mine]\nis = \"player:default\"\n");
    world.spender("a", "player", &[]);
    world.spender("b", "another", &[]);
    for name in ["a", "b", "a"] {
        world.ok(&["send", name, "hello", "--wait", "240s"]);
    }
    world.kill_daemon();
    world.ok(&["send", "a", "again", "--wait", "240s"]);
    world.ok(&["restart", "a"]);
    world.ok(&["send", "a", "and again", "--wait", "240s"]);
    let turns = world.spent();
    assert_eq!(turns, 5);
    let shown = world.show("a");
    assert_eq!(
        shown["usage"],
        json!({ "input_tokens": 40, "output_tokens": 8, "cached_tokens": 16, "cost_usd": 2.0, "model": "m",
                "context_used": 12, "context_size": 100 })
    );
    assert_eq!(shown["account"], "player:mine");
    assert_eq!(world.json(&["inbox", "a"])[0]["usage"]["cost_usd"], 0.5);
    world.ok(&["stop", "b"]);
    world.ok(&["archive", "b"]);
    world.ok(&["rm", "b", "--yes"]);
    for by in ["session", "account", "model", "day"] {
        let sums = world.json(&["usage", "--by", by]);
        let sums = sums.as_array().unwrap();
        let sum = |field: &str| sums.iter().map(|one| one[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!(
            (sum("turns"), sum("input_tokens"), sum("output_tokens")),
            (turns, 10 * turns, 2 * turns),
            "{by}"
        );
    }
    let by_session = world.json(&["usage"]);
    let names: Vec<_> =
        by_session.as_array().unwrap().iter().map(|one| one["of"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b"], "what was used outlives its session");
    assert_eq!(world.json(&["usage", "--since", "1h", "--by", "account"])[0]["of"], "another:default");
    assert!(world.ok(&["metrics"]).stdout.contains("pinfold_tokens_total{of=\"input\"} 20\n"));
    assert!(world.ok(&["ls"]).stdout.contains("$2.00"));
    let done = world.json(&["events", "-n", "all"]);
    let done = done.as_array().unwrap().iter().rfind(|event| event["kind"] == "message_done").unwrap();
    assert_eq!(done["usage"]["input_tokens"], 10);
}

#[test]
fn a_budget_is_reached_and_raised() {
    let world = World::new();
    world.with_spenders("");
    world.spender("a", "player", &["--budget", "1USD", "--turn-time", "1h"]);
    for text in ["one", "two", "three", "four", "five"] {
        world.ok(&["send", "a", text]);
    }
    let request =
        world.until("it asks", || Some(world.show("a")["request"].clone()).filter(|asked| !asked.is_null()));
    assert_eq!((&request["kind"], &request["id"]), (&json!("budget"), &json!("budget")));
    assert_eq!((world.spent(), &world.show("a")["state"]), (2, &json!("blocked")));
    assert!(world.ok(&["why", "a"]).stdout.contains("spent its budget of 1 USD"));
    world.kill_daemon();
    world.ok(&["up"]);
    assert_eq!((world.spent(), &world.show("a")["state"]), (2, &json!("blocked")));
    world.ok(&["set", "a", "--budget", "1.50USD"]);
    world.until("it spends half a dollar more", || (world.show("a")["inbox"]["done"] == 3).then_some(()));
    world.until("it asks again", || (world.show("a")["state"] == "blocked").then_some(()));
    world.ok(&["answer", "a", "allow"]);
    world.until("all is done", || (world.show("a")["inbox"]["done"] == 5).then_some(()));
    let exported = world.ok(&["export", "a"]).stdout;
    assert!(
        exported.contains("budget = \"1.50USD\"") && exported.contains("turn_time = \"1h\""),
        "{exported}"
    );
    assert_eq!(world.run(&["set", "a", "--budget", "5"]).code, 2, "a number without a unit");
}

#[test]
fn files_are_named_to_the_agent_and_must_be_there_when_they_are_delivered() {
    let world = World::new();
    world.with_spenders("");
    world.spender("a", "player", &[]);
    let (file, gone) = (world.path("notes"), world.path("gone"));
    for one in [&file, &gone] {
        std::fs::write(one, "words").unwrap();
    }
    let (file, gone) = (file.display().to_string(), gone.display().to_string());
    let sent = world.json(&["send", "a", "read", "--file", &file, "--wait", "240s"]);
    assert_eq!((&sent["files"], &sent["state"]), (&json!([file]), &json!("done")));
    let lines = std::fs::read_to_string(world.path("lines")).unwrap();
    assert!(lines.contains(&format!("\"files\":[\"{file}\"]")), "{lines}");
    assert_eq!(world.run(&["send", "a", "read", "--file", "/no/such/file"]).code, 2);
    world.ok(&["stop", "a"]);
    let id = world.ok(&["send", "a", "read", "--file", &gone]).stdout.trim().to_owned();
    std::fs::remove_file(&gone).unwrap();
    world.ok(&["start", "a"]);
    let failed = world.message("a", &id, "failed");
    assert!(failed["reason"].as_str().unwrap().contains("does not exist any more"), "{failed}");
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_run_is_given_what_its_telemetry_is_joined_by() {
    let world = World::new();
    world.with_spenders("");
    world.spender("a", "player", &["--env", "OTEL_RESOURCE_ATTRIBUTES=team=core"]);
    world.ok(&["send", "a", "hello", "--wait", "240s"]);
    let shown = world.show("a");
    let environ = std::fs::read_to_string(format!("/proc/{}/environ", shown["pid"])).unwrap();
    let of = |name: &str| {
        let begin = format!("{name}=");
        environ.split('\0').find_map(|one| one.strip_prefix(&begin)).unwrap().to_owned()
    };
    let (id, run) = (shown["id"].as_str().unwrap(), shown["run"].as_str().unwrap());
    let attributes = of("OTEL_RESOURCE_ATTRIBUTES");
    let expected =
        format!("team=core,pinfold.session=a,pinfold.session.id={id},pinfold.run={run},host.name=");
    assert!(attributes.starts_with(&expected), "{attributes}");
    assert_eq!(of("TRACEPARENT").split('-').map(str::len).collect::<Vec<_>>(), [2, 32, 16, 2]);
}

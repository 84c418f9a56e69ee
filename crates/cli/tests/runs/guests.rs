//! Guests through the real binaries: the agent's own terminal program beside a run that goes on.

use crate::processes::{self, Held};
use crate::tty::Tty;
use crate::world::{World, number};
use serde_json::{Value, json};

/// A terminal program on the same conversation. The child it leaves behind has its own session.
const UI: &str = r#"
stty -echo
printf '%s %s %s\n' "$$" "$PINFOLD_RUN" "$PINFOLD_FENCE" >"$ROOT/guest"
setsid sleep 1000 </dev/null >/dev/null 2>&1 &
echo $! >"$ROOT/left"
echo "ui on $1 in $(pwd)"
while read -r line; do
    test "$line" != quit || exit 4
    echo "ui got $line"
done
"#;

impl World {
    /// Configures an agent `player` whose terminal program joins its run, and creates a session of it.
    fn with_guests(&self, policy: &str) {
        let ui = self.path("ui.sh");
        std::fs::write(&ui, UI).unwrap();
        let interactive = format!("[\"sh\", \"{}\", \"{{vendor_session}}\"]", ui.display());
        self.with_player(&format!("attach = \"join\"\ninteractive = {interactive}\n{policy}"));
        self.play("a");
    }

    fn lets_go(&self) {
        std::fs::write(self.path("go"), "").unwrap();
    }

    /// The pid, run and fence that the terminal program wrote down.
    fn guest(&self) -> (u32, String, String) {
        let text = std::fs::read_to_string(self.path("guest")).unwrap();
        let mut words = text.split_whitespace().map(str::to_owned);
        let mut next = || words.next().unwrap();
        (next().parse().unwrap(), next(), next())
    }

    fn left(&self) -> u32 {
        std::fs::read_to_string(self.path("left")).unwrap().trim().parse().unwrap()
    }

    fn guest_counts(&self) -> (usize, usize, usize) {
        let count = |kind| self.events_of("a", kind).len();
        (count("run_started"), count("guest_started"), count("guest_ended"))
    }
}

fn quit(tty: &mut Tty) {
    tty.keys(b"quit\r");
    assert!(tty.ended().success());
}

#[test]
fn somebody_comes_to_a_turn_under_way_and_goes_and_the_turn_is_not_disturbed() {
    let world = World::new();
    world.with_guests("");
    let waits = world.told("a", "waits");
    world.message("a", &waits, "delivered");
    let before = world.show("a");
    let mut tty = world.attach("a", &[]);
    tty.shows("ui on conversation in");
    let (guest, run, fence) = world.guest();
    let shown = world.show("a");
    for name in ["state", "pid", "run", "fence", "shim_pid", "activity"] {
        assert_eq!(shown[name], before[name], "{name}");
    }
    assert_eq!((&shown["guest_pid"], &shown["consumers"]), (&json!(guest), &json!(1)));
    assert_eq!((json!(run), fence), (shown["run"].clone(), shown["fence"].to_string()));
    assert!(world.ok(&["why", "a"]).stdout.contains("its terminal program runs beside it"));
    tty.keys(b"hello\r");
    tty.shows("ui got hello");
    // A client that joins later sees the same screen, and so does one that comes back.
    let mut other = world.attach("a", &["--read-only"]);
    other.shows("ui got hello");
    other.detach();
    tty.detach();
    assert_eq!(world.show("a")["guest_pid"], json!(guest));
    let mut again = world.attach("a", &[]);
    again.shows("ui got hello");
    world.lets_go();
    assert_eq!(world.message("a", &waits, "done")["answer"], "waited");
    assert_eq!(world.ok(&["send", "a", "more", "--wait", "240s"]).stdout, "played\n");
    // It ends on its own, and what it left behind ends with it.
    let left = world.left();
    quit(&mut again);
    assert!(again.everything().contains("its terminal program exited with 4"), "{}", again.everything());
    assert!(!processes::lives(left));
    let ended = world.events_of("a", "guest_ended");
    assert_eq!(
        (&ended[0]["code"], &ended[0]["end"], &ended[0]["run"]),
        (&json!(4), &json!("code"), &shown["run"])
    );
    let shown = world.show("a");
    assert_eq!(
        (&shown["pid"], &shown["state"], &shown["guest_pid"]),
        (&before["pid"], &json!("running"), &Value::Null)
    );
    assert_eq!(world.ok(&["send", "a", "more", "--wait", "240s"]).stdout, "played\n");
    assert_eq!(world.guest_counts(), (1, 1, 1));
    world.assert_said_once();
}

#[test]
fn an_idle_session_is_woken_for_its_terminal_program_and_its_end_starts_no_other() {
    let world = World::new();
    world.with_guests("");
    assert_eq!(world.show("a")["state"], "idle");
    // Its conversation has no name before the agent tells it.
    let mut tty = world.attach("a", &[]);
    tty.shows("ui on conversation in");
    quit(&mut tty);
    world.until("it went", || (!world.events_of("a", "consumer_left").is_empty()).then_some(()));
    assert_eq!(world.show("a")["state"], "running");
    assert_eq!(world.guest_counts(), (1, 1, 1));
    let mut tty = world.attach("a", &[]);
    tty.shows("ui on conversation in");
    assert_eq!(world.guest_counts(), (1, 2, 1));
    tty.detach();
}

#[test]
fn the_daemon_is_killed_and_whoever_types_notices_nothing() {
    let world = World::new();
    world.with_guests("");
    let waits = world.told("a", "waits");
    world.message("a", &waits, "delivered");
    let mut tty = world.attach("a", &[]);
    tty.shows("ui on conversation in");
    let (guest, _, _) = world.guest();
    let agent = world.pid("a");
    world.kill_daemon();
    tty.keys(b"alone\r");
    tty.shows("ui got alone");
    world.ok(&["up"]);
    tty.keys(b"with another\r");
    tty.shows("ui got with another");
    let shown = world.show("a");
    assert_eq!((&shown["pid"], &shown["guest_pid"]), (&json!(agent), &json!(guest)));
    world.until("it is counted again", || (world.show("a")["consumers"] == 1).then_some(()));
    world.lets_go();
    assert_eq!(world.message("a", &waits, "done")["answer"], "waited");
    // The same if it ends while no daemon is alive.
    world.kill_daemon();
    tty.keys(b"quit\r");
    assert!(tty.ended().success());
    world.ok(&["up"]);
    assert_eq!((world.guest_counts(), &world.show("a")["guest_pid"]), ((1, 1, 1), &Value::Null));
    assert_eq!(world.pid("a"), agent);
    world.assert_said_once();
}

#[test]
fn a_killed_shim_ends_both_and_a_stop_leaves_nothing() {
    let world = World::new();
    world.with_guests("policy.backoff_initial = \"10ms\"\n");
    let mut tty = world.attach("a", &[]);
    tty.shows("ui on conversation in");
    let (guest, _, _) = world.guest();
    let both = [world.pid("a"), guest].map(|pid| Held::open(pid).unwrap());
    processes::kill(number(&world.show("a")["shim_pid"]));
    both.iter().for_each(Held::wait);
    tty.ended();
    world.until("its end is told", || (!world.events_of("a", "guest_ended").is_empty()).then_some(()));
    let mut tty = world.attach("a", &[]);
    tty.shows("ui on conversation in");
    let (again, _, _) = world.guest();
    assert_ne!(again, guest);
    let all = [world.pid("a"), again, world.left()].map(|pid| Held::open(pid).unwrap());
    world.ok(&["stop", "a"]);
    all.iter().for_each(Held::wait);
    tty.ended();
    assert_eq!(world.run(&["attach", "a"]).code, 1, "as any session that is stopped");
    world.ok(&["down"]);
    world.assert_no_members();
}

#[test]
fn a_session_that_nobody_looks_at_any_more_parks_and_ends_its_terminal_program() {
    let world = World::new();
    world.with_guests("policy.idle_after = \"1s\"\n");
    let mut tty = world.attach("a", &[]);
    tty.shows("ui on conversation in");
    let guest = Held::open(world.guest().0).unwrap();
    tty.detach();
    world.wait("a", "idle");
    guest.wait();
    assert_eq!(world.guest_counts(), (1, 1, 1));
}

#[test]
fn a_terminal_program_that_is_missing_is_refused_and_the_agent_goes_on() {
    let world = World::new();
    world.with_player("attach = \"join\"\ninteractive = [\"/no/such/ui\"]\n");
    world.play("a");
    world.ok(&["send", "a", "hello", "--wait", "240s"]);
    let refused = world.run(&["attach", "a"]);
    assert_eq!(refused.code, 78, "{}", refused.stderr);
    assert!(refused.stderr.contains("/no/such/ui"), "{}", refused.stderr);
    assert_eq!((&world.show("a")["state"], world.guest_counts()), (&json!("running"), (1, 0, 0)));
    // The command names a conversation: a mistake in it shows only when that is known.
    let other = World::new();
    other.with_player("attach = \"join\"\ninteractive = [\"/no/such/ui\", \"{vendor_session}\"]\n");
    other.play("a");
    let refused = other.run(&["attach", "a"]);
    assert_eq!(refused.code, 78, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("/no/such/ui") && refused.stderr.contains("goes on"),
        "{}",
        refused.stderr
    );
    assert_eq!(other.ok(&["send", "a", "hello", "--wait", "240s"]).stdout, "played\n");
}

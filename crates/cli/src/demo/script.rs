//! The steps of the demo, in order.

use super::processes;
use super::stage::{DemoStage, Stopped};
use pinfold_api::time::moment;
use pinfold_api::word::{EventKind, State, Verdict};
use serde_json::Value;
use std::time::{Duration, Instant};

const CLOCK: &str = "while date +%T; do sleep 1; done";
const SERVER: &str = "echo serving; exec sleep 1000";
const CHAT: &str = "while read -r line; do echo \"PINFOLD_DONE you said: $line\"; done";

/// A run that crashes sooner than this waits a second for the next one, so the demo lets it run for longer.
const GOOD_WILL: Duration = Duration::from_millis(1100);

type Played = Result<(), Stopped>;

pub(super) fn play(stage: &mut DemoStage) -> Played {
    stage
        .line(&format!("pinfold demo, in a home that is thrown away at the end: {}", stage.root().display()));
    sessions_run(stage)?;
    a_crash(stage)?;
    the_daemon_is_killed(stage)?;
    a_refused_double(stage)?;
    a_chat(stage)?;
    the_end(stage)
}

fn sessions_run(stage: &mut DemoStage) -> Played {
    stage.step("Sessions run");
    stage.make("work")?;
    let clock = stage.new_session("clock", &[], CLOCK)?;
    let api = stage.new_session("api", &["--dir", "work"], SERVER)?;
    for session in [&clock, &api] {
        stage.must(session["state"] == State::Running.word(), || format!("not running: {session}"))?;
    }
    stage.fact(&format!(
        "clock runs as pid {}; api runs as pid {} and has `work` to itself",
        pid(&clock)?,
        pid(&api)?
    ));
    Ok(())
}

fn a_crash(stage: &mut DemoStage) -> Played {
    stage.step("An agent crashes");
    let api = pid(&stage.show("api")?)?;
    stage.pause(GOOD_WILL)?;
    stage.kill(api, "the agent of api")?;
    let session = stage.until("api to run again", |stage| {
        let session = stage.show("api")?;
        Ok((session["state"] == State::Running.word() && pid(&session)? != api).then_some(session))
    })?;
    // A running session is seen a moment before the event of its start is stored.
    let (exited, started) = stage.until("the event of its start", |stage| {
        let events = stage.json(&["events", "--session", "api"])?;
        let of = |kind: EventKind| {
            events.as_array()?.iter().rev().find(|event| event["kind"] == kind.word()).cloned()
        };
        let started = of(EventKind::RunStarted).filter(|event| event["run"] == session["run"]);
        Ok(of(EventKind::RunExited).zip(started))
    })?;
    stage.must(exited["verdict"] == Verdict::Crash.word() && exited["signal"] == 9, || {
        format!("a wrong end: {exited}")
    })?;
    stage.fact(&format!(
        "it was killed by signal 9 after {}: verdict `crash`, {} in its streak",
        words(exited["uptime_ms"].as_u64()),
        session["crashes"]
    ));
    let gap = between(&exited["at"], &started["at"]);
    stage.fact(&format!("the next run is pid {}, {} later", pid(&session)?, words(gap)));
    Ok(())
}

fn the_daemon_is_killed(stage: &mut DemoStage) -> Played {
    stage.step("The daemon is killed");
    let before = [pid(&stage.show("clock")?)?, pid(&stage.show("api")?)?];
    let daemon = pid(&stage.json(&["status"])?)?;
    stage.kill(daemon, "the daemon")?;
    stage.must(before.iter().all(|pid| processes::lives(*pid)), || "an agent died with the daemon".into())?;
    stage.fact(&format!("no daemon runs now, and the agents {} and {} go on", before[0], before[1]));
    stage.shell("pinfold up");
    let begun = Instant::now();
    let status = stage.json(&["up"])?;
    let took = begun.elapsed();
    let after = [pid(&stage.show("clock")?)?, pid(&stage.show("api")?)?];
    stage.must(before == after, || format!("{before:?} were not adopted: {after:?} run"))?;
    for name in ["clock", "api"] {
        let runs = processes::runs(stage.root(), name);
        stage.must(runs.len() == 1, || format!("{} runs of {name} at once", runs.len()))?;
    }
    let took = u64::try_from(took.as_millis()).ok();
    stage.fact(&format!(
        "daemon {} has adopted both within {}: the same pids, none doubled",
        pid(&status)?,
        words(took)
    ));
    Ok(())
}

fn a_refused_double(stage: &mut DemoStage) -> Played {
    stage.step("A second agent wants the same directory");
    let api = pid(&stage.show("api")?)?;
    let twin = stage.new_session("twin", &["--dir", "work"], SERVER)?;
    let holder = &twin["holder"];
    stage.must(twin["state"] == State::Blocked.word() && holder["pid"] == api, || {
        format!("not refused: {twin}")
    })?;
    stage.must(twin["pid"].is_null(), || format!("a double was started: {twin}"))?;
    stage.fact(&format!("twin is {}", twin["why"].as_str().unwrap_or_default()));
    stage.shell("pinfold lock work -- true");
    let code = stage.verb(&["lock", "work", "--", "true"])?.code;
    stage.must(code == 75, || format!("`lock` ended with {code}"))?;
    stage.fact("exit code 75, and `true` was not run");
    stage.shell("pinfold stop api");
    stage.json(&["stop", "api"])?;
    let twin = stage.until("twin to run", |stage| {
        let twin = stage.show("twin")?;
        Ok((twin["state"] == State::Running.word()).then_some(twin))
    })?;
    stage.must(!processes::lives(api), || "twin runs beside api".into())?;
    stage.fact(&format!("twin was woken by the kernel and runs as pid {}", pid(&twin)?));
    Ok(())
}

fn a_chat(stage: &mut DemoStage) -> Played {
    stage.step("A chat agent runs only while it is needed");
    let chat = stage.new_session("chat", &["--mode", "on-demand", "--turns", "done"], CHAT)?;
    stage
        .must(chat["state"] == State::Idle.word() && chat["pid"].is_null(), || format!("not idle: {chat}"))?;
    stage.fact("chat is idle: no process");
    stage.shell("pinfold send chat 'are you there?' --wait 10s");
    let answer = stage.verb(&["send", "chat", "are you there?", "--wait", "10s"])?;
    let text = answer.stdout.trim();
    stage.must(answer.code == 0 && text == "you said: are you there?", || {
        format!("a wrong answer: {}", answer.shown())
    })?;
    stage.fact(&format!("answer: {text}"));
    let chat = stage.show("chat")?;
    stage.fact(&format!("the message woke it as pid {}, and is kept with its answer", pid(&chat)?));
    Ok(())
}

fn the_end(stage: &mut DemoStage) -> Played {
    stage.step("Everything ends");
    let agents = processes::around(stage.root());
    stage.shell("pinfold down");
    stage.json(&["down"])?;
    // The daemon answers a moment before its process is gone.
    stage.until("the last process to end", |stage| {
        Ok(processes::around(stage.root()).is_empty().then_some(()))
    })?;
    let locks = stage.json(&["locks"])?;
    stage.must(locks.as_array().is_some_and(Vec::is_empty), || format!("locks are held: {locks}"))?;
    stage.fact(&format!(
        "{} processes ended in order; no process, no lock and, in a moment, no file is left",
        agents.len()
    ));
    Ok(())
}

fn pid(object: &Value) -> Result<u32, Stopped> {
    let pid = object["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    pid.ok_or_else(|| Stopped::Failed(format!("no pid in {object}")))
}

fn words(ms: Option<u64>) -> String {
    ms.map_or_else(|| "an unknown time".into(), |ms| pinfold_core::words::duration(Duration::from_millis(ms)))
}

/// The milliseconds from one event to a later one.
fn between(one: &Value, other: &Value) -> Option<u64> {
    let at = |time: &Value| moment(time.as_str()?);
    u64::try_from(at(other)? - at(one)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_two_events_is_told_also_over_midnight() {
        let between = |one: &str, other: &str| between(&one.into(), &other.into());
        assert_eq!(between("2026-11-15T22:38:36.624Z", "2026-11-15T22:38:36.631Z"), Some(7));
        assert_eq!(between("2026-11-15T23:59:59.990Z", "2026-11-16T00:00:00.010Z"), Some(20));
        assert_eq!(between("2026-11-15T22:38:36Z", "2026-11-15T22:38:37Z"), Some(1000));
        assert_eq!(between("yesterday", "2026-11-15T22:38:37Z"), None);
    }
}

//! kill -9 of agent, daemon and shim, at every moment of a turn. The model is the judge: it sees each message
//! once, or is told that it is delivered again.

use super::gate::Gate;
use super::gemini::with_a_shell;
use super::stage::{Stage, agents};
use crate::processes;
use crate::world::number;
use std::os::unix::fs::PermissionsExt;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victim {
    Agent,
    Daemon,
    Shim,
    /// The process between the shim and an agent that serves a socket.
    Bridge,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Handshake,
    Stream,
    Tool,
    Request,
}

impl Victim {
    fn kill(self, stage: &Stage) {
        match self {
            Victim::Agent | Victim::Shim | Victim::Bridge => processes::kill(self.pid(stage)),
            Victim::Daemon => {
                stage.world.kill_daemon();
                stage.ok(&["up"]);
            }
        }
    }

    fn pid(self, stage: &Stage) -> u32 {
        match self {
            Victim::Agent => stage.pid(),
            Victim::Shim => number(&stage.show()["shim_pid"]),
            Victim::Bridge => bridge_of(stage.pid()).expect("a bridge"),
            Victim::Daemon => stage.world.daemon_pid(),
        }
    }

    /// Kills it in the moment in which the gate is opened for the next run.
    fn dies_at(self, gate: &Gate, stage: &Stage) {
        // Asking for it takes long enough for a turn to end.
        let pid = self.pid(stage);
        gate.open();
        processes::kill(pid);
    }

    fn word(self) -> &'static str {
        match self {
            Victim::Agent => "agent",
            Victim::Daemon => "daemon",
            Victim::Shim => "shim",
            Victim::Bridge => "bridge",
        }
    }
}

impl Moment {
    fn word(self) -> &'static str {
        match self {
            Moment::Handshake => "in the handshake",
            Moment::Stream => "in mid-stream",
            Moment::Tool => "in a tool",
            Moment::Request => "in a request",
        }
    }
}

/// The bridge of an agent: its child with our own name.
pub(crate) fn bridge_of(agent: u32) -> Option<u32> {
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let mut children = processes::children(agent).into_iter();
    children.find(|pid| name(*pid).trim() == "pinfold-bridge")
}

/// A session of an agent whose program waits at the gate before it begins.
fn gated(agent: &'static str) -> (Stage, Gate) {
    let stage = Stage::new(agent);
    let gate = Gate::new(&stage);
    let program = stage.world.path("gated").join(agent);
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    let real = agents().join("bin").join(agent);
    // Only the first line of stdin would show it; nothing of that may be read here.
    let script =
        format!("#!/bin/sh\n({}) </dev/null >/dev/null\nexec {} \"$@\"\n", gate.wait(), real.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}:/usr/local/bin:/usr/bin:/bin",
        program.parent().unwrap().display(),
        agents().join("bin").display()
    );
    (stage.with("PATH", Some(&path)), gate)
}

/// Brings a turn to its moment, kills the victim there, and lets the turn go on.
fn dies_in(agent: &'static str, victim: Victim, moment: Moment) -> Stage {
    match moment {
        Moment::Handshake => in_the_handshake(agent, victim),
        Moment::Stream => in_mid_stream(agent, victim),
        Moment::Tool => in_a_tool(Stage::new(agent), victim, agent != "pi"),
        Moment::Request => in_a_request(agent, victim),
    }
}

/// Checks that the message is answered once, and that the model saw it this many times.
fn is_done(stage: &Stage, message: &str, times: usize) {
    assert_eq!(stage.comes_to(message, "done")["answer"], "reply to one");
    assert_eq!(stage.model.times_told("one"), times);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.times_told("two"), 1);
}

/// How often the model sees a message if the victim dies after it was told.
fn times(victim: Victim) -> usize {
    match victim {
        Victim::Daemon => 1,
        Victim::Agent | Victim::Shim | Victim::Bridge => 2,
    }
}

fn in_the_handshake(agent: &'static str, victim: Victim) -> Stage {
    let (stage, gate) = gated(agent);
    stage.new_session();
    let message = stage.sends("TURN-one");
    gate.is_reached(&stage);
    match victim {
        Victim::Daemon => {
            victim.kill(&stage);
            gate.let_go();
        }
        Victim::Agent | Victim::Shim | Victim::Bridge => {
            victim.dies_at(&gate, &stage);
        }
    }
    // Nothing was told before, so nothing is told again.
    is_done(&stage, &message, 1);
    assert!(!stage.model.prompt_of("one").contains("delivered again"));
    stage
}

fn in_mid_stream(agent: &'static str, victim: Victim) -> Stage {
    let stage = Stage::new(agent);
    stage.new_session();
    let message = stage.sends("TURN-one HOLD");
    stage.model.is_asked("one");
    let pid = stage.pid();
    victim.kill(&stage);
    (0..times(victim)).for_each(|_| stage.model.let_go());
    is_done(&stage, &message, times(victim));
    assert_eq!(processes::lives(pid), victim == Victim::Daemon && agent != "gemini");
    if victim == Victim::Agent {
        // `times_told` has checked it.
        stage.shown("a message that is delivered again says so");
    }
    stage
}

fn in_a_tool(stage: Stage, victim: Victim, asks: bool) -> Stage {
    let allow = || {
        if asks {
            stage.is_asked();
            stage.ok(&["answer", "api", "allow"]);
        }
    };
    let gate = Gate::new(&stage);
    stage.new_session();
    let message = stage.sends(&format!("TURN-one RUN={};;", gate.wait()));
    allow();
    gate.is_reached(&stage);
    match victim {
        Victim::Daemon => {
            victim.kill(&stage);
            gate.let_go();
        }
        Victim::Agent | Victim::Shim | Victim::Bridge => {
            victim.dies_at(&gate, &stage);
            allow();
        }
    }
    is_done(&stage, &message, times(victim));
    stage
}

fn in_a_request(agent: &'static str, victim: Victim) -> Stage {
    let stage = Stage::new(agent);
    stage.new_session();
    let message = stage.sends(&format!("TURN-one RUN=touch {};;", stage.text("work/allowed")));
    stage.is_asked();
    let pid = stage.pid();
    victim.kill(&stage);
    match victim {
        Victim::Daemon => stage.is_asked(),
        Victim::Agent | Victim::Shim | Victim::Bridge => stage.is_asked_by_another(pid),
    }
    stage.ok(&["answer", "api", "allow"]);
    is_done(&stage, &message, times(victim));
    assert!(stage.world.path("work/allowed").exists());
    stage
}

/// One kill of one victim at one moment.
pub(crate) fn dies_with(agent: &'static str, victim: Victim, moment: Moment) {
    dies_in(agent, victim, moment).shown(&format!("{} killed {}", victim.word(), moment.word()));
}

/// The same for Claude Code.
fn dies(victim: Victim, moment: Moment) {
    dies_with("claude", victim, moment);
}

#[test]
fn a_daemon_in_the_handshake() {
    dies(Victim::Daemon, Moment::Handshake);
}

#[test]
fn a_daemon_in_mid_stream() {
    dies(Victim::Daemon, Moment::Stream);
}

#[test]
fn a_daemon_in_a_tool() {
    dies(Victim::Daemon, Moment::Tool);
}

#[test]
fn a_daemon_in_a_request() {
    dies(Victim::Daemon, Moment::Request);
}

#[test]
fn an_agent_in_the_handshake() {
    dies(Victim::Agent, Moment::Handshake);
}

#[test]
fn an_agent_in_mid_stream() {
    dies(Victim::Agent, Moment::Stream);
}

#[test]
fn an_agent_in_a_tool() {
    dies(Victim::Agent, Moment::Tool);
}

#[test]
fn an_agent_in_a_request() {
    dies(Victim::Agent, Moment::Request);
}

#[test]
fn a_shim_in_the_handshake() {
    dies(Victim::Shim, Moment::Handshake);
}

#[test]
fn a_shim_in_mid_stream() {
    dies(Victim::Shim, Moment::Stream);
}

#[test]
fn a_shim_in_a_tool() {
    dies(Victim::Shim, Moment::Tool);
}

#[test]
fn a_shim_in_a_request() {
    dies(Victim::Shim, Moment::Request);
}

fn dies_with_gemini(victim: Victim, moment: Moment) {
    let stage = match moment {
        Moment::Stream => in_mid_stream("gemini", victim),
        Moment::Tool => in_a_tool(with_a_shell(), victim, false),
        Moment::Handshake | Moment::Request => unreachable!("it has neither"),
    };
    stage.shown(&format!("{} killed {}", victim.word(), moment.word()));
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_daemon_in_mid_stream_of_gemini() {
    dies_with_gemini(Victim::Daemon, Moment::Stream);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn an_agent_in_mid_stream_of_gemini() {
    dies_with_gemini(Victim::Agent, Moment::Stream);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_shim_in_mid_stream_of_gemini() {
    dies_with_gemini(Victim::Shim, Moment::Stream);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_daemon_in_a_tool_of_gemini() {
    dies_with_gemini(Victim::Daemon, Moment::Tool);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn an_agent_in_a_tool_of_gemini() {
    dies_with_gemini(Victim::Agent, Moment::Tool);
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn a_shim_in_a_tool_of_gemini() {
    dies_with_gemini(Victim::Shim, Moment::Tool);
}

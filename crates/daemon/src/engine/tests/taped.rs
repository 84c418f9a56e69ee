//! A shim with a tape, played by hand.

use super::hand::{FIRST, PROCESS, Room};
use crate::ports::shims::observe::SessionSeen;
use crate::ports::tapes::{Passage, Taped};
use pinfold_agents::{EntryKind, Label};
use pinfold_core::event::{Machine, ShimSeen};
use pinfold_core::{RunNumber, Wall};
use pinfold_shim::tape::Position;
use pinfold_shim::{Can, Command, Keeping, Report, SaidUpTo, SayNumber, TapeReport, TapeStanding};
use pinfold_store::SessionId;
use serde_json::json;

/// A shim with its tape, and an agent that the test controls.
pub(super) struct TapedShim {
    pub(super) id: SessionId,
    pub(super) run: RunNumber,
    pub(super) tape: Vec<Taped>,
    pub(super) said: u64,
    /// What the agent was told: the label and the line.
    pub(super) lines: Vec<(String, String)>,
    pub(super) heard: u64,
    /// All other commands.
    pub(super) told: Vec<Command>,
}

/// The length of every entry.
const LENGTH: u64 = 100;

impl TapedShim {
    pub(super) fn new(id: SessionId) -> TapedShim {
        TapedShim { id, run: FIRST, tape: Vec::new(), said: 0, lines: Vec::new(), heard: 0, told: Vec::new() }
    }

    pub(super) fn end(&self) -> u64 {
        self.tape.last().map_or(0, |last| last.end)
    }

    pub(super) fn append(&mut self, what: EntryKind, bytes: &[u8]) {
        let position = self.end();
        let (run, at, bytes) = (self.run, Wall(0), bytes.to_vec());
        self.tape.push(Taped { position, end: position + LENGTH, run, at, what, bytes, lost: 0 });
    }

    pub(super) fn prints(&mut self, room: &mut Room, line: &str) {
        self.append(EntryKind::Out, format!("{line}\n").as_bytes());
        room.says(self.id, Report::Tape(TapeReport::Grown { run: self.run, end: Position(self.end()) }));
        self.serve(room);
    }

    pub(super) fn up_to(&self) -> SaidUpTo {
        SaidUpTo { said: SayNumber(self.said), written: SayNumber(self.said) }
    }

    /// Obeys, and serves reads of its tape, until nothing is left to do.
    pub(super) fn serve(&mut self, room: &mut Room) {
        loop {
            let (told, wanted) = (room.heard(self.id), std::mem::take(&mut room.desk.lock().stretches));
            if told.is_empty() && wanted.is_empty() {
                return;
            }
            for (stretch, then) in wanted {
                then(self.passage(stretch.from));
                room.settle();
            }
            for command in told {
                self.obey(room, command);
            }
        }
    }

    pub(super) fn passage(&self, from: u64) -> Passage {
        let entries = self.tape.iter().filter(|entry| entry.position >= from).cloned().collect();
        Passage { entries, next: self.end(), more: false, problem: None }
    }

    pub(super) fn obey(&mut self, room: &mut Room, command: Command) {
        if !matches!(command, Command::Say(_) | Command::Heard { .. }) {
            return self.told.push(command);
        }
        if let Command::Heard { to, .. } = command {
            self.heard = to.0;
        }
        if let Command::Say(say) = command {
            if say.number.0 == self.said + 1 {
                let label = Label::from_text(say.label.as_str().as_bytes());
                self.append(EntryKind::Said { number: say.number.0, label }, &[]);
                self.said = say.number.0;
                let line = String::from_utf8(say.bytes).unwrap();
                self.lines.push((say.label.as_str().to_owned(), line));
            }
            let report = TapeReport::Said { run: self.run, said: self.up_to() };
            room.says(self.id, Report::Tape(report));
        }
    }

    /// The labels of what was said.
    pub(super) fn labels(&self) -> Vec<&str> {
        self.lines.iter().map(|(label, _)| label.split(' ').next().unwrap()).collect()
    }

    /// The number under which something was last said.
    pub(super) fn number(&self, what: &str) -> usize {
        self.labels().iter().rposition(|label| *label == what).expect("it was said") + 1
    }

    pub(super) fn is_ready(&mut self, room: &mut Room) {
        let number = self.number("handshake");
        self.prints(room, &json!({ "type": "hello", "id": number }).to_string());
    }

    pub(super) fn takes(&mut self, room: &mut Room) {
        let number = self.number("prompt");
        self.prints(room, &json!({ "type": "began", "id": number }).to_string());
    }

    pub(super) fn answers(&mut self, room: &mut Room, answer: &str) {
        let number = self.number("prompt");
        self.prints(room, &json!({ "type": "ended", "id": number, "answer": answer }).to_string());
    }

    /// The next daemon finds it with its agent.
    pub(super) fn is_found(&mut self, room: &mut Room) {
        let (_, then) = room.desk.lock().looks.pop().unwrap();
        let keeping = Keeping::Running { run: self.run, process: PROCESS, at: Wall(0) };
        let mut up = room.up(self.id, keeping, Vec::new());
        up.welcome.can = Can { tape: true, hold: true, ..Can::default() };
        up.welcome.tape = Some(self.standing());
        let seen = ShimSeen::Keeping { run: self.run, process: PROCESS };
        then(SessionSeen { shim: Some(up), ..SessionSeen::of(Machine::Same, seen, Vec::new()) });
        room.settle();
        self.serve(room);
    }

    pub(super) fn standing(&self) -> TapeStanding {
        let (first, end, heard) = (Position(0), Position(self.end()), Position(0));
        TapeStanding { run: self.run, first, end, heard, said: self.up_to(), flow: Default::default() }
    }
}

pub(super) fn scripted() -> serde_json::Value {
    json!({ "protocol": "scripted", "agent": "player" })
}

/// A session with a tape whose agent has started.
pub(super) fn started(room: &mut Room) -> TapedShim {
    started_as(room, "api", &scripted())
}

/// The same with this name and definition.
pub(super) fn started_as(room: &mut Room, name: &str, more: &serde_json::Value) -> TapedShim {
    let id = room.starting(name, more);
    comes(room, id);
    let mut shim = TapedShim::new(id);
    room.says(id, Report::Started { run: FIRST, process: PROCESS, at: Wall(0) });
    shim.serve(room);
    shim
}

/// The shim that was ordered says welcome; it can write tapes.
pub(super) fn comes(room: &mut Room, id: SessionId) {
    let (birth, held, then) = room.desk.lock().births.pop().expect("a shim is to be started");
    assert!(birth.start.tape.is_some() && birth.opening.tape.is_some());
    held.surrender();
    let mut up = room.up(id, Keeping::Standing, Vec::new());
    up.welcome.can = Can { tape: true, hold: true, ..Can::default() };
    then(Ok(Box::new(up)));
    room.settle();
}

pub(super) fn ready(room: &mut Room) -> TapedShim {
    let mut shim = started(room);
    shim.is_ready(room);
    shim
}

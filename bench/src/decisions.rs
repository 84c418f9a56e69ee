//! How many decisions the core makes per second, on one processor core.

use crate::table::{Table, median};
use pinfold_core::event::{Ask, ConsumerKind, MessageEvent, RunEvent, Shim, TurnEnd};
use pinfold_core::life::Process;
use pinfold_core::{
    Boot, ConsumerId, Ended, Event, Exit, MessageId, Mode, Now, RunNumber, Session, Spec, Wall,
};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Calls of `handle` in one round; the workloads take turns.
const CALLS: u32 = 400_000;
const ROUNDS: usize = 7;
const MUST: f64 = 1_000_000.0;

/// Makes the next event for a session, whatever its state.
type Workload = fn(&Session, u32) -> Event;

pub(crate) fn run() {
    let workloads: [(&str, Mode, Workload); 4] = [
        ("timers that are not due", Mode::Always, |_, _| Event::Ticked),
        ("a chat: message, turn, answer", Mode::OnDemand, chat),
        ("a crash loop: exit, wait, start", Mode::Always, crash_loop),
        ("people and consumers", Mode::OnDemand, people),
    ];
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); workloads.len()];
    for _ in 0..ROUNDS {
        for (at, (_, mode, workload)) in workloads.iter().enumerate() {
            seconds[at].push(round(*mode, *workload));
        }
    }
    let mut table = Table::new(["decisions of the core", "per second", "each", "", "must"]);
    for ((name, ..), seconds) in workloads.iter().zip(seconds) {
        let each = median(seconds) / f64::from(CALLS);
        let verdict = if each * MUST <= 1.0 { ">= 1 M/s: yes" } else { ">= 1 M/s: NO" };
        let cells = [format!("{:.2} M", 1e-6 / each), format!("{:.0} ns", each * 1e9)];
        table.row([
            (*name).to_owned(),
            cells[0].clone(),
            cells[1].clone(),
            String::new(),
            verdict.to_owned(),
        ]);
    }
    table.print();
}

/// Returns the seconds for one round of calls, including making the events.
fn round(mode: Mode, workload: Workload) -> f64 {
    let mut session = Session::new(Spec::new(mode));
    let mut now = Now { wall: Wall(1_700_000_000_000), boot: Boot(1_000_000), ..Now::default() };
    let _ = session.handle(&Event::Created, now);
    let begin = Instant::now();
    for call in 0..CALLS {
        now.boot = now.boot + Duration::from_millis(1);
        let event = workload(&session, call);
        let _ = black_box(session.handle(&event, now));
    }
    begin.elapsed().as_secs_f64()
}

fn of_run(session: &Session, event: RunEvent) -> Event {
    Event::Run { run: session.live_run().unwrap_or(RunNumber(0)), event }
}

/// Returns the next event towards a running session; `None` if it runs.
fn bring_up(session: &Session) -> Option<Event> {
    use pinfold_core::State;
    let starting = session.state() == State::Starting;
    if session.state() == State::Running {
        None
    } else if starting {
        Some(of_run(session, RunEvent::Started(Process { pid: 1, fence: 1 })))
    } else {
        Some(Event::Asked(Ask::Start))
    }
}

fn chat(session: &Session, call: u32) -> Event {
    let reserved = of_run(session, RunEvent::Reserved);
    if let Some(event) = bring_up(session) {
        return if call.is_multiple_of(2) { reserved } else { event };
    }
    match session.inbox().in_flight() {
        None => {
            let message = MessageId(u128::from(call) + 1);
            Event::Message(MessageEvent::Sent { message, key: None, known: None })
        }
        Some(turn) => {
            let run = session.live_run().unwrap_or(RunNumber(0));
            let (message, how) = (turn.message, TurnEnd::Answered);
            match turn.taken {
                false => Event::Message(MessageEvent::Taken { run, message }),
                true => Event::Message(MessageEvent::TurnEnded { run, message, how }),
            }
        }
    }
}

fn crash_loop(session: &Session, call: u32) -> Event {
    let reserved = of_run(session, RunEvent::Reserved);
    if let Some(event) = bring_up(session) {
        return if call.is_multiple_of(2) { reserved } else { event };
    }
    let ended = Ended::new(Exit::Code(1), Duration::from_millis(1_200));
    of_run(session, RunEvent::Exited { ended, shim: Shim::Standing, holder: None })
}

fn people(session: &Session, call: u32) -> Event {
    let consumer = ConsumerId(u64::from(call / 2 % 8));
    match call % 4 {
        0 => Event::ConsumerJoined { consumer, kind: ConsumerKind::Watch },
        1 => Event::ConsumerLeft { consumer },
        2 => bring_up(session).unwrap_or(Event::Asked(Ask::Interrupt)),
        _ => Event::Ticked,
    }
}

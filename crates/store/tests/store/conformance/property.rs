//! Whatever happens to a session, what is loaded is what was decided.

use crate::conformance::Ground;
use crate::driven::{Driven, answer, text};
use crate::home::{durable, whole};
use pinfold_core::event::{
    ConsumerKind, Machine, MessageEvent, RunEvent, Shim, ShimSeen, StartFailure, TurnEnd,
};
use pinfold_core::guest::{Attaching, Welcomes};
use pinfold_core::life::{CannotStart, HolderSeen, Process, StartRefused};
use pinfold_core::rules::memory::{Reading, ReadingSource};
use pinfold_core::{
    Ask, ConsumerId, Ended, Event, Exit, MessageId, Mode, Policy, RunNumber, Session, ShimSetup, Spec, Wall,
    World,
};
use pinfold_store::{Batch, EventQuery, MessageState, Reader, Store, Take};
use std::time::Duration;

/// The splitmix64 generator: small, and the same everywhere.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.roll() % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()].clone()
    }

    /// Returns a fraction whose decimal form is long.
    #[expect(clippy::cast_precision_loss, reason = "any fraction will do")]
    fn fraction(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn spec(&mut self) -> Spec {
        let policy = Policy {
            backoff_jitter: self.fraction(),
            memory_warn: self.fraction(),
            crash_hard_limit: 4,
            idle_after: Duration::from_millis(40),
            watchdog: Duration::from_millis(self.pick(&[0, 60])),
            ..Policy::default()
        };
        let mode = self.pick(&[Mode::OnDemand, Mode::Always, Mode::Once]);
        Spec {
            mode,
            policy,
            memory_limit: Some(1000),
            interactive: self.one_in(2),
            interactive_when_named: self.one_in(4),
            attach: self.pick(&[Attaching::Takeover, Attaching::Join(Welcomes::AtOnce)]),
            budget: None,
            turn_time: None,
            run_per_message: self.one_in(2),
            setup: ShimSetup(self.pick(&[0, 1])),
            conversation: self.pick(&[0, 1]),
        }
    }

    pub(super) fn event(&mut self, session: &Session, failed: &[MessageId]) -> Event {
        match self.below(12) {
            0 => Event::Asked(self.ask()),
            1 => self.world(session),
            2 => self.pick(&[Event::Ticked, Event::HolderGone, Event::ShimLeft, Event::DownAsked]),
            3 => Event::SpecChanged(Box::new(self.spec())),
            4 => self.consumer(),
            5 | 6 => Event::Message(self.sent()),
            7 => Event::Message(self.turn(session, failed)),
            _ => Event::Run { run: self.run(session), event: self.run_event() },
        }
    }

    fn ask(&mut self) -> Ask {
        let consumer = ConsumerId(self.below(3));
        let (include_active, own, urgent) = (self.one_in(2), self.one_in(2), self.one_in(2));
        self.pick(&[
            Ask::Start,
            Ask::Start,
            Ask::Stop { grace: None },
            Ask::Restart,
            Ask::Interrupt,
            Ask::Archive,
            Ask::Restore,
            Ask::Restore,
            Ask::Purge { include_active, own },
            Ask::Takeover { consumer, urgent },
        ])
    }

    fn world(&mut self, session: &Session) -> Event {
        let run = self.run(session);
        let process = Process { pid: 7, fence: self.below(1 << 40) };
        let keeping = ShimSeen::Keeping { run, process };
        let shim = self.pick(&[ShimSeen::Nobody, ShimSeen::Standing, keeping, ShimSeen::Mute]);
        let machine = self.pick(&[Machine::Same, Machine::Restarted, Machine::PutBack]);
        let exits = if self.one_in(2) { vec![(run, self.ended())] } else { Vec::new() };
        Event::DaemonStarted(World::new(machine, shim, exits))
    }

    fn consumer(&mut self) -> Event {
        let consumer = ConsumerId(self.below(3));
        let kind = self.pick(&[ConsumerKind::Attach, ConsumerKind::Watch]);
        self.pick(&[Event::ConsumerJoined { consumer, kind }, Event::ConsumerLeft { consumer }])
    }

    fn sent(&mut self) -> MessageEvent {
        let message = MessageId(u128::from(self.roll()) << 64 | u128::from(self.roll()));
        let key = self.one_in(3).then(|| format!("key {}", self.below(40)));
        MessageEvent::Sent { message, key, known: None }
    }

    fn turn(&mut self, session: &Session, failed: &[MessageId]) -> MessageEvent {
        let run = self.run(session);
        let waiting: Vec<MessageId> = session.inbox().waiting().map(|queued| queued.message).collect();
        if self.one_in(8) && !failed.is_empty() {
            return MessageEvent::Retried {
                message: self.pick(failed),
                read: pinfold_core::inbox::Read::Maybe,
            };
        }
        if self.one_in(8) && !waiting.is_empty() {
            return MessageEvent::Cancelled { message: self.pick(&waiting) };
        }
        let message = session.inbox().in_flight().map_or(MessageId(1), |turn| turn.message);
        let how = self.pick(&[TurnEnd::Answered, TurnEnd::Answered, TurnEnd::Failed, TurnEnd::Interrupted]);
        self.pick(&[MessageEvent::Taken { run, message }, MessageEvent::TurnEnded { run, message, how }])
    }

    /// Returns mostly the live run, now and then one that is over or unheard of.
    fn run(&mut self, session: &Session) -> RunNumber {
        let last = session.runs().last;
        if self.one_in(10) {
            self.pick(&[last, last.next(), RunNumber(1)])
        } else {
            session.live_run().unwrap_or(last)
        }
    }

    fn run_event(&mut self) -> RunEvent {
        let holder = self.one_in(2).then(|| {
            let (resource, since) = ("/tmp/ü".to_owned(), Some(Wall(3)));
            Box::new(HolderSeen { resource, pid: Some(9), command: None, session: None, since })
        });
        let missing = CannotStart::ProgramMissing { program: "nope".into() };
        let refused = |errno| StartFailure::Refused(StartRefused { errno: Some(errno), text: "ü".into() });
        let (shortage, too_long) = (refused(24), refused(7));
        let failure =
            self.pick(&[StartFailure::Hopeless(missing), shortage, too_long, StartFailure::ShimGone]);
        let (ended, shim) = (self.ended(), self.pick(&[Shim::Absent, Shim::Standing]));
        let reading = Reading::Bytes(self.below(2000));
        let process = Process { pid: 4711, fence: self.below(1 << 40) };
        self.pick(&[
            RunEvent::Reserved,
            RunEvent::Reserved,
            RunEvent::Started(process),
            RunEvent::Started(process),
            RunEvent::LockBusy { holder: holder.clone() },
            RunEvent::StartFailed(failure),
            RunEvent::VendorBusy { holder: holder.clone() },
            RunEvent::Exited { ended, shim, holder },
            RunEvent::SignOfLife,
            RunEvent::MemoryRead { reading, source: ReadingSource::Shares },
        ])
    }

    fn ended(&mut self) -> Ended {
        let exit =
            self.pick(&[Exit::Code(0), Exit::Code(1), Exit::Code(75), Exit::Signal(9), Exit::ShimLost]);
        let mut ended = Ended::new(exit, Duration::from_micros(self.below(2_000_000)));
        ended.forced = self.one_in(4);
        ended
    }
}

/// Checks that the rows of the messages say what the core's inbox says.
fn assert_inbox(reader: &Reader, driven: &Driven) {
    let inbox = driven.session.inbox();
    let rows = reader.messages(driven.id, None, Take::All).unwrap();
    let count = |state| rows.iter().filter(|row| row.state == state).count();
    let (done, failed) = inbox.settled();
    assert_eq!((count(MessageState::Done) as u64, count(MessageState::Failed) as u64), (done, failed));
    let row = |message: MessageId| rows.iter().find(|row| row.id == message.into()).unwrap();
    for queued in inbox.waiting() {
        let stored = row(queued.message);
        assert_eq!((stored.state, stored.tries), (MessageState::Queued, queued.tries));
    }
    if let Some(turn) = inbox.in_flight() {
        let state = if turn.taken { MessageState::Delivered } else { MessageState::Queued };
        assert_eq!((row(turn.message).state, row(turn.message).tries), (state, turn.tries));
    }
    assert_eq!(
        rows.len() as u64,
        done + failed + inbox.queued() as u64 + u64::from(inbox.in_flight().is_some())
    );
    for stored in &rows {
        assert_eq!(stored.text, text(stored.id.into()));
        let answered = (stored.state == MessageState::Done).then(|| answer(stored.id.into()));
        assert_eq!(stored.answer, answered);
        if let Some(key) = &stored.key {
            assert_eq!(driven.keys.get(key), Some(&stored.id.into()));
        }
    }
}

/// Checks that no run is open but the live one.
fn assert_runs(reader: &Reader, driven: &Driven) {
    let runs = reader.runs(driven.id, Take::All).unwrap();
    let open: Vec<RunNumber> =
        runs.iter().filter(|run| run.ended_at.is_none()).map(|run| run.number).collect();
    let settled = driven.session.runs().settled;
    assert!(open.iter().all(|run| *run > settled), "{open:?} are open, {settled} is settled");
    if let Some(live) =
        driven.session.live_run().filter(|live| *live <= driven.session.runs().last && *live > settled)
    {
        assert!(open.contains(&live), "{live} is not among {open:?}");
    }
}

fn assert_same(reader: &Reader, driven: &Driven, events: u64) {
    let stored = whole(reader.session(driven.id).unwrap().unwrap());
    assert_eq!(stored.session, durable(&driven.session));
    // Compared with what was never text: fractions come back to the last bit.
    assert_eq!(stored.session.spec(), driven.session.spec());
    assert_eq!(stored.archived_at.is_some(), driven.session.state() == pinfold_core::State::Archived);
    assert_inbox(reader, driven);
    assert_runs(reader, driven);
    let seqs: Vec<u64> =
        reader.events(&EventQuery::default()).unwrap().iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=events).collect::<Vec<_>>());
}

fn what_is_loaded_is_what_was_decided(ground: &Ground) {
    for seed in 0..20 {
        let mut dice = Dice(seed);
        let ground = ground.another();
        let (mut driven, create) = Driven::new(seed, "api", dice.spec());
        let mut events = commit_all(&ground.open(), vec![create]);
        for _ in 0..10 {
            let batches = (0..40).map(|_| {
                driven.pass(Duration::from_millis(dice.below(30)));
                let event = dice.event(&driven.session, &driven.failed);
                driven.handle(&event)
            });
            events = events.max(commit_all(&ground.open(), batches.collect()));
            assert_same(&ground.open().reader().unwrap(), &driven, events);
        }
    }
}

/// Commits all in groups, as they come, and returns the number of the last event.
fn commit_all(store: &Store, batches: Vec<Batch>) -> u64 {
    let tickets: Vec<_> = batches.into_iter().map(|batch| store.commit(batch)).collect();
    let ends = tickets.into_iter().map(|ticket| ticket.wait().unwrap().seqs.end);
    ends.max().unwrap_or(0).saturating_sub(1)
}

crate::conformance::on_every_back_end! {
    what_is_loaded_is_what_was_decided,
}

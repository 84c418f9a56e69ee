//! Ends that are not in the incident table: what each means to a session, and what is recorded about it.

use crate::driver::{Driver, End, always, on_demand};
use pinfold_core::decision::{Record, RunExited};
use pinfold_core::event::{Ask, RunEvent, Shim, ShimSeen};
use pinfold_core::exit::{Ended, Exit, Recognised};
use pinfold_core::life::{BlockedOn, FailCause, HolderSeen};
use pinfold_core::lost::{LostConversation, LostHow};
use pinfold_core::rules::WaitReason;
use pinfold_core::rules::memory::{Reading, ReadingSource};
use pinfold_core::{Action, Event, Life, Mode, Policy, Spec, State, Verdict, Wall};
use std::time::Duration;

const HOUR: u64 = 3_600_000;
const CRASH: End = End::Code(1);

#[test]
fn exit_78_is_hopeless_and_never_restarted() {
    for code in [78, 126, 127] {
        let mut driver = always(Policy::default());
        driver.exits(code);
        assert_eq!((driver.session.state(), driver.session.next_deadline()), (State::Failed, None));
        for event in [Event::Ticked, Event::HolderGone, Event::ShimLeft] {
            driver.pass(HOUR);
            driver.send(event);
        }
        assert_eq!((driver.starts, driver.session.state()), (1, State::Failed));
    }
}

#[test]
fn a_stale_vendor_id_or_a_missing_login_is_hopeless() {
    for what in [Recognised::StaleId, Recognised::LoginNeeded] {
        let mut driver = always(Policy::default());
        driver.ends(End::Recognised(what), 1_000);
        assert_eq!(driver.session.life(), &Life::Failed { cause: FailCause::Ended(Verdict::Hopeless) });
    }
}

/// A session whose agent was refused the conversation that it was to continue.
fn lost(driver: &mut Driver, how: LostHow) -> LostConversation {
    let run = driver.run();
    let lost = LostConversation { run, id: Some("s-1".into()), how, place: Some("~/.x".into()), text: None };
    driver.of_run(run, RunEvent::ConversationLost(Box::new(lost.clone())));
    lost
}

#[test]
fn a_lost_conversation_is_failed_with_its_queue_and_ends_by_a_new_one() {
    let mut driver = on_demand();
    driver.message();
    driver.takes();
    lost(&mut driver, LostHow::Gone);
    let told = |record: &Record| matches!(record, Record::ConversationLost { how: LostHow::Gone, .. });
    assert_eq!(driver.count(told), 1);
    lost(&mut driver, LostHow::Gone);
    assert_eq!(driver.count(told), 1, "once for each run");
    driver.ends(End::Recognised(Recognised::StaleId), 1_000);
    assert_eq!(driver.session.life(), &Life::Failed { cause: FailCause::ConversationLost });
    assert_eq!((driver.session.inbox().queued(), driver.crashes(), driver.starts), (1, 0, 1));
    assert_eq!(
        driver.session.explain_as("api", driver.now),
        "failed: the conversation of `api` is gone from ~/.x; run `pinfold set api --new-conversation` to begin a new one; a message is queued"
    );
    // Another definition alone does not help.
    driver.send(Event::SpecChanged(Box::new(Spec { memory_limit: Some(1), ..Spec::new(Mode::OnDemand) })));
    assert_eq!(driver.session.state(), State::Failed);
    driver.send(Event::SpecChanged(Box::new(Spec { conversation: 1, ..Spec::new(Mode::OnDemand) })));
    assert_eq!((driver.session.talk().lost(), driver.session.inbox().queued()), (None, 0));
    assert_eq!(driver.starts, 2, "the queued message is delivered");
}

#[test]
fn a_lost_conversation_that_answers_again_is_not_lost() {
    let mut driver = on_demand();
    driver.message();
    lost(&mut driver, LostHow::Gone);
    driver.ends(End::Recognised(Recognised::StaleId), 1_000);
    driver.ask(Ask::Start);
    driver.takes();
    assert!(driver.session.talk().lost().is_some());
    driver.answers();
    assert_eq!((driver.session.talk().lost(), driver.session.state()), (None, State::Running));
}

#[test]
fn an_agent_that_opened_another_conversation_is_ended_and_its_message_waits_at_no_cost() {
    let mut driver = on_demand();
    driver.message();
    driver.takes();
    lost(&mut driver, LostHow::Replaced);
    assert_eq!(driver.session.state(), State::Stopping);
    driver.ends(End::Recognised(Recognised::StaleId), 1_000);
    assert_eq!(driver.session.life(), &Life::Failed { cause: FailCause::ConversationLost });
    let waiting: Vec<_> = driver.session.inbox().waiting().map(|queued| queued.tries).collect();
    assert_eq!((waiting, driver.crashes()), (vec![0], 0));
}

#[test]
fn what_was_answered_in_the_conversation_is_counted_from_its_choice() {
    let mut driver = on_demand();
    let answered = |driver: &Driver| driver.session.talk().is_answered(driver.session.inbox().settled().0);
    assert!(!answered(&driver));
    driver.message();
    driver.takes();
    driver.answers();
    assert!(answered(&driver));
    let chosen =
        |conversation| Event::SpecChanged(Box::new(Spec { conversation, ..Spec::new(Mode::OnDemand) }));
    driver.send(chosen(1));
    assert!(answered(&driver), "this run is in that one");
    driver.exits(0);
    assert!(!answered(&driver));
    driver.message();
    driver.takes();
    let run = driver.run();
    driver.of_run(run, RunEvent::VendorLearned { id: "one".into() });
    driver.answers();
    assert!(answered(&driver));
    driver.of_run(run, RunEvent::VendorLearned { id: "two".into() });
    assert!(!answered(&driver), "nothing was answered in this one");
}

#[test]
fn a_usage_limit_is_waited_for_only_by_consent() {
    let limit = |resets| End::Recognised(Recognised::UsageLimit { resets });
    let mut driver = always(Policy::default());
    driver.ends(limit(None), 1_000);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Failed, 0));

    let mut driver = always(Policy { limit_resume: true, ..Policy::default() });
    let resets = Wall(driver.now.wall.0 + 90 * 60_000 + 1_000);
    driver.ends(limit(Some(resets)), 1_000);
    assert_eq!((driver.wait(), driver.crashes()), (Duration::from_secs(90 * 60), 0));
    assert_eq!(driver.session.state(), State::Running);
}

#[test]
fn out_of_memory_counts_as_a_crash_and_is_named() {
    let mut driver = always(Policy::default());
    driver.ends(End::Oom, 500);
    assert_eq!(driver.crashes(), 1);
    let named = |record: &Record| matches!(record, Record::Backoff { reason: WaitReason::OutOfMemory, .. });
    assert_eq!(driver.count(named), 1);
    assert!(driver.session.explain(driver.now).contains("killed by the kernel for memory"));
}

#[test]
fn our_own_lock_busy_is_blocked_at_once_and_woken_by_its_release() {
    let mut driver = on_demand();
    driver.hear(Event::Asked(Ask::Start));
    let run = driver.run();
    let decision = driver.hear(Event::Run { run, event: RunEvent::LockBusy { holder: None } });
    assert_eq!(driver.session.life(), &Life::Blocked { holder: None, on: BlockedOn::OurLock });
    assert_eq!(decision.actions, [Action::AwaitHolder]);
    assert_eq!((driver.starts, driver.crashes()), (0, 0));
    driver.send(Event::HolderGone);
    assert_eq!(driver.session.state(), State::Running);
}

#[test]
fn a_vendor_session_that_a_program_outside_has_is_waited_for_with_our_own_locks_free() {
    let mut driver = on_demand();
    driver.hear(Event::Asked(Ask::Start));
    let run = driver.run();
    driver.hear(Event::Run { run, event: RunEvent::Reserved });
    let decision = driver.hear(Event::Run { run, event: RunEvent::LockBusy { holder: None } });
    assert_eq!(driver.session.life(), &Life::Blocked { holder: None, on: BlockedOn::OurLock });
    assert_eq!(decision.actions, [Action::Release, Action::AwaitHolder]);
    assert_eq!((driver.starts, driver.crashes()), (0, 0));
    driver.send(Event::HolderGone);
    assert_eq!((driver.session.state(), driver.starts), (State::Running, 1));
}

#[test]
fn a_shim_that_stands_gives_its_locks_back_when_a_program_outside_has_the_vendor_session() {
    let mut driver = always(Policy::default());
    let ended = Ended::new(Exit::Code(0), Duration::from_secs(1));
    let exited = RunEvent::Exited { ended, shim: Shim::Standing, holder: None };
    let decision = driver.hear(Event::Run { run: driver.run(), event: exited });
    assert!(matches!(decision.actions[..], [Action::Spawn { .. }]), "{:?}", decision.actions);
    let run = driver.run();
    let decision = driver.hear(Event::Run { run, event: RunEvent::LockBusy { holder: None } });
    assert_eq!(decision.actions, [Action::Release, Action::AwaitHolder]);
    assert_eq!((driver.session.state(), driver.session.shim()), (State::Blocked, Shim::Absent));
    driver.send(Event::HolderGone);
    assert_eq!((driver.session.state(), driver.starts), (State::Running, 2));
}

#[test]
fn a_vendor_session_found_busy_ends_the_newer_run_as_contended() {
    let mut driver = always(Policy::default());
    let decision = driver.of_run(driver.run(), RunEvent::VendorBusy { holder: None });
    assert!(matches!(decision.actions[..], [Action::Stop { .. }]));
    driver.ends(End::Signal(15), 1_000);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Backoff, 0));
    let contended =
        |record: &Record| matches!(record, Record::RunExited(exit) if exit.verdict == Verdict::Contended);
    assert_eq!(driver.count(contended), 1);
    // Nothing reports when the vendor's other program is gone.
    driver.wait();
    assert_eq!((driver.session.state(), driver.starts), (State::Running, 2));

    driver.of_run(driver.run(), RunEvent::VendorBusy { holder: None });
    let decision = driver.ends_held_by(End::Signal(15), 1_000, Some("vendor:x"));
    assert!(decision.actions.contains(&Action::AwaitHolder));
    driver.send(Event::HolderGone);
    assert_eq!((driver.session.state(), driver.starts), (State::Running, 3));
}

#[test]
fn a_once_session_runs_once() {
    for (code, state) in [(0, State::Stopped), (1, State::Failed), (75, State::Failed), (78, State::Failed)] {
        let mut driver = Driver::new(Spec::new(Mode::Once));
        assert_eq!(driver.session.state(), State::Running);
        driver.exits(code);
        assert_eq!((driver.session.state(), driver.session.next_deadline()), (state, None), "code {code}");
        assert_eq!(driver.starts, 1);
    }
}

#[test]
fn a_short_gap_keeps_the_locks_and_a_longer_one_gives_them_back() {
    let mut driver = always(Policy::default());
    for expected in [Shim::Absent, Shim::Standing, Shim::Standing, Shim::Absent] {
        driver.ends(CRASH, 1_000);
        assert_eq!(driver.session.shim(), expected, "{}", driver.session.explain(driver.now));
        if driver.session.state() == State::Backoff {
            driver.wait();
        }
    }
}

#[test]
fn a_shim_that_left_during_a_gap_costs_nothing_but_a_new_reservation() {
    let mut driver = always(Policy::default());
    driver.ends_and_waits(CRASH, 1_000);
    driver.ends(CRASH, 1_000);
    driver.send(Event::ShimLeft);
    driver.wait();
    assert_eq!(driver.session.state(), State::Running);
    assert!(matches!(
        driver.actions[driver.actions.len() - 2..],
        [Action::Reserve { .. }, Action::Spawn { .. }]
    ));
}

#[test]
fn a_watchdog_that_is_not_fed_is_a_crash_and_sleep_is_no_silence_of_the_fed() {
    let mut driver = always(Policy { watchdog: Duration::from_secs(30), ..Policy::default() });
    driver.pass(29_000);
    driver.of_run(driver.run(), RunEvent::SignOfLife);
    assert_eq!(driver.wait(), Duration::from_secs(30));
    assert_eq!(driver.session.state(), State::Stopping);
    driver.ends(End::Signal(9), 1_000);
    assert_eq!(driver.crashes(), 1);
}

#[test]
fn a_run_over_its_memory_limit_is_drained_and_named() {
    let mut driver = Driver::new(Spec { memory_limit: Some(1_000), ..Spec::new(Mode::Always) });
    let run = driver.run();
    let read = |bytes, source| RunEvent::MemoryRead { reading: Reading::Bytes(bytes), source };
    let decision = driver.of_run(run, read(1_000, ReadingSource::Sum));
    assert_eq!(decision.actions, [Action::ConfirmMemory { run }], "a sum alone drains nobody");
    driver.of_run(run, read(1_001, ReadingSource::Shares));
    assert_eq!(driver.session.state(), State::Stopping);
    assert_eq!(driver.count(|record| *record == Record::Drained { bytes: 1_001, limit: 1_000 }), 1);
    driver.ends(End::Signal(9), 1_000);
    assert_eq!((driver.session.state(), driver.crashes()), (State::Running, 0));
    let drained =
        |record: &Record| matches!(record, Record::RunExited(exit) if exit.verdict == Verdict::Drained);
    assert_eq!(driver.count(drained), 1);
    assert_eq!(driver.session.memory_bytes(), None, "the next run is not judged by the last one's memory");
}

#[test]
fn memory_of_an_older_run_or_without_a_limit_means_nothing() {
    let mut driver = always(Policy::default());
    let event = RunEvent::MemoryRead { reading: Reading::Bytes(u64::MAX), source: ReadingSource::Cgroup };
    driver.of_run(driver.run(), event);
    assert_eq!(driver.session.state(), State::Running);
}

#[test]
fn a_stepped_clock_and_a_sleeping_machine_change_no_verdict() {
    for (wall, boot) in [(3_600_000_i64, 0_u64), (-3_600_000, 0), (8 * 3_600_000, 8 * 3_600_000)] {
        let mut driver = always(Policy::default());
        driver.ends_and_waits(CRASH, 1_000);
        driver.now.wall = Wall(driver.now.wall.0 + wall);
        driver.now.boot = driver.now.boot + Duration::from_millis(boot);
        driver.ends(CRASH, 1_000);
        assert_eq!(driver.crashes(), 2, "asleep is not stable");
    }
}

#[test]
fn every_end_is_recorded_once_with_its_facts() {
    let mut driver = always(Policy::default());
    let run = driver.run();
    let decision = driver.ends(End::Signal(11), 2_500);
    driver.send(Event::Run {
        run,
        event: RunEvent::Exited {
            ended: crate::driver::ended(End::Signal(11), 2_500),
            shim: Shim::Standing,
            holder: None,
        },
    });
    let exits: Vec<&RunExited> = driver
        .records
        .iter()
        .filter_map(|record| match record {
            Record::RunExited(exit) => Some(&**exit),
            _ => None,
        })
        .collect();
    assert_eq!(exits.len(), 1, "an exit that is reported twice is one exit");
    assert_eq!((exits[0].run, exits[0].verdict, exits[0].crashes), (run, Verdict::Crash, 1));
    assert_eq!((exits[0].exit.code(), exits[0].exit.signal()), (None, Some(11)));
    assert_eq!(exits[0].lived, Duration::from_millis(2_500));
    assert_eq!(decision.why.to_string(), "it was killed by signal 11 (crash); the next run starts at once");
}

fn holder(pid: u32) -> HolderSeen {
    let command = Some("backup".to_owned());
    HolderSeen { resource: "/src/.lock".into(), pid: Some(pid), command, session: None, since: None }
}

#[test]
fn a_contended_session_names_the_holder_that_is_found_later_and_runs_when_it_exits() {
    for blocked in [false, true] {
        let mut driver = always(Policy::default());
        if blocked {
            for _ in 0..5 {
                driver.ends_and_waits(End::Recognised(Recognised::VendorLock), 10);
            }
        }
        driver.ends(End::Recognised(Recognised::VendorLock), 10);
        let starts = driver.starts;
        driver.actions.clear();
        driver.send(Event::HolderFound(Box::new(holder(4711))));
        assert!(driver.actions.contains(&Action::AwaitHolder), "{blocked}");
        assert_eq!(driver.session.life().holder().and_then(|holder| holder.pid), Some(4711));
        let why = driver.session.explain(driver.now);
        assert!(why.contains("`/src/.lock` is held by another program (pid 4711, backup)"), "{why}");
        // One is enough, and a daemon that comes back watches it again.
        driver.send(Event::HolderFound(Box::new(holder(4712))));
        driver.actions.clear();
        driver.daemon_restarts(ShimSeen::Nobody, Vec::new());
        assert!(driver.actions.contains(&Action::AwaitHolder), "{blocked}");
        assert_eq!(driver.session.life().holder().and_then(|holder| holder.pid), Some(4711));
        driver.send(Event::HolderGone);
        assert_eq!((driver.session.state(), driver.starts), (State::Running, starts + 1), "{blocked}");
        driver.send(Event::HolderFound(Box::new(holder(4711))));
        assert_eq!(driver.session.life().holder(), None, "it runs");
    }
}

#[test]
fn a_run_that_yields_to_an_unknown_holder_is_retried_by_the_rules_of_contention() {
    let mut driver = always(Policy::default());
    let mut waits = Vec::new();
    for _ in 0..5 {
        let run = driver.run();
        driver.of_run(run, RunEvent::VendorBusy { holder: None });
        driver.ends(End::Signal(15), 10);
        waits.push(driver.wait().as_secs());
    }
    assert_eq!(waits, [10, 20, 30, 40, 50]);
    let run = driver.run();
    driver.of_run(run, RunEvent::VendorBusy { holder: None });
    driver.ends(End::Signal(15), 10);
    assert_eq!((driver.session.state(), driver.wait().as_secs()), (State::Blocked, 600));
}

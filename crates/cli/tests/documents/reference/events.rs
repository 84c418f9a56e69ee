//! The kinds of events, from the core's table; the fields of those that follow from decisions, from the store.

use super::{check, made_from};
use pinfold_core::decision::{RunExited, TakeoverEnd};
use pinfold_core::ids::RequestNumber;
use pinfold_core::inbox::MessageFailure;
use pinfold_core::life::Purpose;
use pinfold_core::lost::LostHow;
use pinfold_core::rules::{WaitReason, Warning};
use pinfold_core::talk::{Permit, RequestKind};
use pinfold_core::{ConsumerId, EventKind, Exit, MessageId, Record, RunNumber, Verdict};
use std::collections::BTreeMap;
use std::time::Duration;

/// What each kind means; a new one gets a row here.
const MEANINGS: &[(&str, &str)] = &[
    ("session_created", "A session was created."),
    ("run_started", "An agent was started."),
    (
        "run_exited",
        "A run ended; every process it started has ended too. Also carries the last lines it printed.",
    ),
    ("start_failed", "A start was refused before anything was executed: no run, no crash."),
    ("backoff", "The next run waits."),
    (
        "health_warn",
        "Something needs a look: `clean_restart_budget_exceeded`, `crash_soft_limit`, `memory_drain_loop`, `memory_unreadable`, `shim_silent`, `survivors`, `conversation_unsaved`, `hold_limit`.",
    ),
    ("lock_busy", "A lock that a start needs is held; carries the holder. The session is `blocked`."),
    ("lock_acquired", "A session, or a client over HTTP, has its locks."),
    ("lock_released", "Locks were given back."),
    (
        "account_held",
        "A usage limit, a dead login, an overloaded vendor or a budget holds every session of an account.",
    ),
    ("account_resumed", "An account is free again, and its sessions go on."),
    (
        "takeover_requested",
        "An `attach` wants the agent's own terminal program in place of the headless run.",
    ),
    ("takeover_done", "How a takeover came out."),
    ("message_queued", "A message is on disk."),
    ("message_delivered", "A message was given to the agent."),
    ("message_done", "The answer to a message is on disk."),
    ("message_failed", "A message was given up."),
    ("request_opened", "The agent asks a person something: `pinfold answer`."),
    ("request_answered", "It was answered."),
    ("request_withdrawn", "The agent took its question back."),
    (
        "vendor_session",
        "The agent said which conversation of its own it is in; `null`: its vendor does not know it, nothing was answered in it, and the next run begins another one; or a person chose another one with `set`.",
    ),
    (
        "conversation_lost",
        "The agent cannot continue the conversation, and something was said in it. `reason` is `gone`, `unreadable`, `elsewhere`, `replaced` or `incomplete`. The session is `failed` and keeps its queue; `pinfold set S --new-conversation` begins a new conversation.",
    ),
    (
        "conversation_put_back",
        "The agent's transcript of the conversation was missing or damaged, and was put back from the copy.",
    ),
    ("guest_started", "A terminal program joined a run."),
    ("guest_ended", "That terminal program ended; the run goes on."),
    ("consumer_joined", "A client is connected: an `attach`, a `logs -f` or a stream."),
    ("consumer_left", "That client has gone."),
    (
        "parked",
        "An on-demand session was not needed any more, and its run was ended. Carries in `ended` the processes that ended with it besides the agent, with `pid` and `command`.",
    ),
    ("woken", "A parked session is needed again."),
    ("memory_warn", "A run is close to its memory limit."),
    ("drained", "A run is over its memory limit, and is stopped for it."),
    ("stopped", "A person stopped the session."),
    ("failed", "The session needs a person: `pinfold why` says what for."),
    ("archived", "The session was put away."),
    ("restored", "The session was brought back."),
    ("purged", "The session was put away by `purge`."),
    ("adopted", "A daemon found a run of the daemon before it, and goes on with it."),
    ("removed", "A session was deleted for good."),
    ("renamed", "A session has another name."),
    ("unlocked", "`pinfold unlock --kill` ended the holder of a lock."),
    ("ended_by_lock", "What a lost shim left behind was ended before its lock was granted again."),
    ("begun_again", "One session's change contradicted what is stored; it went on from what is stored."),
    ("left_alone", "The same happened again and again: that session is left alone."),
    ("pruned", "How much `[retention]` removed since the last of these."),
    ("daemon_started", "The daemon started."),
    ("daemon_stopped", "The daemon goes down."),
    ("config_reloaded", "config.toml was read again."),
    ("config_refused", "config.toml has a mistake; the old one stays in force."),
    ("backup_restored", "A backup was put in the place of the database."),
    ("witness_made", "The note of how far the database was had to be made again."),
    ("disk_full", "The disk is full."),
    ("database_well", "The database can be written again."),
    ("database_busy", "Another program keeps the database locked."),
    ("database_gone", "The database file was removed, moved, replaced or cut."),
    ("database_failed", "The database cannot be written."),
    ("database_damaged", "A check of the database found damage."),
    ("database_ended", "The database's writer has ended."),
    ("damaged", "The record of this event is not as it was written."),
];

/// One record of each kind that has its own fields.
fn records() -> Vec<Record> {
    let (run, message, consumer, number) = (RunNumber(1), MessageId(1), ConsumerId(1), RequestNumber(1));
    let (lived, exit) = (Duration::from_secs(1), Exit::Code(1));
    let exited = RunExited { run, exit, verdict: Verdict::Crash, lived, crashes: 1, forced: false };
    vec![
        Record::RunStarted { run, pid: 1, fence: 1, purpose: Purpose::Headless },
        Record::RunExited(Box::new(exited)),
        Record::StartFailed { run, errno: None, text: String::new() },
        Record::Backoff { wait: lived, reason: WaitReason::Crash },
        Record::HealthWarn { reason: Warning::CrashSoftLimit },
        Record::TakeoverRequested { consumer, urgent: false },
        Record::TakeoverDone { how: TakeoverEnd::Held },
        Record::MessageQueued { message },
        Record::MessageDelivered { message, attempt: 1 },
        Record::MessageDone { message },
        Record::MessageFailed { message, why: MessageFailure::Cancelled },
        Record::RequestOpened { run, number, request: RequestKind::Permission, title: String::new() },
        Record::RequestAnswered { number, verdict: Permit::Allow, always: false },
        Record::RequestWithdrawn { number },
        Record::VendorSession { run, id: Some(String::new()) },
        Record::ConversationLost { run, id: Some(String::new()), how: LostHow::Gone },
        Record::GuestStarted { run, guest: 1, pid: 1 },
        Record::GuestEnded { run, guest: 1, exit, text: None },
        Record::ConsumerJoined { consumer },
        Record::ConsumerLeft { consumer },
        Record::MemoryWarn { bytes: 1, limit: 1 },
        Record::Drained { bytes: 1, limit: 1 },
        Record::Adopted { run, pid: 1 },
    ]
}

fn fields() -> BTreeMap<String, String> {
    let named = |record: &Record| {
        let data = pinfold_store::event_data(record);
        let names: Vec<String> = data.as_object().unwrap().keys().map(|name| format!("`{name}`")).collect();
        (record.kind().word().to_owned(), names.join(" "))
    };
    records().iter().map(named).collect()
}

fn page() -> String {
    let mut page = "# Events\n\n".to_owned();
    page.push_str(&made_from("the tables of the core and of the store"));
    page.push_str(
        "`pinfold events` prints them, `pinfold events -f` as they come, `pinfold --json events` as an array. The number `seq` grows without gaps.\n\
         Every event has `seq`, `at`, `session`, `run`, `kind`, `why` (a sentence) and `by` (who asked for it); some have fields of their own.\n\n",
    );
    page.push_str("| kind | own fields | what happened |\n|---|---|---|\n");
    let fields = fields();
    for word in EventKind::WORDS {
        let meaning = MEANINGS.iter().find(|(kind, _)| kind == word).map(|(_, meaning)| *meaning);
        let meaning = meaning.unwrap_or_else(|| {
            panic!("say in MEANINGS of crates/cli/tests/documents/reference/events.rs what `{word}` means")
        });
        page.push_str(&format!(
            "| `{word}` | {} | {meaning} |\n",
            fields.get(*word).map_or("", String::as_str)
        ));
    }
    page
}

#[test]
fn the_page_of_events_has_every_kind() {
    check("events.md", &page());
    let known = |kind: &str| EventKind::WORDS.contains(&kind);
    let gone: Vec<&str> = MEANINGS.iter().map(|(kind, _)| *kind).filter(|kind| !known(kind)).collect();
    assert!(gone.is_empty(), "{gone:?} are no kinds of events any more");
}

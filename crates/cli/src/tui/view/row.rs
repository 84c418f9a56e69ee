//! One row of the list: the columns of a session.

use super::super::model::Model;
use super::super::need::PersonNeed;
use super::super::sessions::KnownSession;
use super::canvas::shown;
use super::moments::{age, clock, lasting};
use super::theme::Role;
use crate::output::{below_home, names_home, without_dir, without_state};
use pinfold_api::object::Session;
use pinfold_api::word::{Activity, State};

/// The number of columns.
pub(super) const COLUMNS: usize = 7;

/// The cells of a session, each with its role.
pub(super) struct Cells {
    pub(super) texts: [String; COLUMNS],
    pub(super) roles: [Role; COLUMNS],
}

/// The cells of a session at this depth below the root of its tree.
pub(super) fn cells(model: &Model, known: &KnownSession, depth: usize) -> Cells {
    let session = &known.told.session;
    let need = model.list.wanted.need(known);
    let branch = if depth == 0 { String::new() } else { format!("{}└ ", "  ".repeat(depth - 1)) };
    let name = format!("{branch}{}", session.name);
    let dir = below_home(&session.dir, model.here.home.as_deref()).into_owned();
    let cost = known.told.cost.map(|cost| format!("${cost:.2}")).unwrap_or_default();
    let texts =
        [name, activity(model, session), inbox(session), sparkline(known), cost, dir, why(model, known)];
    // Characters that a terminal would obey take the room of their visible form.
    let texts = texts.map(|text| shown(&text));
    let lively = if need == PersonNeed::Archived { Role::Faint } else { Role::Plain };
    let roles = [lively, role(need), Role::Faint, Role::Faint, Role::Faint, Role::Faint, lively];
    Cells { texts, roles }
}

/// The role for a need.
pub(super) fn role(need: PersonNeed) -> Role {
    match need {
        PersonNeed::Asks => Role::Asks,
        PersonNeed::Failed => Role::Bad,
        PersonNeed::Held | PersonNeed::ComesBack => Role::Busy,
        PersonNeed::Unseen => Role::Strong,
        PersonNeed::Works => Role::Good,
        PersonNeed::Runs => Role::Plain,
        PersonNeed::Sleeps | PersonNeed::Stopped | PersonNeed::Archived => Role::Faint,
    }
}

/// What a session does and for how long; if it has ended, when.
pub(super) fn activity(model: &Model, session: &Session) -> String {
    let lives = matches!(
        session.state,
        State::Running | State::Held | State::Starting | State::Stopping | State::Backoff | State::Blocked
    );
    let told =
        session.activity != Activity::Unknown && matches!(session.state, State::Running | State::Blocked);
    let word = if told { session.activity.word() } else { session.state.word() };
    let since = session.activity_since.as_ref().or(session.started_at.as_ref());
    let time = if lives {
        since.and_then(|at| age(model, at))
    } else {
        // The time of day, or the date; the details show the rest.
        let short = |at: String| at.get(..5).map(str::to_owned).unwrap_or(at);
        session.last_exit.as_ref().map(|exit| short(clock(model, &exit.at)))
    };
    time.map_or_else(|| word.to_owned(), |time| format!("{word} {time}"))
}

/// Messages that wait or have failed.
fn inbox(session: &Session) -> String {
    let inbox = session.inbox;
    let waits = inbox.queued + inbox.in_flight;
    match (waits, inbox.failed) {
        (0, 0) => String::new(),
        (waits, 0) => waits.to_string(),
        (waits, failed) => format!("{waits}+{failed}✗"),
    }
}

/// The last memory readings, relative to the limit or to the largest of them.
fn sparkline(known: &KnownSession) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let Some(latest) = known.memory.back() else { return String::new() };
    let most =
        known.told.session.memory_limit_bytes.or(known.memory.iter().max().copied()).unwrap_or(1).max(1);
    let level = |bytes: &u64| {
        let part = u128::from(*bytes) * 7 / u128::from(most);
        LEVELS[usize::try_from(part).unwrap_or(7).min(7)]
    };
    let line: String = known.memory.iter().map(level).collect();
    format!("{line} {}", pinfold_core::words::size(*latest))
}

/// What it asks, what the search found in it, or why it is in its state.
fn why(model: &Model, known: &KnownSession) -> String {
    let session = &known.told.session;
    let found = model.list.search.as_ref().and_then(|search| search.found.get(&session.name));
    if let Some(excerpt) = found.filter(|excerpt| !excerpt.is_empty()) {
        return format!("“{excerpt}”");
    }
    if let Some(request) = &session.request {
        return format!("asks: {}", request.title);
    }
    if let Some(waits) = &session.waits_for {
        return format!("waits for {waits}");
    }
    let sentence = without_dir(without_state(&session.why), &session.dir);
    lasting(model, &names_home(sentence, model.here.home.as_deref()), known.at)
}

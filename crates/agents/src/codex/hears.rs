//! What Codex's lines mean.

use super::asks::{self, AskKind};
use super::ends;
use super::state::{BEGIN, CallPurpose, Codex, LAST_TURN, OPEN, Own};
use super::wire::{Item, Opened, Told, TurnError};
use crate::note::{self, LogNote};
use crate::observation::SessionRefused;
use crate::rpc::{self, Id, RpcError, RpcLine};
use crate::translate::RunView;
use crate::word::{AgentWord, NamedTurn, Want};

/// Longest text of the agent's own that is passed on, in bytes.
const LONGEST_TEXT: usize = 4 << 10;
/// What Codex says of a thread that it does not have, or cannot read.
const UNKNOWN: [&str; 2] = ["no rollout found", "failed to read thread"];
/// Longest turn id that is kept, in bytes; those seen have 36.
const LONGEST_TURN: usize = 1 << 10;

/// Handles a line of Codex's output.
pub(crate) fn line(state: &mut Codex, line: &[u8], see: &RunView<'_>) -> Vec<AgentWord> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    match rpc::line(line) {
        None => vec![AgentWord::Note(LogNote::garbage(line))],
        Some(RpcLine::Request { id, method }) => asked(state, id, &method, line, see),
        Some(RpcLine::Notification { method }) => told(state, &method, line, see),
        Some(RpcLine::Answer { id }) => match state.calls.answered(&id) {
            Some((number, purpose)) => answered(state, number, purpose, rpc::result(line), see),
            None => Vec::new(),
        },
        Some(RpcLine::Failed { id, error }) => match state.calls.answered(&id) {
            Some((number, purpose)) => failed(state, number, purpose, error, see),
            None => vec![noted(error)],
        },
        Some(RpcLine::Complaint(error)) => vec![noted(error)],
    }
}

/// Handles a line that is too long to read. The current turn may be broken by it, so the turn is interrupted.
pub(crate) fn too_long(see: &RunView<'_>) -> Vec<AgentWord> {
    let mut words = see.too_long();
    if !words.is_empty() {
        words.push(AgentWord::Want(Want::Interrupt));
    }
    words
}

/// Codex asks a person, or asks for something that pinfold does not offer.
fn asked(state: &mut Codex, id: Id, method: &str, line: &[u8], see: &RunView<'_>) -> Vec<AgentWord> {
    let Some(asks) = AskKind::of(method) else {
        state.refusals.add(id);
        return Vec::new();
    };
    let params = rpc::params(line);
    if asks == AskKind::Question {
        asks::keep(&mut state.kept, &id, &params, |key| see.ledger.asks(key));
    }
    vec![AgentWord::Asks(asks::ask(asks, &id, &params, line))]
}

/// Handles a notification.
fn told(state: &mut Codex, method: &str, line: &[u8], see: &RunView<'_>) -> Vec<AgentWord> {
    match method {
        "turn/started"
        | "turn/completed"
        | "item/started"
        | "item/completed"
        | "thread/tokenUsage/updated"
        | "error" => {
            let told: Told = rpc::params(line);
            // Subagents have threads of their own.
            let ours = told.thread_id.is_some() && told.thread_id.as_deref() == see.ledger.session();
            if ours { of_thread(state, method, told, see) } else { Vec::new() }
        }
        "account/rateLimits/updated" => {
            let limits = rpc::params::<Told>(line).rate_limits.unwrap_or_default();
            state.limits.heard(&limits).map(AgentWord::Limit).into_iter().collect()
        }
        "serverRequest/resolved" => {
            let id = rpc::params::<Told>(line).request_id;
            id.map(|id| AgentWord::TakesBack(id.key())).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn of_thread(state: &mut Codex, method: &str, told: Told, see: &RunView<'_>) -> Vec<AgentWord> {
    match method {
        "turn/started" => started(state, told.turn.and_then(|turn| turn.id), see),
        "turn/completed" => ends::completed(state, &told.turn.unwrap_or_default()),
        "item/started" => {
            let command = told.item.filter(is_command);
            if let Some(Item { id: Some(id), process, .. }) = command {
                state.commands.began(&id, process.is_some());
            }
            Vec::new()
        }
        "item/completed" if told.item.as_ref().is_some_and(is_command) => command_ended(state, told.item),
        "item/completed" => said(state, told, see).into_iter().collect(),
        "error" => retries(told).into_iter().collect(),
        _ => {
            let turn = told.turn_id.unwrap_or_default();
            let under_way = is_under_way(state, &turn, see);
            state.spending.heard(&told.token_usage.unwrap_or_default(), under_way);
            Vec::new()
        }
    }
}

/// A turn begins. If no answer has named its id, it is another client's turn, or the answer is still to come.
fn started(state: &mut Codex, turn: Option<String>, see: &RunView<'_>) -> Vec<AgentWord> {
    let Some(turn) = turn.filter(|turn| turn.len() <= LONGEST_TURN) else { return Vec::new() };
    if !state.numbers_of(&turn).is_empty() || state.own.as_ref().is_some_and(|own| own.turn == turn) {
        return Vec::new();
    }
    let told = see.ledger.open().iter().all(|open| state.turn_of(open.number).is_some());
    state.own = Some(Own { turn, told });
    if told { own_began() } else { Vec::new() }
}

fn own_began() -> Vec<AgentWord> {
    vec![AgentWord::Began(NamedTurn::Own), AgentWord::Work(true)]
}

fn is_command(item: &Item) -> bool {
    item.kind.as_deref() == Some("commandExecution")
}

/// Handles the end of a command, which may have outlived its turn.
fn command_ended(state: &mut Codex, item: Option<Item>) -> Vec<AgentWord> {
    let worked = state.works();
    item.and_then(|item| item.id).into_iter().for_each(|id| state.commands.ended(&id));
    if worked { vec![AgentWord::Work(state.works())] } else { Vec::new() }
}

/// Handles a message of the model; the last one of a turn is its answer.
fn said(state: &Codex, told: Told, see: &RunView<'_>) -> Option<AgentWord> {
    let item = told.item.filter(|item| item.kind.as_deref() == Some("agentMessage"))?;
    let text = item.text.filter(|text| !text.is_empty())?;
    is_under_way(state, &told.turn_id?, see).then_some(AgentWord::Anew(text))
}

fn is_under_way(state: &Codex, turn: &str, see: &RunView<'_>) -> bool {
    let ours = see.ledger.open().iter().any(|open| state.turn_of(open.number) == Some(turn));
    ours || state.own_turn() == Some(turn)
}

/// Notes an error that Codex retries. An error that is not retried comes with the end of the turn.
fn retries(told: Told) -> Option<AgentWord> {
    told.will_retry.filter(|retries| *retries)?;
    let TurnError { message, additional_details, .. } = told.error.unwrap_or_default();
    let texts: Vec<String> = [message, additional_details].into_iter().flatten().collect();
    Some(AgentWord::Note(LogNote::Agent { text: note::short(&texts.join(": "), LONGEST_TEXT) }))
}

/// Handles the answer to a request of ours.
fn answered(
    state: &mut Codex,
    number: u64,
    purpose: CallPurpose,
    opened: Opened,
    see: &RunView<'_>,
) -> Vec<AgentWord> {
    match purpose {
        CallPurpose::Initialize => vec![AgentWord::Want(Want::Handshake(OPEN))],
        CallPurpose::Open => {
            let thread = opened.thread.unwrap_or_default();
            state.model = opened.model.map(|model| note::short(&model, 200));
            let resumed = thread.id.is_some() && thread.id == see.setup.vendor_session;
            let mut words: Vec<AgentWord> = thread.id.map(AgentWord::Session).into_iter().collect();
            words.push(AgentWord::Ready);
            words.extend(resumed.then_some(AgentWord::Want(Want::Handshake(LAST_TURN))));
            words
        }
        CallPurpose::LastTurn => {
            ends::of_before(opened.data.unwrap_or_default().first()).into_iter().collect()
        }
        CallPurpose::Prompt => {
            let turn = opened.turn.and_then(|turn| turn.id).filter(|turn| turn.len() <= LONGEST_TURN);
            took(state, number, turn)
        }
        CallPurpose::Interrupt => Vec::new(),
    }
}

/// Codex has taken a message, as this turn.
fn took(state: &mut Codex, number: u64, turn: Option<String>) -> Vec<AgentWord> {
    let Some(turn) = turn else { return vec![AgentWord::Taken(number)] };
    state.learn(number, &turn);
    let mut words = vec![AgentWord::Began(NamedTurn::Number(number))];
    match state.own.take_if(|own| !own.told) {
        // Its beginning was reported before the answer.
        Some(own) if own.turn == turn => {}
        Some(own) => {
            state.own = Some(Own { told: true, ..own });
            words.extend(own_began());
        }
        None => {}
    }
    words
}

/// Handles the failure of a request of ours.
fn failed(
    state: &mut Codex,
    number: u64,
    purpose: CallPurpose,
    error: RpcError,
    see: &RunView<'_>,
) -> Vec<AgentWord> {
    match purpose {
        CallPurpose::Open => not_opened(state, &error, see),
        CallPurpose::Prompt => vec![ends::refused(state, number, error.message)],
        // The turn no longer exists: its end is on the way, or was heard.
        CallPurpose::Interrupt | CallPurpose::Initialize | CallPurpose::LastTurn => vec![noted(error)],
    }
}

/// No thread was opened. Another process may have it. A thread without a turn is never saved, so a new one is
/// begun; if something was said in it, it is lost. With any other reason, messages fail with that reason.
fn not_opened(state: &mut Codex, error: &RpcError, see: &RunView<'_>) -> Vec<AgentWord> {
    let text = note::short(error.message.as_deref().unwrap_or("Codex opened no thread"), LONGEST_TEXT);
    if text.contains("already has an active writer") {
        return vec![AgentWord::SessionRefused(SessionRefused::Busy)];
    }
    let noted = AgentWord::Note(LogNote::Agent { text: text.clone() });
    let unknown = UNKNOWN.iter().any(|words| text.contains(words));
    if see.setup.vendor_session.is_some() && unknown {
        let unknown = AgentWord::SessionRefused(SessionRefused::Unknown);
        return match see.setup.only_resumes {
            true => vec![noted, AgentWord::Want(Want::Close), unknown],
            false => vec![unknown, noted, AgentWord::Want(Want::Handshake(BEGIN))],
        };
    }
    state.no_thread = Some(text);
    vec![noted, AgentWord::Ready]
}

fn noted(error: RpcError) -> AgentWord {
    let text = error.message.unwrap_or_default();
    AgentWord::Note(LogNote::Agent { text: note::short(&text, LONGEST_TEXT) })
}

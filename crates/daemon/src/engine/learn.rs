//! What was learned of an agent from its tape, passed to the core.

use super::Engine;
use crate::engine::feed::FeedNews;
use pinfold_agents::{
    Activity, Delivery, FailureKind, Label, LogNote, Observation, Request, RequestKind, SessionRefused,
    TurnAnswer, TurnFailure, TurnOutcome, TurnOwner,
};
use pinfold_core::event::{MessageEvent, RequestEvent, TurnEnd};
use pinfold_core::talk::{self, Standing};
use pinfold_core::usage::Figures;
use pinfold_core::{Event, MessageId, RunEvent, RunNumber};
use pinfold_store::{AnswerPart, AnswerTold, Facts, GivenAnswer, SessionId};
use tracing::{debug, warn};

/// How many bytes of an agent's failure message are kept.
const LONGEST_REASON: usize = 4 << 10;

/// The end of a turn.
struct Ending<'o> {
    outcome: &'o TurnOutcome,
    answer: Option<TurnAnswer>,
    spent: Option<Figures>,
}

impl Engine {
    pub(super) fn learn(&mut self, id: SessionId, run: RunNumber, observation: Observation) {
        match observation {
            Observation::Ready => self.is_ready(id, run),
            Observation::Taken(delivery) => self.delivered(id, run, delivery),
            Observation::TurnEnded { turn, outcome, answer, usage } => {
                let spent = usage.and_then(|usage| self.spent(id, run, turn, usage));
                self.account_spent(id, spent.and_then(|spent| spent.cost));
                match turn {
                    TurnOwner::Of(delivery) => {
                        self.turn_over(id, run, delivery, Ending { outcome: &outcome, answer, spent });
                    }
                    TurnOwner::Own if outcome == TurnOutcome::Done => self.account_works(id),
                    TurnOwner::Own => _ = self.is_refused(id, &outcome),
                }
            }
            Observation::EndInDoubt { turn, named, answer } => {
                self.in_doubt(id, run, turn, named, answer);
            }
            Observation::AnswerPart { offset, text } => self.answer_part(id, offset, text),
            Observation::RequestOpened(request) => self.request_opened(id, run, request),
            Observation::RequestWithdrawn(request) => {
                self.of_request(id, run, RequestEvent::Withdrawn { key: request.to_string() });
            }
            Observation::Activity(_) | Observation::OwnWork { .. } => self.tell_activity(id, run),
            Observation::VendorSession { id: vendor, .. } => {
                self.vendor_named(id, run, vendor);
            }
            Observation::VendorSessionRefused(SessionRefused::Busy) => {
                self.seek_writer(id, run);
                self.of_run(id, run, RunEvent::VendorBusy { holder: None });
            }
            Observation::VendorSessionRefused(SessionRefused::Unknown) => self.vendor_unknown(id, run),
            Observation::Limit(limit) => {
                debug!(%id, run = run.0, reach = ?limit.reach, "it tells of a usage limit");
                self.told_of_limit(id, &limit);
            }
            Observation::LoginNeeded { text } => {
                warn!(%id, run = run.0, "a person has to log in: {text}");
                self.refused(id, &TurnFailure { kind: FailureKind::Login, text });
            }
            Observation::Note(note) => noted(id, run, &note),
            // What the agent wants written is asked of the fold whenever something can be written.
            Observation::TurnBegan(_) | Observation::Wants(_) => {}
        }
    }

    fn is_ready(&mut self, id: SessionId, run: RunNumber) {
        let live = self.sessions.get_mut(&id).and_then(|tracked| tracked.live(run));
        if let Some(live) = live.filter(|live| !live.ready) {
            live.ready = true;
            self.feed.note(id, FeedNews::Live);
        }
    }

    /// Whether a delivery is the turn under way.
    fn is_under_way(&self, id: SessionId, run: RunNumber, delivery: Delivery) -> bool {
        let Some(session) = self.sessions.get(&id).map(|tracked| &tracked.session) else { return false };
        let turn = session.inbox().in_flight();
        session.live_run() == Some(run)
            && turn.is_some_and(|turn| (turn.message, turn.delivery) == (delivery.message, delivery.delivery))
    }

    fn delivered(&mut self, id: SessionId, run: RunNumber, delivery: Delivery) {
        if self.is_under_way(id, run, delivery) {
            let event = MessageEvent::Taken { run, message: delivery.message };
            self.happened(id, &Event::Message(event), &Facts::default(), None);
        }
    }

    fn turn_over(
        &mut self,
        id: SessionId,
        run: RunNumber,
        delivery: Delivery,
        Ending { outcome, answer, spent }: Ending<'_>,
    ) {
        let answer = answer.map(|answer| given(id, answer));
        if !self.is_under_way(id, run, delivery) {
            return;
        }
        let other = self.begins_another(id, run) || self.is_lost_in(id, run);
        if matches!(outcome, TurnOutcome::Failed(_)) && other {
            // The agent did not work on the message: the next run, which can, gets it.
            return;
        }
        let message = delivery.message;
        if *outcome == TurnOutcome::Done {
            self.keep_turn(id, run, message, answer.as_ref().map_or("", |answer| &answer.rest));
        }
        let (how, reason) = match outcome {
            outcome if self.is_refused(id, outcome) => (TurnEnd::Refused, None),
            TurnOutcome::Done => (TurnEnd::Answered, None),
            TurnOutcome::Failed(failure) => (TurnEnd::Failed, reason(&failure.text)),
            TurnOutcome::Interrupted => (TurnEnd::Interrupted, None),
            TurnOutcome::CancelledUnasked { crossed: true } => (TurnEnd::Crossed, None),
            TurnOutcome::CancelledUnasked { crossed: false } => {
                (TurnEnd::Failed, Some("the agent cancelled the turn by itself".to_owned()))
            }
        };
        let answers = match how {
            TurnEnd::Answered => [(message, answer.unwrap_or_default())].into(),
            TurnEnd::Failed | TurnEnd::Interrupted | TurnEnd::Crossed | TurnEnd::Refused => {
                Default::default()
            }
        };
        let told = Facts { answers, reason, spent, ..Facts::default() };
        self.turn_ends(id, MessageEvent::TurnEnded { run, message, how }, told);
    }

    /// Whether the vendor refused a turn because of the account; the account is then held.
    fn is_refused(&mut self, id: SessionId, outcome: &TurnOutcome) -> bool {
        match outcome {
            TurnOutcome::Failed(failure) => self.refused(id, failure),
            TurnOutcome::Done | TurnOutcome::Interrupted | TurnOutcome::CancelledUnasked { .. } => false,
        }
    }

    /// Tells the core that a turn ended, and keeps the reason if it failed.
    pub(super) fn turn_ends(&mut self, id: SessionId, event: MessageEvent, told: Facts) {
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.failed = told.reason.as_deref().map(Into::into);
        }
        let why = told.reason.as_ref().map(|reason| format!("the turn failed: {reason}"));
        self.happened(id, &Event::Message(event), &Facts { why, ..told }, None);
    }

    /// A part of a long answer: it is committed with the cursor that counts it as told. The output of a turn
    /// the agent began itself is not kept.
    fn answer_part(&mut self, id: SessionId, offset: u64, text: String) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let Some(turn) = tracked.session.inbox().in_flight() else { return };
        let part = AnswerPart { session: id, message: turn.message.into(), offset, text };
        if let Some(taping) = self.taping(id) {
            taping.parts.push(part);
        }
    }

    /// The agent named a message that is not in flight. If it belongs to this session it ends nothing;
    /// anything else is part of the answer.
    fn in_doubt(
        &mut self,
        id: SessionId,
        run: RunNumber,
        turn: Delivery,
        named: MessageId,
        answer: TurnAnswer,
    ) {
        if self.is_message_of(id, named) {
            return self.log_not_counted(id, Some(named));
        }
        self.turn_over(
            id,
            run,
            turn,
            Ending { outcome: &TurnOutcome::Done, answer: Some(answer), spent: None },
        );
        let told = self.taping(id).map(|taping| taping.fold.let_go(turn)).unwrap_or_default();
        told.into_iter().for_each(|observation| self.learn(id, run, observation));
    }

    fn request_opened(&mut self, id: SessionId, run: RunNumber, request: Request) {
        let kind = match request.kind {
            RequestKind::Permission => talk::RequestKind::Permission,
            RequestKind::Question => talk::RequestKind::Question,
        };
        let (key, title) = (request.id.to_string(), request.title);
        self.of_request(id, run, RequestEvent::Opened { key, kind, title });
    }

    fn of_request(&mut self, id: SessionId, run: RunNumber, event: RequestEvent) {
        self.happened(id, &Event::Request { run, event }, &Facts::default(), None);
    }

    /// Something written to the agent has appeared on the tape: if it answers a request, the answer has been
    /// told.
    pub(super) fn word_told(&mut self, id: SessionId, run: RunNumber, label: &Label) {
        if let Label::Answer(request) = label {
            self.of_request(id, run, RequestEvent::Told { key: request.to_string() });
        }
    }

    /// Tells the core what the agent is doing.
    pub(super) fn tell_activity(&mut self, id: SessionId, run: RunNumber) {
        let Some(taping) = self.taping(id) else { return };
        let activity = match taping.fold.activity() {
            Activity::Working => talk::Activity::Working,
            Activity::Waiting => talk::Activity::Waiting,
            Activity::Idle => talk::Activity::Idle,
            Activity::Limited => talk::Activity::Limited,
            Activity::Unknown => talk::Activity::Unknown,
        };
        let (own_work, printed_at) = (taping.fold.own_work(), taping.printed_at);
        let known = self.sessions.get(&id).and_then(|tracked| tracked.session.standing());
        // It began with the line that reported it, which may have been printed while no daemon ran.
        let since = printed_at.filter(|_| known.is_none_or(|known| known.activity != activity));
        let standing = Standing { activity, own_work, since, ..Standing::default() };
        self.of_run(id, run, RunEvent::Standing(Box::new(standing)));
    }
}

/// An answer as the store takes it: the part not yet stored.
fn given(id: SessionId, answer: TurnAnswer) -> GivenAnswer {
    let TurnAnswer { before, text, whole } = answer;
    if !whole {
        warn!(%id, "the answer is cut: it is too long");
    }
    GivenAnswer { rest: text, told: AnswerTold { before, cut: !whole } }
}

/// The text of a failure, if there is any.
fn reason(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text[..text.floor_char_boundary(LONGEST_REASON)].to_owned())
}

/// Logs a translator's note.
fn noted(id: SessionId, run: RunNumber, note: &LogNote) {
    match note {
        LogNote::Unknown { .. }
        | LogNote::Panicked { .. }
        | LogNote::LineTooLong
        | LogNote::Gap { .. }
        | LogNote::OddSession => {
            warn!(%id, run = run.0, "{note}");
        }
        LogNote::Garbage { .. }
        | LogNote::LateEnd { .. }
        | LogNote::StrayEnd { .. }
        | LogNote::EmptyEnd
        | LogNote::RequestDropped { .. }
        | LogNote::Agent { .. } => debug!(%id, run = run.0, "{note}"),
    }
}

//! The ledger of a run: what counts of what was said and heard. The rules that hold for every protocol are
//! here, so that a translator only needs to know what a line means: a turn ends once, by its own name; its
//! requests end with it; a delivery that ended was taken.

mod answer;
mod requests;
mod turns;

use crate::label::Label;
use crate::note::{self, LogNote};
use crate::observation::{Activity, GaveUp, LimitReach, LimitStatus, Observation, SessionRefused};
use crate::request::{Request, RequestId};
use crate::turn::{Delivery, TurnAnswer, TurnOutcome, TurnOwner};
use crate::word::{AgentWord, AnswerText, NamedTurn, RawRequest, ReportedEnd, Want};
use answer::Answering;
use pinfold_core::MessageId;
pub(crate) use requests::OpenRequest;
use requests::Requests;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub(crate) use turns::OpenDelivery;
use turns::OpenTurns;

/// Longest title, detail or log text that is passed on, in bytes.
const LONGEST_TEXT: usize = 16 << 10;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunLedger {
    ready: bool,
    want: Option<Want>,
    /// The number of the last word on the tape.
    said: u64,
    /// Nothing more can be said to the agent.
    closed: bool,
    /// Why the agent was told to leave, if its protocol gave up.
    #[serde(skip_serializing_if = "Option::is_none")]
    gave_up: Option<GaveUp>,
    turns: OpenTurns,
    requests: Requests,
    answering: Answering,
    session: Option<String>,
    own_work: bool,
    limited: bool,
    /// The translator failed, and nothing certain was heard since.
    doubtful: bool,
    /// Number of notes of each kind.
    notes: BTreeMap<String, u8>,
    /// The activity that was last reported.
    activity: Activity,
}

impl RunLedger {
    pub(crate) fn new(session: Option<&str>) -> RunLedger {
        RunLedger { session: session.map(str::to_owned), ..RunLedger::default() }
    }

    /// Returns the part that stays when everything else is given up.
    pub(crate) fn bare(&self) -> RunLedger {
        let session = self.session.clone();
        RunLedger { said: self.said, closed: self.closed, session, ..RunLedger::default() }
    }

    pub(crate) fn ready(&self) -> bool {
        self.ready
    }

    pub(crate) fn want(&self) -> Option<Want> {
        self.want
    }

    pub(crate) fn last_said(&self) -> u64 {
        self.said
    }

    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn gave_up(&self) -> Option<GaveUp> {
        self.gave_up
    }

    /// Returns the open deliveries in the order they were said.
    pub(crate) fn open(&self) -> &[OpenDelivery] {
        self.turns.open()
    }

    pub(crate) fn turn_under_way(&self) -> bool {
        self.turns.under_way()
    }

    pub(crate) fn request(&self, id: RequestId) -> Option<&OpenRequest> {
        self.requests.get(id)
    }

    /// Returns whether a request with this protocol id is open.
    pub(crate) fn asks(&self, key: &str) -> bool {
        self.requests.has(key)
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    pub(crate) fn activity(&self) -> Activity {
        self.activity
    }

    pub(crate) fn own_work(&self) -> bool {
        self.own_work
    }

    /// Records a word said to the agent, at this position of the tape.
    pub(crate) fn said(&mut self, number: u64, label: &Label, position: u64) {
        self.said = self.said.max(number);
        match label {
            Label::Handshake(step) => self.want = self.want.filter(|want| *want != Want::Handshake(*step)),
            Label::Prompt { message, delivery } => {
                let delivery = Delivery { message: *message, delivery: *delivery };
                self.turns.prompted(delivery, number, position);
            }
            Label::Answer(request) => self.requests.answered(*request),
            Label::Interrupt => {
                self.want = self.want.filter(|want| *want != Want::Interrupt);
                self.turns.interrupted();
            }
            Label::Close => {
                self.want = self.want.filter(|want| *want != Want::Close);
                self.closed = true;
            }
            Label::Other(_) => {}
        }
    }

    /// Records the delivery that the run was for and that could not be said.
    pub(crate) fn was_for(&mut self, delivery: Delivery, position: u64) {
        // Real words are numbered from 1.
        self.turns.prompted(delivery, 0, position);
    }

    /// Records what the translator understood.
    pub(crate) fn hear(&mut self, words: Vec<AgentWord>, told: &mut Vec<Observation>) {
        for word in words {
            self.word(word, told);
        }
    }

    /// The engine has let go of a delivery.
    pub(crate) fn let_go(&mut self, delivery: Delivery, told: &mut Vec<Observation>) {
        self.turns.let_go(delivery);
        let ended = self.requests.ended(Some(delivery));
        withdraw(ended, told);
    }

    /// The run has ended.
    pub(crate) fn exited(&mut self, told: &mut Vec<Observation>) {
        self.closed = true;
        withdraw(self.requests.all_ended(), told);
    }

    /// The translator failed.
    pub(crate) fn panicked(&mut self, text: String, told: &mut Vec<Observation>) {
        self.doubtful = true;
        self.note(LogNote::Panicked { text }, told);
    }

    /// Reports the agent's activity if it has changed.
    pub(crate) fn tell_activity(&mut self, known: bool, told: &mut Vec<Observation>) {
        let now = if known && !self.doubtful { self.seen_activity() } else { Activity::Unknown };
        if now != self.activity {
            self.activity = now;
            told.push(Observation::Activity(now));
        }
    }

    fn seen_activity(&self) -> Activity {
        if !self.requests.is_empty() {
            Activity::Waiting
        } else if self.limited {
            Activity::Limited
        } else if self.turns.under_way() || self.own_work {
            Activity::Working
        } else if self.ready {
            Activity::Idle
        } else {
            Activity::Unknown
        }
    }

    fn word(&mut self, word: AgentWord, told: &mut Vec<Observation>) {
        match word {
            AgentWord::Ready => self.became_ready(told),
            AgentWord::Want(want) => self.wants(want, told),
            AgentWord::Taken(number) => self.taken(number, told),
            AgentWord::Began(named) => self.began(named, told),
            AgentWord::Ended(end) => self.ended(end, told),
            AgentWord::InDoubt { number, named, text } => self.in_doubt(number, named, text, told),
            AgentWord::More(text) => self.answering.more(&text, told),
            AgentWord::Anew(text) => self.answering.anew(&text, told),
            AgentWord::Asks(ask) => self.asked(ask, told),
            AgentWord::TakesBack(key) => withdraw(self.requests.taken_back(&key), told),
            AgentWord::Session(id) => self.learned(id, told),
            AgentWord::SessionRefused(why) => self.session_refused(why, told),
            AgentWord::Limit(limit) => self.limit(limit, told),
            AgentWord::Login(text) => self.login(&text, told),
            AgentWord::Work(under_way) => self.work(under_way, told),
            AgentWord::Note(note) => self.note(note, told),
        }
    }

    fn became_ready(&mut self, told: &mut Vec<Observation>) {
        self.doubtful = false;
        if !std::mem::replace(&mut self.ready, true) {
            told.push(Observation::Ready);
        }
    }

    fn wants(&mut self, want: Want, told: &mut Vec<Observation>) {
        if want == Want::Close {
            self.gave_up.get_or_insert(GaveUp::Refused);
        }
        if self.want.replace(want) != Some(want) {
            told.push(Observation::Wants(want.intent()));
        }
    }

    fn taken(&mut self, number: u64, told: &mut Vec<Observation>) {
        told.extend(self.turns.taken(number).map(Observation::Taken));
    }

    fn began(&mut self, named: NamedTurn, told: &mut Vec<Observation>) {
        let turn = match named {
            NamedTurn::Own => self.turns.own_began().then_some(TurnOwner::Own),
            NamedTurn::Number(number) => {
                self.taken(number, told);
                self.turns.began(number).map(TurnOwner::Of)
            }
        };
        if let Some(turn) = turn {
            self.doubtful = false;
            self.answering = Answering::default();
            told.push(Observation::TurnBegan(turn));
        }
    }

    fn ended(&mut self, end: ReportedEnd, told: &mut Vec<Observation>) {
        let ReportedEnd { turn, how, text, usage } = end;
        let (turn, outcome) = match turn {
            NamedTurn::Own => (TurnOwner::Own, self.turns.own_ended(how)),
            NamedTurn::Number(number) => {
                self.taken(number, told);
                let Some((delivery, outcome)) = self.turns.ended(number, how) else {
                    return self.late(number, told);
                };
                (TurnOwner::Of(delivery), outcome)
            }
        };
        self.doubtful = false;
        self.limited &= outcome != TurnOutcome::Done;
        let delivery = match turn {
            TurnOwner::Of(delivery) => Some(delivery),
            TurnOwner::Own => None,
        };
        withdraw(self.requests.ended(delivery), told);
        let gathered = self.answering.take();
        let answer = text.map(TurnAnswer::from).or(gathered);
        told.push(Observation::TurnEnded { turn, outcome, answer, usage });
    }

    /// Handles a late end, of a turn that is not under way.
    fn late(&mut self, number: u64, told: &mut Vec<Observation>) {
        // The turn that was to be interrupted has ended.
        self.want = self.want.filter(|want| *want != Want::Interrupt);
        self.note(LogNote::LateEnd { named: number.to_string() }, told);
    }

    fn in_doubt(&mut self, number: u64, named: MessageId, text: AnswerText, told: &mut Vec<Observation>) {
        self.taken(number, told);
        if let Some(open) = self.turns.open().iter().find(|open| open.number == number) {
            told.push(Observation::EndInDoubt { turn: open.delivery, named, answer: text.into() });
        }
    }

    fn asked(&mut self, ask: RawRequest, told: &mut Vec<Observation>) {
        let RawRequest { key, kind, title, detail, raw } = ask;
        match self.requests.open(&key, self.turns.current()) {
            Ok(id) => {
                let title = note::short(&title, LONGEST_TEXT);
                let detail = detail.map(|detail| note::short(&detail, LONGEST_TEXT));
                told.push(Observation::RequestOpened(Request { id, kind, title, detail, raw }));
            }
            Err(why) => self.note(LogNote::RequestDropped { why }, told),
        }
    }

    fn learned(&mut self, id: String, told: &mut Vec<Observation>) {
        if self.session.as_ref() == Some(&id) {
            return;
        }
        let before = self.session.replace(id.clone());
        told.push(Observation::VendorSession { id, before });
    }

    fn session_refused(&mut self, why: SessionRefused, told: &mut Vec<Observation>) {
        if why == SessionRefused::Unknown {
            self.gave_up = self.gave_up.map(|_| GaveUp::UnknownSession);
        }
        told.push(Observation::VendorSessionRefused(why));
    }

    fn limit(&mut self, limit: LimitStatus, told: &mut Vec<Observation>) {
        match limit.reach {
            LimitReach::Reached => self.limited = true,
            LimitReach::Off => self.limited = false,
            LimitReach::Near => {}
        }
        told.push(Observation::Limit(limit));
    }

    fn login(&mut self, text: &str, told: &mut Vec<Observation>) {
        self.limited = true;
        self.gave_up = self.gave_up.map(|_| GaveUp::Login);
        told.push(Observation::LoginNeeded { text: note::short(text, LONGEST_TEXT) });
    }

    fn work(&mut self, under_way: bool, told: &mut Vec<Observation>) {
        if std::mem::replace(&mut self.own_work, under_way) != under_way {
            told.push(Observation::OwnWork { under_way });
        }
    }

    pub(crate) fn note(&mut self, note: LogNote, told: &mut Vec<Observation>) {
        let count = self.notes.entry(note.kind().to_owned()).or_default();
        if *count < note::MOST {
            *count += 1;
            told.push(Observation::Note(note));
        }
    }
}

impl From<AnswerText> for TurnAnswer {
    fn from(AnswerText { text, whole }: AnswerText) -> TurnAnswer {
        TurnAnswer { before: 0, text, whole }
    }
}

fn withdraw(ids: impl IntoIterator<Item = RequestId>, told: &mut Vec<Observation>) {
    told.extend(ids.into_iter().map(Observation::RequestWithdrawn));
}

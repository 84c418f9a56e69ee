//! The conversation: what an agent asks, who answers, what it is doing, and which conversation of its vendor
//! it is in.

use super::draft::Draft;
use crate::decision::{Action, Answer, Change, Record, Refusal, TakeoverEnd};
use crate::event::{RequestEvent, Shim};
use crate::ids::{RequestNumber, RunNumber};
use crate::life::{FailCause, Goal, HandBack, Life, Purpose};
use crate::lost::{LostConversation, LostHow};
use crate::rules::Warning;
use crate::talk::{
    MOST_REQUESTS, NamedBy, Permissions, Permit, Request, RequestAnswer, RequestChange, RequestKind,
    Standing, Vendor,
};
use crate::why::{RequestStep, Why};

impl Draft<'_> {
    pub(super) fn request(&mut self, run: RunNumber, event: &RequestEvent) -> Why {
        if self.session.live_run() != Some(run) {
            return Why::Stale;
        }
        match event {
            RequestEvent::Opened { key, kind, title } => self.request_opened(run, key, *kind, title),
            RequestEvent::Withdrawn { key } => self.request_withdrawn(run, key),
            RequestEvent::Told { key } => self.request_told(run, key),
        }
    }

    fn request_opened(&mut self, run: RunNumber, key: &str, kind: RequestKind, title: &str) -> Why {
        if self.session.talk.called(run, key).is_some() {
            return Why::Stale;
        }
        if self.session.talk.requests().len() >= MOST_REQUESTS {
            return Why::Request(RequestStep::TooMany);
        }
        let number = self.session.talk.next_number();
        let (key, title, since) = (key.to_owned(), title.to_owned(), self.now.wall);
        self.record(Record::RequestOpened { run, number, request: kind, title: title.clone() });
        let request = Request { number, run, key, kind, title, since, answer: None };
        self.change(Change::Request(RequestChange::Opened(Box::new(request))));
        let verdict = match (kind, self.session.spec.policy.permissions) {
            (RequestKind::Question, _) | (RequestKind::Permission, Permissions::Ask) => {
                return Why::Request(RequestStep::Opened);
            }
            (RequestKind::Permission, Permissions::Allow) => Permit::Allow,
            (RequestKind::Permission, Permissions::Deny) => Permit::Deny,
        };
        self.decide(number, &RequestAnswer { verdict, always: false, words: None });
        Why::Request(RequestStep::AnsweredByPolicy)
    }

    /// Stores the answer before the agent is told: whatever dies in between, the agent is told this and nothing else.
    fn decide(&mut self, number: RequestNumber, answer: &RequestAnswer) {
        self.record(Record::RequestAnswered { number, verdict: answer.verdict, always: answer.always });
        self.change(Change::Request(RequestChange::Answered { number, answer: answer.clone() }));
        self.tell(number);
    }

    fn tell(&mut self, number: RequestNumber) {
        let request = self.session.talk.untold().find(|request| request.number == number).cloned();
        if let Some(Request { run, key, answer: Some(answer), .. }) = request {
            self.act(Action::Answer { run, number, key, answer: Box::new(answer) });
        }
    }

    /// Repeats answers that the agent may not have heard; it recognises those it has by their number.
    pub(super) fn tell_again(&mut self) {
        let untold: Vec<_> = self.session.talk.untold().map(|request| request.number).collect();
        for number in untold {
            self.tell(number);
        }
    }

    pub(super) fn answer_given(&mut self, number: Option<RequestNumber>, answer: &RequestAnswer) -> Why {
        let mut open = self.session.talk.open().map(|request| request.number);
        let request = match number {
            Some(number) => open.find(|open| *open == number),
            None => open.next(),
        };
        drop(open);
        let Some(number) = request else { return self.refuse(Refusal::NoSuchRequest) };
        self.decide(number, answer);
        self.answer(Answer::Done);
        Why::Request(RequestStep::Answered)
    }

    fn request_withdrawn(&mut self, run: RunNumber, key: &str) -> Why {
        let Some(request) = self.session.talk.called(run, key) else { return Why::Stale };
        let number = request.number;
        self.withdraw(number);
        Why::Request(RequestStep::Withdrawn)
    }

    fn request_told(&mut self, run: RunNumber, key: &str) -> Why {
        let Some(request) = self.session.talk.called(run, key) else { return Why::Stale };
        let number = request.number;
        self.change(Change::Request(RequestChange::Closed { number }));
        Why::Request(RequestStep::Told)
    }

    fn withdraw(&mut self, number: RequestNumber) {
        if self.session.talk.open().any(|request| request.number == number) {
            self.record(Record::RequestWithdrawn { number });
        }
        self.change(Change::Request(RequestChange::Closed { number }));
    }

    /// Withdraws everything asked within a turn, once the turn or its run is over.
    pub(super) fn withdraw_all(&mut self) {
        let numbers: Vec<_> = self.session.talk.requests().iter().map(|request| request.number).collect();
        for number in numbers {
            self.withdraw(number);
        }
    }

    /// Stores a new conversation id, then locks it; earlier ones stay locked until the run ends.
    pub(super) fn vendor_learned(&mut self, run: RunNumber, id: &str) -> Why {
        let why = self.vendor_left(run, id);
        if why == Why::VendorSessionLearned {
            self.act(Action::HoldVendor { run, id: id.to_owned() });
        }
        why
    }

    /// Stores the id for a run that is ending; the next run takes the lock when it starts.
    pub(super) fn vendor_left(&mut self, run: RunNumber, id: &str) -> Why {
        let known = self.session.talk.vendor().is_some_and(|vendor| vendor.id == id && !vendor.is_lost());
        if self.session.live_run() != Some(run) || known {
            return Why::Stale;
        }
        self.name_vendor(run, id, NamedBy::Agent);
        Why::VendorSessionLearned
    }

    /// Gives up a conversation in which nothing was answered. Another one has this id, or gets one from the
    /// agent in the next run.
    pub(super) fn vendor_lost(&mut self, run: RunNumber, another: Option<&str>) -> Why {
        let lost = self.session.talk.vendor().is_some_and(Vendor::is_lost);
        if self.session.live_run() != Some(run) || lost {
            return Why::Stale;
        }
        match (another, self.session.talk.vendor()) {
            (Some(another), _) => self.name_vendor(run, another, NamedBy::Pinfold),
            (None, None) => return Why::Stale,
            (None, Some(vendor)) => {
                let lost = Vendor { run, by: NamedBy::Nobody, ..vendor.clone() };
                self.change(Change::Vendor(Box::new(lost)));
                self.record(Record::VendorSession { run, id: None });
            }
        }
        Why::VendorSessionLost
    }

    /// Gives up a run whose conversation cannot be continued. The agent that was refused it leaves by itself;
    /// one that opened another is ended.
    pub(super) fn conversation_lost(&mut self, run: RunNumber, lost: &LostConversation) -> Why {
        if self.session.live_run() != Some(run) || self.session.talk.lost_in(run) {
            return Why::Stale;
        }
        let LostConversation { id, how, .. } = lost;
        self.change(Change::ConversationLost(Box::new(lost.clone())));
        self.record(Record::ConversationLost { run, id: id.clone(), how: *how });
        match self.session.life {
            Life::Starting { purpose, .. } => self.start_without_conversation(run, purpose),
            Life::Running { .. } if *how == LostHow::Replaced => {
                self.end_takeover(TakeoverEnd::Overruled);
                self.end_run(Goal::Lost, None);
            }
            Life::Running { .. }
            | Life::Held { .. }
            | Life::Stopping { .. }
            | Life::Idle { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => {}
        }
        Why::ConversationLost
    }

    /// A conversation that exists in the agent's memory only is not parked, and people are told.
    pub(super) fn saved(&mut self, run: RunNumber, saved: bool) -> Why {
        let running = matches!(self.session.life, Life::Running { run: live, .. } if live == run);
        if !running || self.session.live.unsaved != saved {
            return Why::Stale;
        }
        self.change(Change::Unsaved(!saved));
        if !saved {
            self.record(Record::HealthWarn { reason: Warning::ConversationUnsaved });
        }
        Why::Noted
    }

    /// Calls off a start before anything was executed: there is nothing to continue.
    fn start_without_conversation(&mut self, run: RunNumber, purpose: Purpose) {
        self.change(Change::Shim(Shim::Absent));
        self.act(Action::Release);
        self.settle_number(run);
        self.end_takeover(TakeoverEnd::CannotStart);
        match purpose {
            Purpose::Interactive(HandBack::ToStopped) => self.hand_back(HandBack::ToStopped),
            Purpose::Interactive(HandBack::ByNeed) | Purpose::Headless => {
                self.fail(FailCause::ConversationLost);
            }
        }
    }

    fn name_vendor(&mut self, run: RunNumber, id: &str, by: NamedBy) {
        let (done_before, _) = self.session.inbox.settled();
        let vendor = Vendor { id: id.to_owned(), run, done_before, by };
        self.change(Change::Vendor(Box::new(vendor)));
        self.record(Record::VendorSession { run, id: Some(id.to_owned()) });
    }

    /// Repeats what a new daemon has to do for a conversation that goes on.
    pub(super) fn resume_talk(&mut self, run: RunNumber) {
        if let Some(vendor) =
            self.session.talk.vendor().filter(|vendor| vendor.run == run && !vendor.is_lost())
        {
            let id = vendor.id.clone();
            self.act(Action::HoldVendor { run, id });
        }
        self.tell_again();
    }

    pub(super) fn standing(&mut self, run: RunNumber, standing: &Standing) -> Why {
        let known = self.session.live.standing.as_deref().is_some_and(|known| known.covers(standing));
        if self.session.live_run() != Some(run) || known {
            return Why::Stale;
        }
        let since = standing.since.or(Some(self.now.wall));
        self.change(Change::Standing(Some(Box::new(Standing { since, ..standing.clone() }))));
        Why::Noted
    }
}

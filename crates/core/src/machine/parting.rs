//! The end of a run, step by step: a request if the agent's protocol has one, then the stop signal.

use super::draft::Draft;
use crate::decision::{Action, Change};
use crate::ids::RunNumber;
use crate::life::{Goal, Life, Purpose};
use crate::rules::parting::{self, Awaited, Parting, PartingWord};
use crate::running::Leaving;
use crate::why::Why;
use std::time::Duration;

impl Draft<'_> {
    /// Asks a run to end. `goal` says what comes after it.
    pub(super) fn end_run(&mut self, goal: Goal, grace: Option<Duration>) {
        let Some(run) = self.session.live_run() else { return };
        let (purpose, knows_words) = (self.session.purpose(), self.knows_words());
        let since = self.now.moment();
        let grace = grace.unwrap_or(self.session.spec.policy.stop_grace);
        self.set_life(Life::Stopping { run, since, purpose, asked: goal.asked(), goal });
        let in_turn = self.session.inbox.in_flight().is_some();
        match parting::begin(in_turn, awaited(goal), grace).filter(|_| knows_words) {
            Some(parting) => self.part(run, parting, grace),
            None => self.act(Action::Stop { run, grace }),
        }
    }

    /// Whether the running agent is spoken to by a protocol, which it has shown by reporting what it does. An
    /// agent that runs for a single message has already heard all there is to say.
    fn knows_words(&self) -> bool {
        let running = matches!(self.session.life, Life::Running { .. });
        let headless = self.session.purpose() == Purpose::Headless;
        running && headless && self.session.live.standing.is_some() && !self.session.spec.run_per_message
    }

    fn part(&mut self, run: RunNumber, parting: Parting, grace: Duration) {
        let Parting { word, wait } = parting;
        self.act(match word {
            PartingWord::Interrupt => Action::Interrupt { run },
            PartingWord::Close => Action::Close { run },
        });
        if wait.is_zero() {
            return self.act(Action::Stop { run, grace });
        }
        let (until, by) = (self.now.boot + wait, self.now.boot + grace);
        self.change(Change::Leaving(Some(Leaving { word, until, by })));
    }

    /// The turn has ended, or the time for the request is over: sends the signal with what is left of the grace.
    pub(super) fn part_further(&mut self, leaving: Leaving) -> Why {
        let Life::Stopping { run, .. } = self.session.life else { return Why::NothingDue };
        self.change(Change::Leaving(None));
        if leaving.word == PartingWord::Interrupt {
            self.act(Action::Close { run });
        }
        self.act(Action::Stop { run, grace: leaving.by.since(self.now.boot) });
        Why::AskedToLeave
    }

    /// Goes on with the parting once the turn that the agent was to end first is over.
    pub(super) fn turn_is_over_for_good(&mut self) {
        if let Some(leaving) =
            self.session.live.leaving.filter(|leaving| leaving.word == PartingWord::Interrupt)
        {
            self.part_further(leaving);
        }
    }
}

fn awaited(goal: Goal) -> Awaited {
    match goal {
        Goal::Park => Awaited::No,
        Goal::Stop
        | Goal::Archive
        | Goal::Restart
        | Goal::Drain
        | Goal::Down
        | Goal::Takeover
        | Goal::Watchdog
        | Goal::Yield
        | Goal::Lost => Awaited::Yes,
    }
}

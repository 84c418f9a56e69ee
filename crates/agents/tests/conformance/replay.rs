//! Recordings of agents that number their requests, replayed as runs of pinfold: the fold must say the same
//! as was said in the recording; answers are renumbered to match.

use crate::kit::{Story, each, folded, prompt, short};
use crate::recordings::{Recorded, Recording, all};
use pinfold_agents::{Consent, Fold, Intent, Label, Observation, RequestReply, Setup};
use serde_json::Value;
use std::collections::BTreeMap;

/// How to recognise the lines of a protocol.
pub(crate) struct Tongue {
    /// Reduces a line of ours to what is compared.
    pub(crate) same: fn(&mut Value),
    /// The text of a prompt.
    pub(crate) prompt: fn(&Value) -> Option<&str>,
    /// The label of a line that only a recording has.
    pub(crate) unsaid: fn(&Fold, &Value) -> Option<Label>,
    /// The answer to the check after a failed turn, for protocols that have one.
    pub(crate) checked: Option<fn(u64) -> String>,
    pub(crate) in_short: fn(&Value) -> String,
}

/// A recording, and what each of its lines leads to.
pub(crate) struct Told {
    pub(crate) story: Story,
    lines: Vec<String>,
    setup: Setup,
    /// Our numbers, by the recording's ids.
    numbers: BTreeMap<String, u64>,
    prompts: u64,
}

/// Folds a recording line by line.
pub(crate) fn told(tongue: &Tongue, setup: Setup, recording: &Recording) -> Told {
    let story = Story::beginning(recording.began());
    let mut told =
        Told { story, lines: vec!["begin".to_owned()], setup, numbers: BTreeMap::new(), prompts: 0 };
    for (at, line) in recording.lines.iter().enumerate() {
        told.story = told.story.at(recording.began() + line.millis());
        match line.direction.as_str() {
            "in" => told.said(tongue, line),
            "out" => told.heard(tongue, line),
            "err" => {
                told.story = told.story.err(format!("{}\n", line.text));
                told.lines.push(format!("err {}", line.text.chars().take(80).collect::<String>()));
            }
            _ => continue,
        }
        let next = recording.lines[at + 1..].iter().find(|line| line.direction == "out");
        told.checks(tongue, next);
    }
    if let Some(exit) = recording.exit {
        told.story = told.story.ends(exit);
        told.lines.extend(["end of output".to_owned(), format!("{exit}")]);
    }
    told
}

impl Told {
    fn said(&mut self, tongue: &Tongue, line: &Recorded) {
        let Ok(mut text) = serde_json::from_str::<Value>(&line.text) else {
            self.lines.push(format!("in {}", line.text));
            self.story = self.story.clone().said(Label::Other("what pinfold would not say".into()));
            return;
        };
        let number = self.story.last_said() + 1;
        if text["method"].is_string() || text["type"].is_string() {
            self.numbers
                .extend(Some(text["id"].to_string()).filter(|id| id != "null").map(|id| (id, number)));
        }
        self.lines.push(format!("in {}", (tongue.in_short)(&text)));
        if let Some(label) = self.label(tongue, number, &mut text) {
            self.story = self.story.clone().said(label).written();
            self.lines.push("written".to_owned());
        } else {
            self.lines.pop();
        }
    }

    /// Returns the label of a recorded line of ours; `None` for one that was said together with the last.
    fn label(&mut self, tongue: &Tongue, number: u64, text: &mut Value) -> Option<Label> {
        let (fold, observed) = folded(&self.setup, &self.story);
        let mut intents: Vec<Intent> = fold.wants().into_iter().chain([Intent::Interrupt]).collect();
        if let Some(words) = (tongue.prompt)(text) {
            self.prompts += 1;
            intents.push(prompt(u128::from(self.prompts), self.prompts, words));
        }
        intents.extend(observed.iter().flat_map(replies));
        (tongue.same)(text);
        let same = |intent: &Intent| {
            let said = fold.say(number, intent).ok()?;
            let first = said.bytes.split(|byte| *byte == b'\n').next().unwrap();
            let mut said_text: Value = serde_json::from_slice(first).ok()?;
            (tongue.same)(&mut said_text);
            (said_text == *text).then_some(said.label)
        };
        if let Some(label) = intents.iter().find_map(same) {
            return Some(label);
        }
        match (tongue.prompt)(text) {
            Some(_) => Some(crate::kit::label(u128::from(self.prompts), self.prompts)),
            None => (tongue.unsaid)(&fold, text),
        }
    }

    fn heard(&mut self, tongue: &Tongue, line: &Recorded) {
        let Ok(mut text) = serde_json::from_str::<Value>(&line.text) else {
            self.lines.push(format!("out {}", line.text));
            self.story = self.story.clone().line(&line.text);
            return;
        };
        self.lines.push(format!("out {}", (tongue.in_short)(&text)));
        let number = self.numbers.get(&text["id"].to_string()).filter(|_| text["method"].is_null());
        self.story = match number {
            Some(number) if text["id"].is_string() => {
                text["id"] = number.to_string().into();
                self.story.clone().line(text.to_string())
            }
            Some(number) => {
                text["id"] = (*number).into();
                self.story.clone().line(text.to_string())
            }
            None => self.story.clone().line(&line.text),
        };
    }

    /// Asks whether a failed turn is over, as a daemon does: an agent that retries says so before it answers.
    fn checks(&mut self, tongue: &Tongue, next: Option<&Recorded>) {
        let Some(answer) = tongue.checked else { return };
        let (fold, _) = folded(&self.setup, &self.story);
        if fold.wants() != Some(Intent::Handshake { step: 2 }) {
            return;
        }
        self.story = self.story.clone().said(Label::Handshake(2));
        self.lines.push("in, not recorded: get_state".to_owned());
        if next.is_none_or(|next| !next.text.contains("auto_retry_start")) {
            self.story = self.story.clone().line(answer(self.story.last_said()));
            self.lines.push("out, not recorded: its answer".to_owned());
        }
    }

    pub(crate) fn snapshot(&self) -> String {
        let observed = each(&self.setup, &self.story);
        assert_eq!(observed.len(), self.lines.len());
        let lines = self.lines.iter().zip(observed).map(|(line, observed)| {
            let observed: String = short(&observed).iter().map(|one| format!("    {one}\n")).collect();
            format!("{line}\n{observed}")
        });
        lines.collect()
    }
}

/// Returns the answers that a request may have got.
fn replies(observation: &Observation) -> Vec<Intent> {
    let Observation::RequestOpened(request) = observation else { return Vec::new() };
    let verdicts = [(Consent::Allow, false), (Consent::Allow, true), (Consent::Deny, false)];
    let reply = |(verdict, always)| {
        Intent::Answer(RequestReply { request: request.id, verdict, words: None, always })
    };
    verdicts.into_iter().map(reply).collect()
}

/// The recordings of these agents.
pub(crate) fn of(agents: &'static [&str]) -> impl Iterator<Item = Recording> {
    all().filter(|recording| agents.contains(&recording.agent.as_str()))
}

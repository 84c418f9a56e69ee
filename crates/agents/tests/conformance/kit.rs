//! Hand-made tapes, and the checks that each of them must pass.

use crate::dice::Dice;
use pinfold_agents::{
    Delivery, EndedBy, EntryKind, Fold, FoldEntry, Intent, LONGEST_CURSOR, Label, Observation, Preset,
    Prompt, Protocol, Setup, TurnAnswer, TurnOutcome, TurnOwner, Usage,
};
use pinfold_core::{Exit, MessageId, RunNumber, Wall};

pub(crate) const RUN: RunNumber = RunNumber(3);
/// The sizes in the tape's format; a fold must not depend on them.
const ENTRY_HEAD: u64 = 40;
const SEGMENT_HEAD: u64 = 32;

/// One thing that a fold is given.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Taped(Taped),
    Written(u64),
    Exited(Exit),
    LetGo(Delivery),
}

/// A tape entry with its bytes.
#[derive(Debug, Clone)]
pub(crate) struct Taped {
    position: u64,
    what: EntryKind,
    bytes: Vec<u8>,
    at: Wall,
}

impl Taped {
    fn entry(&self) -> FoldEntry<'_> {
        let label = match &self.what {
            EntryKind::Said { label, .. } => label.to_string().len() as u64 + 1,
            EntryKind::Out | EntryKind::Err | EntryKind::Gap { .. } | EntryKind::End => 0,
        };
        let end = self.position + ENTRY_HEAD + label + self.bytes.len() as u64;
        let (position, at, what) = (self.position, self.at, self.what.clone());
        FoldEntry { position, end, run: RUN, at, what, bytes: &self.bytes }
    }
}

/// A run, step by step.
#[derive(Debug, Clone, Default)]
pub(crate) struct Story {
    pub(crate) steps: Vec<Step>,
    end: u64,
    said: u64,
    time: i64,
}

impl Story {
    /// Creates a story on a tape that earlier runs have written on.
    pub(crate) fn new() -> Story {
        Story { end: 5_000, time: 1_794_800_000_000, ..Story::default() }
    }

    /// A story that begins at this time.
    pub(crate) fn beginning(time: i64) -> Story {
        Story { time, ..Story::new() }
    }

    /// Moves the clock forward to this time, if it is not past that.
    pub(crate) fn at(mut self, time: i64) -> Story {
        self.time = self.time.max(time);
        self
    }

    pub(crate) fn out(mut self, bytes: impl AsRef<[u8]>) -> Story {
        self.tape(EntryKind::Out, bytes.as_ref());
        self
    }

    pub(crate) fn line(self, text: impl AsRef<str>) -> Story {
        self.out(format!("{}\n", text.as_ref()))
    }

    pub(crate) fn err(mut self, bytes: impl AsRef<[u8]>) -> Story {
        self.tape(EntryKind::Err, bytes.as_ref());
        self
    }

    pub(crate) fn said(mut self, label: Label) -> Story {
        self.said += 1;
        // Bytes that an older daemon wrote are never read.
        self.tape(EntryKind::Said { number: self.said, label }, b"\xff{]");
        self
    }

    pub(crate) fn prompt(self, message: u128, delivery: u64) -> Story {
        self.said(label(message, delivery))
    }

    pub(crate) fn written(mut self) -> Story {
        self.steps.push(Step::Written(self.said));
        self
    }

    pub(crate) fn let_go(mut self, message: u128, delivery: u64) -> Story {
        self.steps.push(Step::LetGo(Delivery { message: MessageId(message), delivery }));
        self
    }

    pub(crate) fn gap(mut self, lost: u64) -> Story {
        self.tape(EntryKind::Gap { lost }, &lost.to_le_bytes());
        self
    }

    pub(crate) fn ends(mut self, exit: Exit) -> Story {
        self.tape(EntryKind::End, b"");
        self.steps.push(Step::Exited(exit));
        self
    }

    pub(crate) fn last_said(&self) -> u64 {
        self.said
    }

    fn tape(&mut self, what: EntryKind, bytes: &[u8]) {
        let taped = Taped { position: self.end, what, bytes: bytes.to_vec(), at: Wall(self.time) };
        self.end = taped.entry().end + if self.steps.len() % 7 == 6 { SEGMENT_HEAD } else { 0 };
        self.time += 1;
        self.steps.push(Step::Taped(taped));
    }

    /// Returns the same story with its output cut differently; each piece has the time of the whole.
    pub(crate) fn cut(&self, mut size: impl FnMut() -> usize) -> Story {
        let mut story = Story { said: self.said, ..Story::new() };
        for step in &self.steps {
            match step {
                Step::Taped(taped) if matches!(taped.what, EntryKind::Out | EntryKind::Err) => {
                    let mut rest = &taped.bytes[..];
                    while !rest.is_empty() {
                        let (piece, behind) = rest.split_at(size().clamp(1, rest.len()));
                        story.time = taped.at.0;
                        story.tape(taped.what.clone(), piece);
                        rest = behind;
                    }
                }
                Step::Taped(taped) => {
                    story.time = taped.at.0;
                    story.tape(taped.what.clone(), &taped.bytes);
                }
                Step::Written(_) | Step::Exited(_) | Step::LetGo(_) => story.steps.push(step.clone()),
            }
        }
        story
    }

    /// All entries.
    pub(crate) fn taped(&self) -> impl Iterator<Item = FoldEntry<'_>> {
        self.entries(self.steps.len())
    }

    fn entries(&self, before: usize) -> impl Iterator<Item = FoldEntry<'_>> {
        self.steps[..before].iter().filter_map(|step| match step {
            Step::Taped(taped) => Some(taped.entry()),
            Step::Written(_) | Step::Exited(_) | Step::LetGo(_) => None,
        })
    }
}

/// Returns what a fold observes at one step.
fn told(fold: &mut Fold, step: &Step) -> Vec<Observation> {
    match step {
        Step::Taped(taped) => fold.entry(&taped.entry()),
        Step::Written(number) => fold.written(*number),
        Step::Exited(exit) => fold.exited(*exit, EndedBy::Itself),
        Step::LetGo(delivery) => fold.let_go(*delivery),
    }
}

/// Returns the fold of a whole story, and what was observed.
pub(crate) fn folded(setup: &Setup, story: &Story) -> (Fold, Vec<Observation>) {
    let (mut fold, mut observed) = Fold::begin(RUN, setup.clone());
    for step in &story.steps {
        observed.extend(told(&mut fold, step));
    }
    (fold, observed)
}

/// Returns what is observed before the first step of a story, and at each step.
pub(crate) fn each(setup: &Setup, story: &Story) -> Vec<Vec<Observation>> {
    let (mut fold, begin) = Fold::begin(RUN, setup.clone());
    let steps = story.steps.iter().map(|step| told(&mut fold, step));
    std::iter::once(begin).chain(steps).collect()
}

/// Returns what is observed in a story.
pub(crate) fn observed(setup: &Setup, story: &Story) -> Vec<Observation> {
    folded(setup, story).1
}

/// Checks that a fold resumed before any step, from its cursor and a tape, continues as if it had never
/// stopped.
pub(crate) fn resumes_anywhere(setup: &Setup, story: &Story, pick: impl Fn(usize) -> bool) {
    let (mut fold, _) = Fold::begin(RUN, setup.clone());
    let mut cursors = Vec::new();
    let mut observed = Vec::new();
    for (stopped, step) in story.steps.iter().enumerate() {
        cursors.extend(pick(stopped).then(|| (stopped, fold.cursor())));
        observed.push(told(&mut fold, step));
    }
    let last = fold.cursor();
    for (stopped, cursor) in cursors {
        assert!(cursor.len() <= LONGEST_CURSOR);
        let mut again = resumed(story, stopped, &cursor);
        for (step, expected) in story.steps.iter().zip(&observed).skip(stopped) {
            assert_eq!(&told(&mut again, step), expected, "resumed before step {stopped}");
        }
        assert_eq!(again.cursor(), last);
    }
}

/// Resumes a fold from a cursor; it has reread what it needs of the tape, or all of it.
fn resumed(story: &Story, stopped: usize, cursor: &str) -> Fold {
    let (mut fold, said) = Fold::resume(RUN, cursor);
    assert_eq!(said, [], "{cursor}");
    assert_eq!(fold.cursor(), cursor, "a cursor is read as it was written");
    let needed = if stopped.is_multiple_of(2) { fold.reads_from() } else { 0 };
    for entry in story.entries(stopped).filter(|entry| entry.position >= needed) {
        assert_eq!(fold.entry(&entry), [], "what was folded is passed over");
    }
    fold
}

/// Checks all that must hold for any story.
pub(crate) fn conforms(setup: &Setup, story: &Story, dice: &mut Dice) {
    let whole = observed(setup, story);
    resumes_anywhere(setup, story, |_| true);
    let single = story.cut(|| 1);
    assert_eq!(observed(setup, &single), whole, "byte by byte");
    let random = story.cut(|| 1 + dice.below(200));
    assert_eq!(observed(setup, &random), whole, "in pieces");
    let count = random.steps.len() + 1;
    let chosen = [dice.below(count), dice.below(count), dice.below(count)];
    resumes_anywhere(setup, &random, |stopped| chosen.contains(&stopped));
    let count = single.steps.len() + 1;
    let chosen = [dice.below(count), dice.below(count)];
    resumes_anywhere(setup, &single, |stopped| chosen.contains(&stopped));
}

/// The setup of a protocol.
pub(crate) fn setup(protocol: Protocol) -> Setup {
    Setup::new(&Preset { protocol, ..Preset::default() }, "/work", None)
}

/// The label of a delivery.
pub(crate) fn label(message: u128, delivery: u64) -> Label {
    Label::Prompt { message: MessageId(message), delivery }
}

/// A delivery of a message.
pub(crate) fn prompt(message: u128, delivery: u64, text: &str) -> Intent {
    Intent::Prompt(Prompt {
        message: MessageId(message),
        delivery,
        attempt: 1,
        text: text.into(),
        repetition: false,
        files: Vec::new(),
        from: None,
    })
}

/// Returns the observations in short, one line each.
pub(crate) fn short(observed: &[Observation]) -> Vec<String> {
    observed.iter().map(one).collect()
}

/// The same without what follows from the rest: readiness, activity and beginnings.
pub(crate) fn ends(observed: &[Observation]) -> Vec<String> {
    let kept = |line: &String| !["ready", "activity ", "began "].iter().any(|word| line.starts_with(word));
    short(observed).into_iter().filter(kept).collect()
}

fn one(observation: &Observation) -> String {
    match observation {
        Observation::Ready => "ready".into(),
        Observation::Taken(delivery) => format!("taken {}", delivery.delivery),
        Observation::TurnBegan(turn) => format!("began {}", whose(turn)),
        Observation::TurnEnded { turn, outcome, answer, usage } => {
            let (answer, usage) = (text(answer.as_ref()), cost(usage.as_ref()));
            format!("{} {}{answer}{usage}", how(outcome), whose(turn))
        }
        Observation::EndInDoubt { turn, named, answer } => {
            format!("doubt {} named {}{}", turn.delivery, named.0, text(Some(answer)))
        }
        Observation::AnswerPart { offset, text } => format!("part {offset}+{}", text.len()),
        Observation::RequestOpened(request) => {
            format!("asks {} {:?} {}", request.id, request.kind, request.title)
        }
        Observation::RequestWithdrawn(id) => format!("withdrawn {id}"),
        Observation::Activity(activity) => format!("activity {activity:?}"),
        Observation::VendorSession { id, before } => {
            format!(
                "session {id}{}",
                before.as_ref().map(|before| format!(" after {before}")).unwrap_or_default()
            )
        }
        Observation::VendorSessionRefused(why) => format!("refused {why:?}"),
        Observation::Limit(limit) => {
            format!(
                "limit {:?}{}",
                limit.reach,
                limit.until.map(|until| format!(" until {}", until.0)).unwrap_or_default()
            )
        }
        Observation::LoginNeeded { text } => format!("login {text}"),
        Observation::OwnWork { under_way } => format!("own work {under_way}"),
        Observation::Wants(intent) => format!("wants {}", intent.label()),
        Observation::Note(note) => format!("note: {note}"),
    }
}

fn whose(turn: &TurnOwner) -> String {
    match turn {
        TurnOwner::Of(delivery) => delivery.delivery.to_string(),
        TurnOwner::Own => "own".into(),
    }
}

fn how(outcome: &TurnOutcome) -> String {
    match outcome {
        TurnOutcome::Done => "done".into(),
        TurnOutcome::Failed(failure) => format!("failed ({:?}: {})", failure.kind, failure.text),
        TurnOutcome::Interrupted => "interrupted".into(),
        TurnOutcome::CancelledUnasked { crossed: true } => "cancelled by a crossed interrupt".into(),
        TurnOutcome::CancelledUnasked { crossed: false } => "cancelled unasked".into(),
    }
}

fn text(answer: Option<&TurnAnswer>) -> String {
    answer.map(|answer| format!(" {:?}", answer.text)).unwrap_or_default()
}

fn cost(usage: Option<&Usage>) -> String {
    let Some(usage) = usage else { return String::new() };
    let (spent, of) =
        if usage.turn.input_tokens.is_some() { (usage.turn, "") } else { (usage.session, " in all") };
    format!(" for {}+{}{of}", spent.input_tokens.unwrap_or(0), spent.output_tokens.unwrap_or(0))
}

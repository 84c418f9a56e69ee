//! The fold of one run: entries of its tape in, observations out; intents in, bytes out.

use crate::cursor::{self, Cursor, FoldPosition, Unreadable};
use crate::entry::{EntryKind, FoldEntry};
use crate::intent::{CannotSay, Intent, Utterance};
use crate::label::Label;
use crate::ledger::RunLedger;
use crate::lines::{LONGEST_LINE, LinePiece, LineReader};
use crate::mind::Mind;
use crate::note::LogNote;
use crate::observation::{Activity, GaveUp, Observation};
use crate::preset::Protocol;
use crate::setup::Setup;
use crate::state::{TranslatorState, UnknownState};
use crate::translate::TranslatorInput;
use crate::turn::{Delivery, EndedBy};
use crate::word::Want;
use pinfold_core::{Exit, MessageId, RunNumber, Wall};

/// Longer lines on standard error are skipped.
const LONGEST_ERROR_LINE: usize = 64 << 10;

/// What is known of one run from its tape.
#[derive(Debug)]
pub struct Fold {
    place: FoldPosition,
    out: LineReader,
    err: LineReader,
    mind: Mind,
}

impl Fold {
    /// Begins a run, before any of its entries. The cursor must be stored in the transaction that decides on
    /// the run.
    #[must_use]
    pub fn begin(run: RunNumber, setup: Setup) -> (Fold, Vec<Observation>) {
        let (mut told, state) = (Vec::new(), TranslatorState::new(setup.protocol));
        let ledger = RunLedger::new(setup.vendor_session.as_deref());
        let mut fold = Fold {
            place: FoldPosition { run, to: 0 },
            out: LineReader::new(LONGEST_LINE),
            err: LineReader::new(LONGEST_ERROR_LINE),
            mind: Mind { setup, ledger, state },
        };
        if fold.mind.state.is_unknown() {
            let why = "this version has no translator for its protocol".to_owned();
            fold.mind.ledger.note(LogNote::Unknown { why }, &mut told);
        }
        fold.mind.hear(TranslatorInput::Begin, Wall(0), &mut told);
        (fold, told)
    }

    /// Resumes a run from a cursor. Entries must be given from [`reads_from`](Fold::reads_from) on, or from
    /// any earlier position. A cursor that cannot be read, or belongs to another run, makes a fold that
    /// concludes nothing.
    #[must_use]
    pub fn resume(run: RunNumber, cursor: &str) -> (Fold, Vec<Observation>) {
        match cursor::read(cursor) {
            Ok(cursor) if cursor.place.run == run => (Fold::from_cursor(cursor), Vec::new()),
            Ok(cursor) => Fold::unknown(run, None, format!("its cursor is of {}", cursor.place.run)),
            Err(Unreadable { place, why }) => Fold::unknown(run, place, why),
        }
    }

    fn from_cursor(cursor: Cursor) -> Fold {
        let Cursor { place, out, err, setup, ledger, state } = cursor;
        Fold {
            place,
            out: LineReader::resume(LONGEST_LINE, out),
            err: LineReader::resume(LONGEST_ERROR_LINE, err),
            mind: Mind { setup, ledger, state },
        }
    }

    fn unknown(run: RunNumber, place: Option<FoldPosition>, why: String) -> (Fold, Vec<Observation>) {
        let state = TranslatorState::Unknown(UnknownState {});
        let mut fold = Fold {
            place: place.filter(|place| place.run == run).unwrap_or(FoldPosition { run, to: 0 }),
            out: LineReader::new(LONGEST_LINE),
            err: LineReader::new(LONGEST_ERROR_LINE),
            mind: Mind { setup: Setup::default(), ledger: RunLedger::default(), state },
        };
        let mut told = Vec::new();
        fold.mind.ledger.note(LogNote::Unknown { why }, &mut told);
        told.push(Observation::Activity(Activity::Unknown));
        (fold, told)
    }

    /// Folds one entry. Entries of other runs, and those already folded, are skipped.
    #[must_use]
    pub fn entry(&mut self, entry: &FoldEntry<'_>) -> Vec<Observation> {
        let mut told = Vec::new();
        if entry.run != self.place.run {
            return told;
        }
        if entry.position < self.place.to {
            self.again(entry);
            return told;
        }
        match &entry.what {
            EntryKind::Out => self.printed(entry, &mut told),
            EntryKind::Err => self.complained(entry, &mut told),
            EntryKind::Said { number, label } => self.said(*number, label, entry, &mut told),
            EntryKind::Gap { lost } => self.gap(*lost, &mut told),
            EntryKind::End => self.ended(entry.at, &mut told),
        }
        self.place.to = entry.end.max(entry.position);
        told
    }

    /// The shim has written everything up to this number to the agent's input. That is not on the tape: it
    /// counts once the next cursor is stored, and may be reported again at any time.
    #[must_use]
    pub fn written(&mut self, number: u64) -> Vec<Observation> {
        let mut told = Vec::new();
        self.mind.hear(TranslatorInput::Written { number }, Wall(0), &mut told);
        told
    }

    /// The run ended, and the fold has reached the end of its tape. Deliveries that are still open were cut
    /// short.
    #[must_use]
    pub fn exited(&mut self, exit: Exit, by: EndedBy) -> Vec<Observation> {
        let mut told = Vec::new();
        self.mind.hear(TranslatorInput::Exited(exit, by), Wall(0), &mut told);
        self.mind.ledger.exited(&mut told);
        told
    }

    /// The run was for this delivery, and ended before the prompt was said: all its output belongs to that
    /// turn. Applies only to protocol `exec`, and only if nothing was said in this run.
    pub fn was_for(&mut self, delivery: Delivery) {
        if self.mind.setup.protocol == Protocol::Exec && self.last_said() == 0 {
            self.mind.ledger.was_for(delivery, self.place.to);
        }
    }

    /// A delivery is over for a reason that is not on the tape; a late end of it is ignored.
    #[must_use]
    pub fn let_go(&mut self, delivery: Delivery) -> Vec<Observation> {
        let mut told = Vec::new();
        self.mind.ledger.let_go(delivery, &mut told);
        self.mind.tell_activity(&mut told);
        told
    }

    /// Returns what to send to the shim as word `number` to express an intent. Nothing changes until it is on
    /// the tape.
    ///
    /// # Errors
    /// It cannot be said now, or at all.
    pub fn say(&self, number: u64, intent: &Intent) -> Result<Utterance, CannotSay> {
        let spoken = self.mind.say(number, intent)?;
        let heard = match intent {
            // Output since then may have ended the turn, or begun one.
            Intent::Interrupt | Intent::Close => Some(self.place.to),
            Intent::Handshake { .. } | Intent::Prompt(_) | Intent::Answer(_) => None,
        };
        Ok(Utterance { label: intent.label(), bytes: spoken.bytes, heard, close: spoken.close })
    }

    /// Returns what the protocol needs said next, until that is on the tape.
    #[must_use]
    pub fn wants(&self) -> Option<Intent> {
        self.mind.ledger.want().map(Want::intent)
    }

    /// Returns all that is known, to be stored with the observations.
    #[must_use]
    pub fn cursor(&self) -> String {
        cursor::write(self.place, self.out.progress(), self.err.progress(), &self.mind)
    }

    /// Returns the run's number.
    #[must_use]
    pub fn run(&self) -> RunNumber {
        self.place.run
    }

    /// Returns how far the tape is folded.
    #[must_use]
    pub fn to(&self) -> u64 {
        self.place.to
    }

    /// Returns the position from which the tape is needed after [`resume`](Fold::resume); nothing below it
    /// has to be kept.
    #[must_use]
    pub fn reads_from(&self) -> u64 {
        let begun = [self.out.needed_from(), self.err.needed_from()].into_iter().flatten().min();
        begun.unwrap_or(self.place.to)
    }

    /// Returns how many bytes of unfinished lines are in memory. To free them, store the cursor and resume
    /// later.
    #[must_use]
    pub fn holding(&self) -> usize {
        self.out.holding() + self.err.holding()
    }

    /// Returns whether this version can conclude nothing from this run.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.mind.state.is_unknown()
    }

    /// Returns whether the agent can be given messages.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.mind.ledger.ready()
    }

    /// Returns why the agent was told to leave before it was ready, if it was; its exit code does not say.
    #[must_use]
    pub fn gave_up(&self) -> Option<GaveUp> {
        self.mind.ledger.gave_up()
    }

    /// Returns the number of the last word on the tape.
    #[must_use]
    pub fn last_said(&self) -> u64 {
        self.mind.ledger.last_said()
    }

    /// Returns the agent's last reported activity.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.mind.ledger.activity()
    }

    /// Returns the vendor session, if it is known.
    #[must_use]
    pub fn vendor_session(&self) -> Option<&str> {
        self.mind.ledger.session()
    }

    /// Returns the message that the run was decided for, if it is for only one.
    #[must_use]
    pub fn prompted(&self) -> Option<MessageId> {
        self.mind.setup.prompted
    }

    /// Records that the run is started for a different message than it was decided for.
    pub fn prompts(&mut self, message: Option<MessageId>) {
        self.mind.setup.prompted = message;
    }

    /// Returns how often the agent began the answer of the current turn again: its model's stream broke off.
    #[must_use]
    pub fn begun_again(&self) -> u32 {
        self.mind.state.translator().begun_again()
    }

    /// Returns whether the agent is doing work of its own.
    #[must_use]
    pub fn own_work(&self) -> bool {
        self.mind.ledger.own_work()
    }

    /// Returns the open deliveries in the order they were said, each with whether the agent took it.
    pub fn open(&self) -> impl Iterator<Item = (Delivery, bool)> + '_ {
        self.mind.ledger.open().iter().map(|open| (open.delivery, open.taken))
    }

    /// Handles an entry that was folded before: only an unfinished line is read again.
    fn again(&mut self, entry: &FoldEntry<'_>) {
        match entry.what {
            EntryKind::Out => self.out.again(entry.position, entry.bytes),
            EntryKind::Err => self.err.again(entry.position, entry.bytes),
            EntryKind::Said { .. } | EntryKind::Gap { .. } | EntryKind::End => {}
        }
    }

    fn printed(&mut self, entry: &FoldEntry<'_>, told: &mut Vec<Observation>) {
        let Fold { out, mind, .. } = self;
        out.read(entry.position, entry.bytes, |piece| printed(mind, &piece, entry.at, told));
    }

    fn complained(&mut self, entry: &FoldEntry<'_>, told: &mut Vec<Observation>) {
        let Fold { err, mind, .. } = self;
        err.read(entry.position, entry.bytes, |piece| complained(mind, &piece, entry.at, told));
    }

    fn said(&mut self, number: u64, label: &Label, entry: &FoldEntry<'_>, told: &mut Vec<Observation>) {
        self.mind.ledger.said(number, label, entry.position);
        self.mind.hear(TranslatorInput::Said { number, label }, entry.at, told);
    }

    fn gap(&mut self, lost: u64, told: &mut Vec<Observation>) {
        self.out.interrupted();
        self.err.interrupted();
        self.mind.ledger.note(LogNote::Gap { lost: Some(lost) }, told);
    }

    fn ended(&mut self, at: Wall, told: &mut Vec<Observation>) {
        let Fold { out, err, mind, .. } = self;
        out.end(|piece| printed(mind, &piece, at, told));
        err.end(|piece| complained(mind, &piece, at, told));
    }
}

/// Handles a piece of the agent's output.
fn printed(mind: &mut Mind, piece: &LinePiece<'_>, at: Wall, told: &mut Vec<Observation>) {
    match *piece {
        LinePiece::Line { bytes, began } => mind.hear(TranslatorInput::Line { bytes, began }, at, told),
        LinePiece::TooLong => {
            mind.ledger.note(LogNote::LineTooLong, told);
            mind.hear(TranslatorInput::TooLong, at, told);
        }
        LinePiece::Lost => mind.ledger.note(LogNote::Gap { lost: None }, told),
    }
}

/// Handles a piece of the agent's standard error.
fn complained(mind: &mut Mind, piece: &LinePiece<'_>, at: Wall, told: &mut Vec<Observation>) {
    match *piece {
        LinePiece::Line { bytes, .. } => mind.hear(TranslatorInput::ErrorLine(bytes), at, told),
        LinePiece::TooLong | LinePiece::Lost => {}
    }
}

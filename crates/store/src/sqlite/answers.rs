//! Long answers: each has its own file in its session's folder, on disk before the row that names it.
//!
//! Parts from an agent go into a draft (`MESSAGE.part`), unsynced, before the commit that counts them as
//! delivered. At the end of the turn the rest is added, the draft is synced and renamed, and the folder is
//! synced; then the row is committed. So a row never names a file that does not exist, and a crash leaves at
//! most a file that no row names, which is swept.

use super::sums::Sum;
use crate::answer::{ANSWERS, AnswerKept, AnswerPart, AnswerTold, BEGINNING, DRAFT, LONGEST_IN_ROW};
use crate::batch::Batch;
use crate::open::{Steps, StoreOptions};
use crate::step::{Step, message_of};
use crate::ulid::{SessionId, Ulid};
use pinfold_core::inbox::MessageChange;
use rusqlite::types::ValueRef;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How much of a file is read at once.
const PIECE: usize = 64 << 10;
/// Tells the checksum of an answer from that of a row.
const TAG: i64 = 8;

/// Where the answers of all sessions are: each has its own folder there. Without such a place they stay in their rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerFiles {
    sessions: Option<PathBuf>,
    steps: Steps,
}

/// An answer as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettledAnswer {
    /// The whole answer, or the beginning of what is in the file.
    pub(crate) words: String,
    /// The length of the whole answer.
    pub(crate) bytes: u64,
    /// The checksum of the file, if there is one.
    pub(crate) content: Option<i64>,
    pub(crate) cut: bool,
}

/// Answers that do not fit into their rows, by message.
pub(crate) type AllSettled = BTreeMap<Ulid, SettledAnswer>;

impl AnswerFiles {
    pub(crate) fn new(options: &StoreOptions) -> AnswerFiles {
        AnswerFiles { sessions: options.sessions.clone(), steps: options.steps }
    }

    /// Writes the long answers of these batches to the disk. It may be repeated.
    pub(crate) fn settle(&self, batches: &[&Batch]) -> io::Result<AllSettled> {
        let mut settled = AllSettled::new();
        for batch in batches {
            for part in &batch.parts {
                // If it cannot be written, the answer is cut, which shows at its end.
                bearable(self.write_part(part))?;
            }
            for step in &batch.steps {
                if let Step::Message {
                    session,
                    change: change @ MessageChange::Done { .. },
                    words: Some(rest),
                    told,
                    ..
                } = step
                    && told.is_more_than_a_row(rest)
                {
                    let message = Ulid::from(message_of(change));
                    let kept = bearable(self.keep((*session, message), *told, rest))?;
                    settled.insert(message, kept.unwrap_or_else(|| in_row(*told, rest)));
                }
            }
        }
        Ok(settled)
    }

    /// Removes drafts of answers that are in their rows after all.
    pub(crate) fn drop_drafts(&self, batches: &[&Batch]) {
        for step in batches.iter().flat_map(|batch| &batch.steps) {
            if let Step::Message { session, change: change @ MessageChange::Done { .. }, told, .. } = step
                && told.before > 0
                && let Some(draft) = self.draft(*session, Ulid::from(message_of(change)))
            {
                // One that stays is swept.
                drop(fs::remove_file(draft));
            }
        }
    }

    /// Removes the file of a message that was forgotten.
    pub(crate) fn remove(&self, session: SessionId, message: Ulid) {
        if let Some(file) = self.file(session, message) {
            // One that stays is swept.
            drop(fs::remove_file(file));
        }
    }

    /// Reads a whole answer.
    ///
    /// # Errors
    /// It was altered since it was written, or cannot be read.
    pub(crate) fn read(
        &self,
        session: SessionId,
        message: Ulid,
        kept: AnswerKept,
        content: i64,
    ) -> io::Result<String> {
        let path = self.file(session, message).ok_or(io::ErrorKind::NotFound)?;
        let mut file = File::open(path)?;
        let (length, sum) = summed(&mut file)?;
        if Some(length) != kept.beside || sum != content {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not as it was written"));
        }
        file.rewind()?;
        let mut words = String::with_capacity(usize::try_from(length).unwrap_or(0));
        file.read_to_string(&mut words)?;
        Ok(words)
    }

    fn folder(&self, session: SessionId) -> Option<PathBuf> {
        self.sessions.as_ref().map(|sessions| sessions.join(session.to_string()).join(ANSWERS))
    }

    fn file(&self, session: SessionId, message: Ulid) -> Option<PathBuf> {
        self.folder(session).map(|folder| folder.join(message.to_string()))
    }

    fn draft(&self, session: SessionId, message: Ulid) -> Option<PathBuf> {
        self.folder(session).map(|folder| folder.join(format!("{message}{DRAFT}")))
    }

    /// Writes a part, which replaces everything from its offset on.
    fn write_part(&self, part: &AnswerPart) -> io::Result<()> {
        let Some(draft) = self.draft(part.session, part.message) else { return Ok(()) };
        let mut file = opened(&draft)?;
        let length = file.metadata()?.len();
        file.set_len(length.min(part.offset))?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(part.text.as_bytes())
    }

    fn keep(
        &self,
        (session, message): (SessionId, Ulid),
        told: AnswerTold,
        rest: &str,
    ) -> io::Result<SettledAnswer> {
        let AnswerTold { before, cut } = told;
        let (Some(draft), Some(named)) = (self.draft(session, message), self.file(session, message)) else {
            return Ok(in_row(told, rest));
        };
        // A batch that failed with others is tried again by itself: then its file may already have its name.
        let source = if named.exists() && !draft.exists() { &named } else { &draft };
        if before + rest.len() as u64 <= LONGEST_IN_ROW {
            let mut words = beginning_of(source, before)?;
            let cut = cut || (words.len() as u64) < before;
            words.push_str(rest);
            return Ok(SettledAnswer { bytes: words.len() as u64, words, content: None, cut });
        }
        let mut file = opened(source)?;
        // A power failure may have taken what was never synced.
        let found = file.metadata()?.len().min(before);
        file.set_len(found)?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(rest.as_bytes())?;
        self.steps.pass("answer.written");
        file.sync_all()?;
        let (bytes, content) = summed(&mut file)?;
        fs::rename(source, &named)?;
        self.steps.pass("answer.named");
        super::files::sync_folder(&named)?;
        let words = beginning_of(&named, BEGINNING as u64)?;
        Ok(SettledAnswer { words, bytes, content: Some(content), cut: cut || found < before })
    }
}

/// Sorts the results of file operations. A full disk is waited for; a folder that one session has spoilt must
/// not hold up the others.
fn bearable<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind()) => {
            Err(error)
        }
        Err(_) => Ok(None),
    }
}

/// Returns an answer that has no file, however long it is.
fn in_row(told: AnswerTold, rest: &str) -> SettledAnswer {
    let (words, bytes) = (rest.to_owned(), rest.len() as u64);
    SettledAnswer { words, bytes, content: None, cut: told.cut || told.before > 0 }
}

/// Opens a file for its owner alone, in a folder that is created if it is missing.
fn opened(path: &Path) -> io::Result<File> {
    let open =
        || OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
            DirBuilder::new().mode(0o700).recursive(true).create(folder)?;
            super::files::sync_folder(folder)?;
            open()
        }
        other => other,
    }
}

/// Returns the first bytes of a text; a character that would be cut is left out.
fn beginning_of(path: &Path, bytes: u64) -> io::Result<String> {
    let mut read = Vec::new();
    match File::open(path) {
        Ok(file) => drop(file.take(bytes).read_to_end(&mut read)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let whole = read.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    read.truncate(whole);
    Ok(String::from_utf8(read).unwrap_or_default())
}

/// Returns the length and the checksum of a whole file.
fn summed(file: &mut File) -> io::Result<(u64, i64)> {
    file.rewind()?;
    let (mut sum, mut length, mut piece) = (Sum::of(TAG), 0, Vec::with_capacity(PIECE));
    loop {
        piece.clear();
        let read = Read::by_ref(file).take(PIECE as u64).read_to_end(&mut piece)?;
        if read == 0 {
            return Ok((length, sum.done()));
        }
        length += read as u64;
        sum.add(ValueRef::Blob(&piece));
    }
}

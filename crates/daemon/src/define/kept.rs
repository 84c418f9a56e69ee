//! The copy of a vendor's transcript in the folder of its session.
//!
//! Vendors delete transcripts, disks fill up, stores are unmounted. After each turn that is answered, what the
//! vendor has appended since is checked and copied; before a resume the file is compared with the copy, and
//! put back if it is missing or damaged. A copy is an exact beginning of what the vendor wrote, and is
//! never merged with anything. It is not synced: its digest says whether it survived a power failure.
//!
//! Only files of JSON lines to which the vendor appends are kept. A link in the place of a transcript is left alone:
//! an agent in a sandbox can make one that leads to a file outside.

use crate::define::preset::VendorTranscript;
use crate::define::transcript::{Sought, UnreadablePlace, there};
use crate::define::transcript_lines::{TranscriptDamage, added, compare, contains};
use pinfold_core::Wall;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longer transcripts are not copied: a hard link still brings them back if they are deleted.
const LONGEST_COPY: u64 = 64 << 20;
/// Answered turns that are looked for in a transcript; more are not remembered.
const MOST_MISSING: usize = 50;
/// Some vendors write down a turn a moment after they report it.
const WAITS_MS: [u64; 5] = [50, 100, 200, 400, 800];

/// Where the transcript of a session is, and where its copy.
#[derive(Debug, Clone)]
pub(crate) struct TranscriptCopy {
    /// The folder of the copy.
    pub(crate) folder: PathBuf,
    pub(crate) sought: Sought,
    /// The vendor's id of the conversation.
    pub(crate) vendor: String,
    /// How often a person chose a conversation: whoever names one again accepts what the vendor has of it.
    pub(crate) choice: u64,
    /// The directory of the session.
    pub(crate) dir: PathBuf,
    /// Turns that were answered and have not been looked for yet.
    pub(crate) turns: Vec<SaidTurn>,
    /// One thread at a time has the copy.
    pub(crate) alone: Arc<Mutex<()>>,
}

/// A turn that was answered, by the beginnings of its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SaidTurn {
    /// Texts that the transcript contains if it contains the turn, without white space.
    pub(crate) texts: Vec<String>,
}

/// Whether the vendor has written down everything that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saved {
    Yes,
    No,
}

/// What was found of a conversation before its next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) transcript: VendorTranscript,
    /// It was kept, so something was said in it.
    pub(crate) kept: bool,
    pub(crate) state: FoundState,
}

/// The state of a transcript, compared with what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundState {
    /// It is as the vendor left it, as far as is known.
    AsItWas,
    /// It was missing or damaged, and was put back.
    PutBack,
    /// It lacks something that was answered, and no copy has it.
    Incomplete,
    /// It is that of another directory.
    Elsewhere,
}

/// What is known of the copy.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    vendor: String,
    choice: u64,
    path: PathBuf,
    dir: PathBuf,
    /// How much of the file is known to be whole.
    size: u64,
    digest: u64,
    /// Whether that is in the copy, or only linked.
    linked: bool,
    /// Answered turns that were not found in the file yet.
    missing: Vec<SaidTurn>,
}

impl TranscriptCopy {
    /// Checks what the vendor has written since, and adds it to the copy. Blocks.
    pub(crate) fn keep(&self) -> io::Result<Saved> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut note = self.note()?.unwrap_or_else(|| self.first_note());
        note.expect(&self.turns);
        let mut pauses = WAITS_MS.iter().filter(|_| !self.turns.is_empty());
        loop {
            if self.catch_up(&mut note)? {
                self.write(&note)?;
                return Ok(Saved::Yes);
            }
            match pauses.next() {
                Some(pause) => std::thread::sleep(Duration::from_millis(*pause)),
                None => break,
            }
        }
        self.write(&note)?;
        Ok(Saved::No)
    }

    /// Takes what was added to the file into the copy, if it is whole and contains everything that was
    /// answered.
    fn catch_up(&self, note: &mut Note) -> io::Result<bool> {
        let Ok(Some(path)) = self.sought.find() else { return Ok(false) };
        if path != note.path {
            // It is another file of the same conversation.
            *note = Note { missing: std::mem::take(&mut note.missing), ..self.first_note() };
            note.path.clone_from(&path);
        }
        if path.is_symlink() {
            note.missing.clear();
            return Ok(true);
        }
        let mut file = open(&path)?;
        if file.metadata()?.len() < note.size || !self.continues(note, &mut file)? {
            return Ok(false);
        }
        file.seek(SeekFrom::Start(note.size))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let Some(lines) = added(&bytes) else { return Ok(false) };
        if !note.missing.iter().all(|turn| contains(&lines, &turn.texts)) {
            return Ok(false);
        }
        self.append(note, &bytes, &path)?;
        note.missing.clear();
        note.dir.clone_from(&self.dir);
        Ok(true)
    }

    /// Whether the file still has at its known end what the copy ends with.
    fn continues(&self, note: &Note, file: &mut File) -> io::Result<bool> {
        if note.size == 0 || note.linked {
            return Ok(true);
        }
        let Some(mut copy) = there(open(&self.copy()))? else { return Ok(false) };
        let (from, mut ends) = (note.size.saturating_sub(4 << 10), [Vec::new(), Vec::new()]);
        for (of, end) in [file, &mut copy].into_iter().zip(&mut ends) {
            of.seek(SeekFrom::Start(from))?;
            of.take(note.size - from).read_to_end(end)?;
        }
        Ok(ends[0] == ends[1])
    }

    fn append(&self, note: &mut Note, bytes: &[u8], path: &Path) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let size = note.size + bytes.len() as u64;
        if size > LONGEST_COPY || note.linked {
            note.linked = true;
            _ = std::fs::remove_file(self.copy());
            // A link to a file on another file system is not possible; then only its size is known.
            _ = std::fs::hard_link(path, self.copy());
        } else {
            let mut copy = private().append(true).create(true).truncate(false).open(self.copy())?;
            // What a write that failed half-way left behind.
            copy.set_len(note.size)?;
            copy.write_all(bytes)?;
        }
        (note.size, note.digest) = (size, digest(note.digest, bytes));
        Ok(())
    }

    /// Compares the file with the copy, and puts it back if it is missing or damaged. Blocks.
    pub(crate) fn before_resume(&self) -> Result<Found, UnreadablePlace> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.sought.find()?;
        let transcript = match path {
            Some(_) => VendorTranscript::Exists,
            None => VendorTranscript::Missing,
        };
        let note = self.note().map_err(|error| UnreadablePlace { path: self.folder.clone(), error })?;
        let Some(mut note) = note else {
            return Ok(Found { transcript, kept: false, state: FoundState::AsItWas });
        };
        note.expect(&self.turns);
        let found = path.is_some();
        let at = path.unwrap_or_else(|| note.path.clone());
        let mended = self.mend(&note, &at, found);
        let mended = mended.map_err(|error| UnreadablePlace { path: at, error })?;
        let elsewhere = found && note.dir != self.dir;
        let as_found = if elsewhere { FoundState::Elsewhere } else { FoundState::AsItWas };
        let state = mended.unwrap_or(as_found);
        let transcript = if state == FoundState::PutBack { VendorTranscript::Exists } else { transcript };
        Ok(Found { transcript, kept: note.size > 0 || !note.missing.is_empty(), state })
    }

    /// Puts the file back if it is not what it was; returns whether that was necessary or impossible.
    fn mend(&self, note: &Note, path: &Path, found: bool) -> io::Result<Option<FoundState>> {
        if note.size == 0 {
            // Nothing of it was ever seen: only the vendor knows whether it has it.
            return Ok(None);
        }
        if path.is_symlink() {
            return Ok(None);
        }
        if found && let Some(since) = since(path, note)? {
            return Ok(note.lacks_any(&since).then_some(FoundState::Incomplete));
        }
        let Some(kept) = self.kept(note)? else { return Ok(None) };
        let damage = there(read(path))?.map_or(TranscriptDamage::Lost, |file| compare(&file, &kept));
        Ok(match damage {
            TranscriptDamage::None | TranscriptDamage::Rewritten => None,
            TranscriptDamage::Diverged => Some(FoundState::Incomplete),
            TranscriptDamage::Lost if !note.missing.is_empty() => Some(FoundState::Incomplete),
            TranscriptDamage::Lost => {
                put_back(path, &kept)?;
                Some(FoundState::PutBack)
            }
        })
    }

    /// The bytes of the copy, if they are what they were.
    fn kept(&self, note: &Note) -> io::Result<Option<Vec<u8>>> {
        if note.size == 0 {
            return Ok(None);
        }
        let Some(mut kept) = there(read(&self.copy()))? else { return Ok(None) };
        kept.truncate(usize::try_from(note.size).unwrap_or(usize::MAX));
        let whole = kept.len() as u64 == note.size && digest(0, &kept) == note.digest;
        Ok(whole.then_some(kept))
    }

    fn first_note(&self) -> Note {
        Note { vendor: self.vendor.clone(), choice: self.choice, dir: self.dir.clone(), ..Note::default() }
    }

    /// What is known of this conversation; nothing if the note is of an earlier one.
    fn note(&self) -> io::Result<Option<Note>> {
        let Some(text) = there(std::fs::read(self.folder.join("note.json")))? else { return Ok(None) };
        let note = serde_json::from_slice::<Note>(&text).ok();
        Ok(note.filter(|note| (&note.vendor, note.choice) == (&self.vendor, self.choice)))
    }

    fn write(&self, note: &Note) -> io::Result<()> {
        let (new, name) = (self.folder.join("note.new"), self.folder.join("note.json"));
        let text = serde_json::to_vec(note).map_err(io::Error::other)?;
        private().write(true).create(true).truncate(true).open(&new)?.write_all(&text)?;
        std::fs::rename(new, name)
    }

    fn copy(&self) -> PathBuf {
        self.folder.join("transcript")
    }
}

/// Deletes a copy to which nothing was added since then; returns whether it was deleted. Blocks.
pub(crate) fn forget(folder: &Path, before: Wall) -> bool {
    let changed = std::fs::metadata(folder.join("note.json")).and_then(|facts| facts.modified());
    let age = changed.ok().and_then(|changed| changed.duration_since(std::time::UNIX_EPOCH).ok());
    let is_old = age.is_some_and(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX) < before.0);
    is_old && std::fs::remove_dir_all(folder).is_ok()
}

impl Note {
    /// Adds turns that the file must contain.
    fn expect(&mut self, turns: &[SaidTurn]) {
        let free = MOST_MISSING.saturating_sub(self.missing.len());
        self.missing.extend(turns.iter().take(free).cloned());
    }

    /// Whether an answered turn is not in these bytes.
    fn lacks_any(&self, bytes: &[u8]) -> bool {
        match added(bytes) {
            Some(lines) => !self.missing.iter().all(|turn| contains(&lines, &turn.texts)),
            None => !self.missing.is_empty(),
        }
    }
}

/// The bytes that a file has behind those that are known; `None` if those are not what they were.
fn since(path: &Path, note: &Note) -> io::Result<Option<Vec<u8>>> {
    let mut file = open(path)?;
    let (mut left, mut sum, mut part) = (note.size, 0, vec![0; 64 << 10]);
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(part.len());
        let read = file.read(&mut part[..most])?;
        if read == 0 {
            return Ok(None);
        }
        sum = digest(sum, &part[..read]);
        left -= read as u64;
    }
    if sum != note.digest {
        return Ok(None);
    }
    let mut since = Vec::new();
    file.read_to_end(&mut since)?;
    Ok(Some(since))
}

/// Writes these bytes in the place of a file, all of them or none.
fn put_back(path: &Path, kept: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let new = path.with_extension("pinfold");
    // What an earlier daemon left behind, or a link that the agent put there.
    there(std::fs::remove_file(&new))?;
    let mut file = private().write(true).create_new(true).open(&new)?;
    file.write_all(kept)?;
    file.sync_data()?;
    std::fs::rename(&new, path)
}

/// Opens a file that an agent can replace: a link could lead to a file that only we may read, and its text would
/// come back to the agent as its transcript; a pipe would be waited for.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("is not a file"))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn private() -> std::fs::OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}

/// FNV-1a, continued: it is stored, and shows damage, not intent.
fn digest(before: u64, bytes: &[u8]) -> u64 {
    let begin = if before == 0 { 0xcbf2_9ce4_8422_2325 } else { before };
    bytes.iter().fold(begin, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests;

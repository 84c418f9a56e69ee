//! What is checked before a run starts: whether the vendor has its transcript of the session as it was, and
//! which other process has the session.

use crate::define::definition::Definition;
use crate::define::id_files::Outsider;
use crate::define::kept::{Found, TranscriptCopy};
use crate::define::others::Others;
use crate::define::preset::Preset;
use crate::define::transcript::UnreadablePlace;
use pinfold_core::MessageId;
use std::io;
use std::path::Path;

/// Where to look before a run starts.
#[derive(Debug, Clone)]
pub(crate) struct BeforeStart {
    pub(crate) transcript: Option<TranscriptCopy>,
    pub(crate) others: Option<Others>,
    /// The message that is among the words of the run, and the files that it names.
    pub(crate) message: Option<(MessageId, Vec<String>)>,
}

/// The result of a look before a run starts.
#[derive(Debug)]
pub(crate) struct BeforeStartFindings {
    /// Whether there is such a file, if that matters.
    pub(crate) transcript: Option<Result<Found, UnreadablePlace>>,
    /// The process that has the vendor session.
    pub(crate) outsider: io::Result<Option<Outsider>>,
    /// The message that was looked at, and the first of its files that is not there.
    pub(crate) message: Option<(MessageId, Option<String>)>,
}

impl BeforeStart {
    /// Where to look before a run of a session; `None` for most agents.
    pub(crate) fn of(
        definition: &Definition,
        preset: &Preset,
        transcript: Option<TranscriptCopy>,
        message: Option<(MessageId, Vec<String>)>,
    ) -> Option<BeforeStart> {
        let others = Others::of(definition, preset);
        let any = transcript.is_some() || others.is_some() || message.is_some();
        any.then_some(BeforeStart { transcript, others, message })
    }

    /// Looks, and puts a transcript back that is missing or damaged. Blocks.
    pub(crate) fn look(&self) -> BeforeStartFindings {
        BeforeStartFindings {
            transcript: self.transcript.as_ref().map(TranscriptCopy::before_resume),
            outsider: self.others.as_ref().map_or(Ok(None), Others::look),
            message: self.message.as_ref().map(|(message, files)| (*message, first_missing(files))),
        }
    }
}

/// The first of some files that is not there. Blocks.
pub(crate) fn first_missing(files: &[String]) -> Option<String> {
    files.iter().find(|file| !Path::new(file).exists()).cloned()
}

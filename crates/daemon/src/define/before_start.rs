//! What is checked before a run starts: whether the vendor has a file of the session, and which other process
//! has it.

use crate::define::definition::Definition;
use crate::define::id_files::Outsider;
use crate::define::others::Others;
use crate::define::preset::{Preset, VendorTranscript};
use crate::define::transcript::Sought;
use std::io;

/// Where to look before a run starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BeforeStart {
    pub(crate) transcript: Option<Sought>,
    pub(crate) others: Option<Others>,
}

/// The result of a look before a run starts.
#[derive(Debug)]
pub(crate) struct BeforeStartFindings {
    /// Whether there is such a file, if that matters.
    pub(crate) transcript: Option<VendorTranscript>,
    /// The process that has the vendor session.
    pub(crate) outsider: io::Result<Option<Outsider>>,
}

impl BeforeStart {
    /// Where to look before a run of a session; `None` for most agents.
    pub(crate) fn of(definition: &Definition, preset: &Preset) -> Option<BeforeStart> {
        let (transcript, others) = (definition.transcript(preset), Others::of(definition, preset));
        (transcript.is_some() || others.is_some()).then_some(BeforeStart { transcript, others })
    }

    /// Looks. Blocks.
    pub(crate) fn look(&self) -> BeforeStartFindings {
        BeforeStartFindings {
            transcript: self.transcript.as_ref().map(Sought::look),
            outsider: self.others.as_ref().map_or(Ok(None), Others::look),
        }
    }
}

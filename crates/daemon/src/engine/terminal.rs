//! What is known of a run's terminal, and what that says of its agent. Data only.

use crate::define::preset::{Does, IdFile};
use pinfold_core::Wall;
use pinfold_core::talk::{Activity, ActivitySource, Dialog, Standing};
use pinfold_shim::BellRing;

/// What is known of a run's terminal.
#[derive(Debug, Default)]
pub(crate) struct RunTerminal {
    pub(crate) watched: Option<FileWatched>,
    pub(crate) filed: Option<IdFile>,
    pub(crate) ring: Option<BellRing>,
}

/// Whether the file of its program is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileWatched {
    No,
    Yes,
}

impl RunTerminal {
    pub(crate) fn is_watched(&self) -> bool {
        self.watched == Some(FileWatched::Yes)
    }

    /// What it says of its agent. Only the file shows a dialog: after a bell, a message may be just what the
    /// agent waits for.
    pub(crate) fn standing(&self) -> Standing {
        let filed = self.filed.as_ref().and_then(|filed| Some((filed.does?, filed)));
        if let Some((does, filed)) = filed {
            let (activity, dialog) = match does {
                Does::Working => (Activity::Working, Dialog::None),
                Does::Waiting => (Activity::Waiting, Dialog::Open),
                Does::Idle => (Activity::Idle, Dialog::None),
            };
            let (since, detail) = (filed.since_ms.map(Wall), filed.waits_for.clone());
            return Standing {
                activity,
                from: ActivitySource::IdFile,
                since,
                dialog,
                detail,
                own_work: false,
            };
        }
        match &self.ring {
            Some(ring) => Standing {
                activity: Activity::Waiting,
                from: ActivitySource::Terminal,
                since: Some(ring.at),
                detail: ring.text.clone(),
                ..Standing::default()
            },
            None => Standing { from: ActivitySource::Terminal, ..Standing::default() },
        }
    }
}

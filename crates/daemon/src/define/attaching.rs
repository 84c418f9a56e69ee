//! What attaching to a session does, according to its definition.

use crate::define::preset::{AttachMode, Protocol};
use pinfold_core::guest::{Attaching, Welcomes};

/// The parts of a definition that decide it.
pub(super) struct Defined {
    pub(super) attach: AttachMode,
    pub(super) protocol: Protocol,
    pub(super) pty: bool,
    /// Whether the arguments of its terminal program are known: some may have to be learned first.
    pub(super) words_known: bool,
}

/// Whether it is the value from before there were guests, which need not be stored.
pub(super) fn is_takeover(attach: &AttachMode) -> bool {
    *attach == AttachMode::Takeover
}

impl Defined {
    /// What attaching does to a run. A run with a terminal is joined there; a run per message is not there to
    /// be joined.
    pub(super) fn attaching(&self) -> Attaching {
        match (self.attach, self.protocol) {
            (AttachMode::Takeover, _) | (AttachMode::Join, Protocol::Exec) => Attaching::Takeover,
            (AttachMode::Join, _) if self.pty => Attaching::Takeover,
            (AttachMode::Join, Protocol::Line) => Attaching::Join(Welcomes::AtOnce),
            (AttachMode::Join, _) if self.words_known => Attaching::Join(Welcomes::WhenReady),
            (AttachMode::Join, _) => Attaching::Join(Welcomes::WhenNamed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_comes_beside_a_run_that_is_there_and_can_be_spoken_to() {
        let of =
            |attach, protocol, pty, words_known| Defined { attach, protocol, pty, words_known }.attaching();
        let join = |protocol, pty, words_known| of(AttachMode::Join, protocol, pty, words_known);
        assert_eq!(of(AttachMode::Takeover, Protocol::Codex, false, true), Attaching::Takeover);
        assert_eq!(join(Protocol::Exec, false, true), Attaching::Takeover);
        assert_eq!(join(Protocol::Line, true, true), Attaching::Takeover);
        assert_eq!(join(Protocol::Line, false, true), Attaching::Join(Welcomes::AtOnce));
        assert_eq!(join(Protocol::Codex, false, true), Attaching::Join(Welcomes::WhenReady));
        assert_eq!(join(Protocol::Codex, false, false), Attaching::Join(Welcomes::WhenNamed));
    }
}

//! Finds the detach key among what is typed.

use super::tty::DETACH;
use crate::global::Global;
use crate::output::talk;
use pinfold_core::quoted::quoted;

/// Ctrl-] as sent by terminals that were asked to report keys exactly.
const REPORTED: [&[u8]; 3] = [b"\x1b[93;5u", b"\x1b[93;5:1u", b"\x1b[27;5;93~"];

/// Returns what was typed before the detach key, if that was typed.
pub(super) fn before_detach(typed: &[u8]) -> Option<&[u8]> {
    let plain = typed.iter().position(|byte| *byte == DETACH);
    let reported = REPORTED.iter().filter_map(|key| typed.windows(key.len()).position(|part| part == *key));
    plain.into_iter().chain(reported).min().map(|at| &typed[..at])
}

/// Says that the user has left, and how to come back.
pub(super) fn say_detached(name: &str, global: &Global) {
    if !global.quiet {
        talk(&format!("detached from `{name}`; `pinfold attach {}` joins it again", quoted(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_found_however_the_terminal_writes_it() {
        assert_eq!(before_detach(b"ls\x1d"), Some(&b"ls"[..]));
        assert_eq!(before_detach(b"\x1b[93;5u"), Some(&b""[..]));
        assert_eq!(before_detach(b"a\x1b[27;5;93~b\x1d"), Some(&b"a"[..]));
        assert_eq!(before_detach(b"]93;5u"), None);
    }
}

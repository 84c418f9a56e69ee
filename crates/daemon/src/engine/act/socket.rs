//! Agents that listen at a socket of their session, so that the vendor's own terminal program can join them.

use crate::define::preset::SOCKET;
use crate::engine::Engine;
use pinfold_shim::bridge::BRIDGE;
use pinfold_store::SessionId;
use std::ffi::OsString;

/// How a process of a run is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Speaks {
    /// The shim writes and reads its lines.
    Lines,
    /// By its own terminal or not at all.
    ByItself,
}

impl Engine {
    /// The words of a command with the socket of this session in them. One that listens there has its lines brought to it by a bridge.
    pub(in crate::engine) fn with_socket(
        &self,
        id: SessionId,
        words: Vec<String>,
        speaks: Speaks,
    ) -> Vec<OsString> {
        if !words.iter().any(|word| word.contains(SOCKET)) {
            return words.into_iter().map(OsString::from).collect();
        }
        let socket = self.home.agent_socket(id).display().to_string();
        let filled = words.into_iter().map(|word| OsString::from(word.replace(SOCKET, &socket)));
        match speaks {
            Speaks::ByItself => filled.collect(),
            Speaks::Lines => {
                let (program, arguments) = self.shim_program.clone();
                let bridge = [OsString::from(BRIDGE), OsString::from(&socket)];
                [program.into_os_string()].into_iter().chain(arguments).chain(bridge).chain(filled).collect()
            }
        }
    }
}

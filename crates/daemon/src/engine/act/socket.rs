//! Agents that listen on a socket of their session, so that the vendor's own terminal program can join them.

use crate::define::preset::SOCKET;
use crate::engine::Engine;
use pinfold_shim::bridge::BRIDGE;
use pinfold_store::SessionId;
use std::ffi::OsString;

/// How pinfold talks to a process of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Speaks {
    /// The shim writes and reads its lines.
    Lines,
    /// Not at all, or only through its own terminal.
    ByItself,
}

impl Engine {
    /// Puts the socket of this session into the words of a command. A bridge carries the lines of an agent
    /// that listens there.
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

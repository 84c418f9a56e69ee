//! kill -9 of daemon, shim and agent at every moment of a turn, with Codex, opencode, pi and an ACP bridge.
//! `deaths.rs` says what happens, and checks it.

use super::deaths::{Moment, Victim, dies_with};
use super::stage::BRIDGE;

/// The cases of an agent: the victim and the moment. Long ones are for `./test --full`.
macro_rules! kills {
    ($module:ident, $agent:expr, $($(#[$long:meta])? $case:ident: $victim:ident, $moment:ident;)+) => {
        mod $module {
            use super::{Moment, Victim};
            $(#[test]
            $(#[$long])?
            fn $case() {
                super::dies_with($agent, Victim::$victim, Moment::$moment);
            })+
        }
    };
}

kills!(codex, "codex",
    a_daemon_in_the_handshake: Daemon, Handshake;
    a_daemon_in_mid_stream: Daemon, Stream;
    a_daemon_in_a_tool: Daemon, Tool;
    a_daemon_in_a_request: Daemon, Request;
    an_agent_in_the_handshake: Agent, Handshake;
    an_agent_in_mid_stream: Agent, Stream;
    an_agent_in_a_tool: Agent, Tool;
    an_agent_in_a_request: Agent, Request;
    a_shim_in_the_handshake: Shim, Handshake;
    a_shim_in_mid_stream: Shim, Stream;
    a_shim_in_a_tool: Shim, Tool;
    a_shim_in_a_request: Shim, Request;
    a_bridge_in_mid_stream: Bridge, Stream;
    a_bridge_in_a_tool: Bridge, Tool;
    a_bridge_in_a_request: Bridge, Request;
);

kills!(opencode, "opencode",
    a_daemon_in_the_handshake: Daemon, Handshake;
    a_daemon_in_mid_stream: Daemon, Stream;
    a_daemon_in_a_tool: Daemon, Tool;
    a_daemon_in_a_request: Daemon, Request;
    an_agent_in_the_handshake: Agent, Handshake;
    an_agent_in_mid_stream: Agent, Stream;
    an_agent_in_a_tool: Agent, Tool;
    an_agent_in_a_request: Agent, Request;
    a_shim_in_the_handshake: Shim, Handshake;
    a_shim_in_mid_stream: Shim, Stream;
    a_shim_in_a_tool: Shim, Tool;
    a_shim_in_a_request: Shim, Request;
);

// pi asks for no permissions.
kills!(pi, "pi",
    #[ignore = "takes long: `./test --full` runs it"]
    a_daemon_in_the_handshake: Daemon, Handshake;
    a_daemon_in_mid_stream: Daemon, Stream;
    #[ignore = "takes long: `./test --full` runs it"]
    a_daemon_in_a_tool: Daemon, Tool;
    #[ignore = "takes long: `./test --full` runs it"]
    an_agent_in_the_handshake: Agent, Handshake;
    an_agent_in_mid_stream: Agent, Stream;
    #[ignore = "takes long: `./test --full` runs it"]
    an_agent_in_a_tool: Agent, Tool;
    #[ignore = "takes long: `./test --full` runs it"]
    a_shim_in_the_handshake: Shim, Handshake;
    a_shim_in_mid_stream: Shim, Stream;
    #[ignore = "takes long: `./test --full` runs it"]
    a_shim_in_a_tool: Shim, Tool;
);

kills!(bridge, super::BRIDGE,
    #[ignore = "takes long: `./test --full` runs it"]
    a_daemon_in_the_handshake: Daemon, Handshake;
    a_daemon_in_mid_stream: Daemon, Stream;
    #[ignore = "takes long: `./test --full` runs it"]
    a_daemon_in_a_tool: Daemon, Tool;
    a_daemon_in_a_request: Daemon, Request;
    #[ignore = "takes long: `./test --full` runs it"]
    an_agent_in_the_handshake: Agent, Handshake;
    an_agent_in_mid_stream: Agent, Stream;
    #[ignore = "takes long: `./test --full` runs it"]
    an_agent_in_a_tool: Agent, Tool;
    #[ignore = "takes long: `./test --full` runs it"]
    an_agent_in_a_request: Agent, Request;
    #[ignore = "takes long: `./test --full` runs it"]
    a_shim_in_the_handshake: Shim, Handshake;
    a_shim_in_mid_stream: Shim, Stream;
    #[ignore = "takes long: `./test --full` runs it"]
    a_shim_in_a_tool: Shim, Tool;
    #[ignore = "takes long: `./test --full` runs it"]
    a_shim_in_a_request: Shim, Request;
);

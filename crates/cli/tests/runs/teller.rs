//! An agent that sends something through its notify socket: the test program itself, started again with what to send.

use crate::again;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable with what to send.
const SAYS: &str = "TELLER_SAYS";

/// The command that sends it; the variable has to be in its environment.
pub(crate) fn words() -> Vec<String> {
    again::words("teller::tells").to_vec()
}

/// The value of `--env` that says what to send.
pub(crate) fn says(what: &str) -> String {
    format!("{SAYS}={what}")
}

/// Not a test: what an agent does that has something to send.
#[test]
fn tells() {
    let (Ok(what), Ok(socket)) = (std::env::var(SAYS), std::env::var("NOTIFY_SOCKET")) else { return };
    let address = SocketAddr::from_abstract_name(socket.trim_start_matches('@')).unwrap();
    UnixDatagram::unbound().unwrap().send_to_addr(what.as_bytes(), &address).unwrap();
    println!("told");
}

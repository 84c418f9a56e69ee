//! An agent that says something through its notify socket. The test program itself, started again with what to say.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that has what to say.
const SAYS: &str = "TELLER_SAYS";

/// The words that say it; what is to be said has to be in the environment of whoever runs them.
pub(crate) fn words() -> Vec<String> {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    [&program, "--exact", "teller::tells", "--nocapture"].map(str::to_owned).to_vec()
}

/// The option of `new` that says what to say.
pub(crate) fn says(what: &str) -> String {
    format!("{SAYS}={what}")
}

/// Not a test of its own: what an agent does that has something to say.
#[test]
fn tells() {
    let (Ok(what), Ok(socket)) = (std::env::var(SAYS), std::env::var("NOTIFY_SOCKET")) else { return };
    let address = SocketAddr::from_abstract_name(socket.trim_start_matches('@')).unwrap();
    UnixDatagram::unbound().unwrap().send_to_addr(what.as_bytes(), &address).unwrap();
    println!("told");
}

//! Places the peer at the other end of a socket: the kernel is asked, the core judges. Daemon and shims use
//! the same code.

use pinfold_core::caller::{Bounds, CallerStanding, Sighting, judge};
use pinfold_kernel::caller::{self, Neighbours, Peer, PeerSeen, is_shortage};
use rustix::io::Errno;
use std::sync::OnceLock;

/// The process name of every shim, whatever the name of its program's file.
const SHIM: &[u8] = b"pinfold-shim";

/// Places a peer relative to this process. `known` speeds it up for neighbours of a peer that has no shim
/// above it.
///
/// # Errors
/// No descriptor or memory is left to look with; that says nothing about the peer.
pub fn place(peer: &Peer, known: Option<&Neighbours>) -> Result<CallerStanding, Errno> {
    static OWN: OnceLock<Bounds> = OnceLock::new();
    let own = match OWN.get() {
        Some(own) => own,
        None => match caller::own_bounds() {
            Ok(own) => OWN.get_or_init(|| bounds(&own)),
            Err(errno) if is_shortage(errno) => return Err(errno),
            Err(_) => return Ok(judge(&Bounds::default(), Sighting::Unreadable)),
        },
    };
    Ok(judge(own, sighting(peer.look(SHIM, known)?)))
}

fn sighting(seen: PeerSeen) -> Sighting {
    match seen {
        PeerSeen::Whole { bounds: seen, above } => Sighting::Whole { bounds: bounds(&seen), shims: above },
        PeerSeen::Unseen => Sighting::Unseen,
        PeerSeen::Ended => Sighting::Ended,
        PeerSeen::Unreadable => Sighting::Unreadable,
    }
}

fn bounds(seen: &caller::Bounds) -> Bounds {
    let caller::Bounds { no_new_privs, filters, namespaces } = *seen;
    Bounds { no_new_privs, filters, namespaces }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn this_process_is_not_more_confined_than_it_is_itself() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of(ours.as_fd()).unwrap();
        assert_eq!(place(&peer, None).unwrap().confined, []);
    }
}

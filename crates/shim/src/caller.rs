//! Places who is at the other end of a socket: the kernel is asked, the core judges. The same for daemon and shims.

use pinfold_core::caller::{Bounds, CallerStanding, Sighting, judge};
use pinfold_kernel::caller::{self, Neighbours, Peer, PeerSeen, is_shortage};
use rustix::io::Errno;
use std::sync::OnceLock;

/// What every shim is called, whatever its program's file is called by now.
const SHIM: &[u8] = b"pinfold-shim";

/// Places a peer relative to this process. One that has no shim above it makes its neighbours quick to place.
///
/// # Errors
/// When there is no descriptor or memory left to look with: that says nothing about the peer.
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

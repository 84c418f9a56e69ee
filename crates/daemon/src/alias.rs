//! A short name for a socket whose path is too long for the kernel: agents and other programs connect by it.

use crate::log::log;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The kernel takes 107 bytes.
const LONGEST: usize = 107;

/// The name by which anybody can connect: the path itself, or a link to it where that is too long.
pub(crate) fn make(socket: &Path) -> PathBuf {
    if socket.as_os_str().len() <= LONGEST {
        return socket.to_owned();
    }
    link(socket).unwrap_or_else(|error| {
        log(format_args!("{} has no short name: {error}", socket.display()));
        socket.to_owned()
    })
}

/// Takes the short name away again.
pub(crate) fn remove(alias: &Path, socket: &Path) {
    if alias != socket {
        _ = std::fs::remove_file(alias);
    }
}

fn link(socket: &Path) -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let folder = PathBuf::from(format!("/tmp/pinfold-{user}"));
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // In a folder that everybody may write to, somebody else may have been first.
    let facts = std::fs::symlink_metadata(&folder)?;
    if !facts.is_dir() || facts.uid() != user || facts.mode() & 0o077 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} is not ours alone", folder.display()),
        ));
    }
    let alias = folder.join(format!("{:016x}.sock", checksum(socket.as_os_str().as_encoded_bytes())));
    let new = alias.with_extension("new");
    _ = std::fs::remove_file(&new);
    std::os::unix::fs::symlink(socket, &new)?;
    std::fs::rename(&new, &alias)?;
    Ok(alias)
}

/// FNV-1a: the same name for the same path, at every start.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_path_is_its_own_name_and_a_long_one_has_the_same_short_one_each_time() {
        let short = Path::new("/run/pinfold.sock");
        assert_eq!(make(short), short);
        let long = PathBuf::from(format!("/{}/pinfold.sock", "x".repeat(200)));
        let alias = make(&long);
        assert!(alias.as_os_str().len() <= LONGEST, "{}", alias.display());
        assert_eq!((make(&long), std::fs::read_link(&alias).unwrap()), (alias.clone(), long.clone()));
        remove(&alias, &long);
        assert!(std::fs::symlink_metadata(&alias).is_err());
    }
}

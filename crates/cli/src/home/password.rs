//! The user's home directory in the password file. It does not depend on the environment of the caller.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Returns the caller's home directory, or `None` if `/etc/passwd` has no line for this user: users of a
/// container, of LDAP and of systemd-homed have none.
pub(crate) fn password_home() -> Option<PathBuf> {
    let file = std::fs::read("/etc/passwd").ok()?;
    home_in(&file, rustix::process::geteuid().as_raw())
}

/// Returns a user's home directory in the contents of a password file.
pub(super) fn home_in(file: &[u8], user: u32) -> Option<PathBuf> {
    file.split(|byte| *byte == b'\n').find_map(|line| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        let number: Option<u32> = std::str::from_utf8(fields.get(2)?).ok()?.parse().ok();
        let home = fields.get(5).filter(|home| number == Some(user) && home.starts_with(b"/"))?;
        Some(PathBuf::from(OsStr::from_bytes(home)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_found_by_the_users_number() {
        let file = b"root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000:M\xfcller:/home/me:/bin/sh\n\
                     odd:x:1001:1001::relative:/bin/sh\nshort:x:1002\nlast:x:1003:1003::/home/\xff:/bin/sh";
        let home = |user| home_in(file, user);
        assert_eq!(home(0), Some("/root".into()));
        assert_eq!(home(1000), Some("/home/me".into()), "a comment in another encoding");
        assert_eq!(home(1003), Some(PathBuf::from(OsStr::from_bytes(b"/home/\xff"))));
        assert_eq!([home(1001), home(1002), home(7)], [None, None, None]);
    }
}

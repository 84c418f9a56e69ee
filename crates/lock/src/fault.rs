//! Makes the kernel fail on purpose, for the tests of this crate.

pub use pinfold_kernel::fault::{Armed, Fault, FaultReach, arm, before_each};
use rustix::io::Errno;

/// Makes a lock file look as if its last grant was made in an earlier boot. The caller must not hold anything.
pub fn pretend_reboot(folder: &crate::Folder, resource: &crate::Resource) -> Result<(), Errno> {
    let target = crate::want::target::Target::open(resource).map_err(|_| Errno::NOENT)?;
    for want in target.wanted.iter().filter(|want| want.mode == crate::LockMode::Exclusive) {
        let file = folder.open_existing(&want.name, rustix::fs::OFlags::RDWR)?;
        crate::files::file::pretend_reboot(&file)?;
    }
    Ok(())
}

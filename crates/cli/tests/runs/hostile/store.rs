//! Files of a home that are damaged, removed, replaced or too many for the disk: nothing acknowledged is lost
//! silently.

mod backups;
pub(super) mod disk;
mod disk_failed;
mod disk_verbs;
mod each;
mod end;
mod files;
mod flips;
mod homes;

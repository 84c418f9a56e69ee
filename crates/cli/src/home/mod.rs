//! The home: where it is, whether a directory may be one, and the lock folders beside it.

mod locks;
mod password;
mod paths;
mod settled;
mod trust;
mod user_locks;

pub(crate) use locks::{existing_folders, folder_for, session_locks, user_folder};
pub(crate) use paths::{for_a_manager, named, said_home};
pub(crate) use settled::{folder, home};

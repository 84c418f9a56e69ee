//! Locks that are what the kernel says.
//!
//! A lock here is `flock(2)` on an open file. It ends when its last holder ends, whatever ended it, so there
//! is no stale lock, nothing to reclaim and no timer between the truth and the answer. The crate blocks,
//! needs no runtime and no daemon, and works between any processes of one user on one machine.
//!
//! ```
//! use pinfold_lock::{AcquireError, Folder, Request, Resource, RunName};
//!
//! # let temp = tempfile::tempdir()?;
//! # let path = temp.path().join("locks");
//! let folder = Folder::open(&path)?;
//! let deploy = Resource::Key("deploy".into());
//!
//! let guard = folder.try_acquire(&deploy, &Request { reason: Some("release 7".into()), ..Request::default() })?;
//! println!("held under fence {}", guard.fence());
//!
//! // The second one is told who has it, since when and why.
//! let second = Request { run: Some(RunName::new("second")?), ..Request::default() };
//! match folder.try_acquire(&deploy, &second) {
//!     Err(AcquireError::Busy(busy)) => println!("{busy}"),
//!     other => panic!("expected busy, got {other:?}"),
//! }
//!
//! let receipt = guard.release();
//! assert!(receipt.trouble.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What can be locked
//! A [`Resource`] is a `key:` (any name), a `session:`, a `vendor:` conversation, or a directory. Directories
//! are hierarchical: one excludes its ancestors and its descendants, under every spelling of its path,
//! through symbolic links and bind mounts, and also after it was moved or created anew.
//!
//! # Waiting
//! [`Folder::try_acquire`], [`Folder::acquire`], [`Folder::acquire_until`] and
//! [`Folder::acquire_cancellable`] block in `flock(2)`: the kernel wakes them, nothing polls. An acquirer
//! that waits for exclusive use of a directory is not starved by newcomers below it. "Busy" is reported only
//! after 20 ms, because a child that is being spawned holds a copy of every descriptor until its exec. A wait
//! that can end early runs in a small thread that is ended with `SIGURG`, which the crate handles unless the
//! program does.
//!
//! A second acquire by the same holder (the same [`Request::run`], or the same process if there is none)
//! fails at once: a guard is a value to pass along, and there is no reentrancy.
//!
//! # Fences
//! Every grant has a [`Fence`], larger than all before it, even across crashes and power loss. A
//! [`FencedFile`] accepts appends of the newest fence only, and a late append of an older one never counts.
//!
//! # Runs and their survivors
//! A free flock does not prove that everything started under it has ended: many programs do not pass
//! descriptors on to their children. A holder that starts processes therefore names its [`RunName`], puts that
//! name into their environment ([`RUN_VARIABLE`]) and says in [`Request::survivors`] what the next acquirer
//! does about them. They are found by control group (one whose name ends in the holder's [`process::word`]),
//! by identity and by that marker; [`Folder::tell_of_ended`] reports those that are ended. Only an acquirer
//! that finds none is granted the lock. A run that was seen to end in order ([`Guard::mark_released`]) costs no search.
//!
//! # Handing a lock on
//! This part is meant for supervisors and is kept stable.
//! - [`Guard::hand_over`] gives the lock to a child of a [`std::process::Command`] at descriptors from 100 on;
//!   [`Guard::give_in_child`] does it for a caller that forks by itself. The copies are made in the child, so no
//!   other child can inherit them; everything else is close-on-exec.
//! - [`Guard::lend`] gives a [`LockDescription`] (serde) and the descriptors, to be sent over a socket
//!   (`SCM_RIGHTS`); [`Guard::adopt`] makes a guard of them in the other process,
//!   [`Guard::adopt_inherited`] of descriptors that came through exec. The sender calls [`Guard::surrender`]
//!   when the receiver has confirmed: at no moment is the lock free.
//! - [`Guard::new_fence`] begins another run under the same lock and records it; [`Guard::mark_released`] is
//!   for a holder that has seen the whole tree end; [`Guard::release`] closes.
//!
//! # Looking
//! [`Folder::locks`], [`Folder::holder_of`] and [`Folder::users_of`] take no lock: they read the records,
//! check them against `/proc` and name the process that really has the descriptor. [`process`] has the
//! verdict on a stored process identity: alive, dead or unknown; unknown never steals. Files are known by
//! device and inode, never by a path that another mount namespace may show.
//!
//! # What is not promised
//! One user, one machine, one lock folder on a local file system ([`Folder::open`] tests it and refuses
//! network file systems). Not covered: renames above a held directory, a directory moved below another that
//! is then wanted, overlayfs, other mount namespaces, a lock file or folder that was moved elsewhere by hand,
//! and `LOCK_UN` by a process that was given the descriptor.
#![deny(unsafe_code)]

mod cancel;
mod end;
mod error;
#[doc(hidden)]
pub mod fault;
mod fenced;
mod files;
pub mod judge;
mod look;
mod patience;
pub mod process;
mod raw;
mod resource;
#[cfg(test)]
#[path = "../tests/rights/mod.rs"]
mod rights;
mod seen;
mod take;
pub mod time;
mod want;

pub use cancel::Cancel;
pub use end::holders::{EndOutcome, Holders};
pub use error::{AcquireError, Busy, BusyBecause, FileStep};
pub use fenced::file::{AppendError, Appended, Contents, FencedFile, FencedRecord};
pub use files::ended_listener::SurvivorsEnded;
pub use files::fence::Fence;
pub use files::folder::{Folder, FolderError, FolderModes};
pub use files::name::FileName;
pub use files::record::{LOCK_RUNS_VARIABLE, LockRecord, NotARun, RUN_VARIABLE, RunName, Survivors};
pub use files::selftest::NoExclusion;
pub use judge::grant::Trace;
pub use judge::holder::HolderVerdict;
pub use judge::identity::{BootId, Identity};
pub use look::users::{DirectoryRelation, DirectoryUser};
pub use process::ProcessSeen;
pub use resource::{FileId, NotAResource, Resource, ResourceKind, SessionName};
pub use seen::{LockHolder, LockSeen, shorten};
pub use take::guard::{FileTrouble, Guard, Receipt, ReleaseMark};
pub use take::handover::{AdoptError, LockDescription};
pub use take::watch::ForeignChange;
pub use want::directory::{DirectoryError, LockMode};
pub use want::request::Request;

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

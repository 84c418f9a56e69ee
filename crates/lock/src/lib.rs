//! Locks that are what the kernel says.
//!
//! ```
//! use pinfold_lock::{Folder, Request, Resource};
//!
//! # let temp = tempfile::tempdir()?;
//! # let path = temp.path().join("locks");
//! let folder = Folder::open(&path)?;
//! let deploy = Resource::Key("deploy".into());
//!
//! let guard = folder.try_acquire(&deploy, &Request::default())?;
//! println!("held under fence {}", guard.fence());
//!
//! // Whoever comes second is told who has it.
//! let again = folder.try_acquire(&deploy, &Request::default());
//! assert!(again.is_err());
//!
//! let receipt = guard.release();
//! assert!(receipt.trouble.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acquire;
mod cancel;
mod directory;
mod ending;
mod error;
#[doc(hidden)]
pub mod fault;
mod fence;
mod fenced;
mod fenced_text;
mod file;
mod folder;
mod grant;
mod guard;
mod handover;
mod held;
mod ledger;
mod lookup;
mod mine;
mod page;
pub mod process;
mod raw;
mod record;
mod request;
mod resource;
mod scan;
mod selftest;
mod survivors;
mod sys;
pub mod time;
mod users;
mod wait;

pub use cancel::Cancel;
pub use directory::{DirectoryError, Mode};
pub use ending::Ended;
pub use error::{AcquireError, Busy, BusyBecause, Step};
pub use fence::Fence;
pub use fenced::{AppendError, Appended, Change, Contents, FencedFile, FencedRecord};
pub use folder::{Folder, FolderError, Modes};
pub use guard::{Guard, Mark, Receipt, Trouble};
pub use handover::{AdoptError, Description};
pub use lookup::{HolderSeen, LockSeen, ProcessSeen, shorten};
pub use record::{LOCK_RUNS_VARIABLE, NotARun, RUN_VARIABLE, Record, Run, Survivors};
pub use request::Request;
pub use resource::{FileId, FileName, Kind, NotAResource, Resource, SessionName};
pub use selftest::NoExclusion;
pub use users::{Relation, User};

//! Makes calls to the kernel fail on purpose, so that tests can strike at every point of a program.
//!
//! Every operation of `sys.rs` asks here first. Unarmed, that is one relaxed load of a counter that
//! stays zero; armed, the plan belongs to the thread that armed it (and to the threads it waits through).

use rustix::io::Errno;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the struck operation does instead of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this error and has no effect.
    Fails(Errno),
    /// A write writes one byte only; any other operation does its work.
    Short,
}

/// Strikes one operation, or every one from it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Only the chosen operation.
    Once,
    /// The chosen operation and all that follow.
    FromThere,
}

#[derive(Debug)]
struct Plan {
    strike_at: usize,
    fault: Fault,
    reach: Reach,
    passed: Vec<&'static str>,
    struck: usize,
}

type Shared = Arc<Mutex<Plan>>;

static ARMED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static PLAN: RefCell<Option<Shared>> = const { RefCell::new(None) };
}

/// A plan in force on this thread; dropping it disarms.
#[derive(Debug)]
#[must_use = "the plan is in force only while this value lives"]
pub struct Armed {
    plan: Shared,
}

/// Arms this thread: the `strike_at`-th operation from now (counted from 1) is struck.
pub fn arm(strike_at: usize, fault: Fault, reach: Reach) -> Armed {
    let plan = Arc::new(Mutex::new(Plan { strike_at, fault, reach, passed: Vec::new(), struck: 0 }));
    PLAN.with_borrow_mut(|slot| *slot = Some(plan.clone()));
    ARMED.fetch_add(1, Ordering::Relaxed);
    Armed { plan }
}

impl Armed {
    /// How many operations were struck so far.
    #[must_use]
    pub fn struck(&self) -> usize {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).struck
    }

    /// The names of the operations seen so far, in order.
    #[must_use]
    pub fn operations(&self) -> Vec<&'static str> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).passed.clone()
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        ARMED.fetch_sub(1, Ordering::Relaxed);
        PLAN.with_borrow_mut(|slot| *slot = None);
    }
}

/// The plan of this thread, to be carried into a helper thread.
#[derive(Debug)]
pub struct Inherited(Option<Shared>);

/// Takes the plan of this thread along.
#[must_use]
pub fn inherit() -> Inherited {
    match ARMED.load(Ordering::Relaxed) {
        0 => Inherited(None),
        _ => Inherited(PLAN.with_borrow(Clone::clone)),
    }
}

impl Inherited {
    /// Puts it in force on the calling thread.
    pub fn adopt(self) {
        if self.0.is_some() {
            PLAN.with_borrow_mut(|slot| *slot = self.0);
        }
    }
}

/// What an operation may do, as the plan says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    Whole,
    Short,
}

/// Asks the plan about one operation.
#[inline]
pub(crate) fn pass(operation: &'static str) -> Result<Pass, Errno> {
    if ARMED.load(Ordering::Relaxed) == 0 {
        return Ok(Pass::Whole);
    }
    consult(operation)
}

#[cold]
fn consult(operation: &'static str) -> Result<Pass, Errno> {
    PLAN.with_borrow(|slot| {
        let Some(plan) = slot else { return Ok(Pass::Whole) };
        let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.passed.push(operation);
        let due = match plan.reach {
            Reach::Once => plan.passed.len() == plan.strike_at,
            Reach::FromThere => plan.passed.len() >= plan.strike_at,
        };
        if !due {
            return Ok(Pass::Whole);
        }
        plan.struck += 1;
        match plan.fault {
            Fault::Fails(errno) => Err(errno),
            Fault::Short => Ok(Pass::Short),
        }
    })
}

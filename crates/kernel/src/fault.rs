//! Makes kernel calls fail on purpose, so that tests can hit a program at every point.
//!
//! Every operation of `sys.rs` asks here first. Unarmed, that is one relaxed load of a counter that stays
//! zero; armed, the plan belongs to the thread that armed it (and to the threads it waits through).

use rustix::io::Errno;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the struck operation does instead of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this error and has no effect.
    Fails(Errno),
    /// A write writes only one byte; any other operation works as usual.
    Short,
}

/// Whether a fault strikes once or from one operation on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultReach {
    /// Only the chosen operation.
    Once,
    /// The chosen operation and all that follow.
    FromThere,
}

/// What a test does before an operation, given its number, counted from 1, and its name.
type Before = dyn FnMut(usize, &'static str) + Send;

struct Plan {
    strike_at: usize,
    fault: Fault,
    reach: FaultReach,
    passed: Vec<&'static str>,
    struck: usize,
    /// Taken out while it runs, so that its own operations are not part of the plan.
    before: Option<Box<Before>>,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("strike_at", &self.strike_at).field("passed", &self.passed).finish()
    }
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
pub fn arm(strike_at: usize, fault: Fault, reach: FaultReach) -> Armed {
    put(Plan { strike_at, fault, reach, passed: Vec::new(), struck: 0, before: None })
}

/// Arms this thread: nothing is struck, but `act` runs before every operation. It can do what another process
/// might do between two operations.
pub fn before_each(act: impl FnMut(usize, &'static str) + Send + 'static) -> Armed {
    let before: Option<Box<Before>> = Some(Box::new(act));
    let (fault, reach) = (Fault::Short, FaultReach::Once);
    put(Plan { strike_at: usize::MAX, fault, reach, passed: Vec::new(), struck: 0, before })
}

fn put(plan: Plan) -> Armed {
    let plan = Arc::new(Mutex::new(plan));
    PLAN.with_borrow_mut(|slot| *slot = Some(plan.clone()));
    ARMED.fetch_add(1, Ordering::Relaxed);
    Armed { plan }
}

impl Armed {
    /// Returns how many operations were struck so far.
    #[must_use]
    pub fn struck(&self) -> usize {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).struck
    }

    /// Returns the names of the operations so far, in order.
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

/// Returns the plan of this thread.
#[must_use]
pub fn inherit() -> Inherited {
    match ARMED.load(Ordering::Relaxed) {
        0 => Inherited(None),
        _ => Inherited(PLAN.with_borrow(Clone::clone)),
    }
}

impl Inherited {
    /// Puts the plan in force on the calling thread.
    pub fn adopt(self) {
        if self.0.is_some() {
            PLAN.with_borrow_mut(|slot| *slot = self.0);
        }
    }
}

/// What an operation may do according to the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultVerdict {
    Whole,
    Short,
}

/// Asks the plan about one operation.
#[inline]
pub(crate) fn pass(operation: &'static str) -> Result<FaultVerdict, Errno> {
    if ARMED.load(Ordering::Relaxed) == 0 {
        return Ok(FaultVerdict::Whole);
    }
    consult(operation)
}

#[cold]
fn consult(operation: &'static str) -> Result<FaultVerdict, Errno> {
    let Some(shared) = PLAN.with_borrow(Clone::clone) else { return Ok(FaultVerdict::Whole) };
    let act = {
        let mut plan = shared.lock().unwrap_or_else(PoisonError::into_inner);
        plan.passed.push(operation);
        plan.before.take().map(|act| (act, plan.passed.len()))
    };
    if let Some((mut act, number)) = act {
        // Without the plan: what `act` does is not counted.
        let own = PLAN.take();
        act(number, operation);
        PLAN.set(own);
        shared.lock().unwrap_or_else(PoisonError::into_inner).before = Some(act);
    }
    let mut plan = shared.lock().unwrap_or_else(PoisonError::into_inner);
    plan.verdict()
}

impl Plan {
    /// Decides what the operation noted last may do.
    fn verdict(&mut self) -> Result<FaultVerdict, Errno> {
        let due = match self.reach {
            FaultReach::Once => self.passed.len() == self.strike_at,
            FaultReach::FromThere => self.passed.len() >= self.strike_at,
        };
        if !due {
            return Ok(FaultVerdict::Whole);
        }
        self.struck += 1;
        match self.fault {
            Fault::Fails(errno) => Err(errno),
            Fault::Short => Ok(FaultVerdict::Short),
        }
    }
}

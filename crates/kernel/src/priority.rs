//! How much of a processor a thread gets beside others.
#![expect(unsafe_code, reason = "no safe call sets the flag that keeps a priority from being inherited")]

use rustix::process::{getpriority_process, setpriority_process};

/// Weighs 86 times as much as a thread of the usual priority.
const AHEAD: i32 = -20;

/// Whether somebody has chosen a priority or a policy for this thread.
#[must_use]
pub fn is_chosen() -> bool {
    policy() != libc::SCHED_OTHER || getpriority_process(None) != Ok(0)
}

/// Puts the calling thread ahead of all threads of the usual priority; returns whether the kernel allows that.
/// Threads and processes that it starts do not inherit it.
#[must_use]
pub fn go_ahead() -> bool {
    set_policy(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK) && setpriority_process(None, AHEAD).is_ok()
}

/// Gives the calling thread the usual priority again.
pub fn go_back() {
    _ = setpriority_process(None, 0);
}

/// Returns how the kernel schedules this thread.
fn policy() -> libc::c_int {
    // SAFETY: no memory is handed over. The C library of musl does not offer the call.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    libc::c_int::try_from(policy).unwrap_or(-1)
}

/// Returns whether the kernel schedules this thread in this way from now on.
fn set_policy(policy: libc::c_int) -> bool {
    let priority = libc::c_int::default();
    // SAFETY: the kernel reads one number, which outlives the call.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority() -> i32 {
        getpriority_process(None).unwrap()
    }

    /// Runs a test in a thread of its own, whose priority does not matter to others.
    fn apart<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(test).join().unwrap()
    }

    #[test]
    fn what_is_started_from_a_thread_that_is_ahead_is_not_ahead() {
        // The tests themselves may have been started with `nice`.
        let usual = priority();
        apart(move || {
            // The priority of an ordinary user's thread stays as it is.
            let allowed = go_ahead();
            assert_eq!(priority(), if allowed { AHEAD } else { usual });
            assert_eq!(apart(priority), if allowed { 0 } else { usual });
            go_back();
            assert_eq!(priority(), if allowed { 0 } else { usual });
        });
    }

    #[test]
    fn a_priority_or_a_policy_can_be_chosen() {
        assert_eq!(apart(is_chosen), priority() != 0);
        assert!(apart(|| {
            // The only one that every user may choose whatever its own is.
            setpriority_process(None, 19).unwrap();
            is_chosen()
        }));
        assert!(apart(|| {
            assert!(set_policy(libc::SCHED_BATCH));
            is_chosen()
        }));
    }
}

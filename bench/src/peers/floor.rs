//! The least that any supervisor does: starts children, watches pidfds, starts them again. Remembers nothing.

use super::site::{Site, beside, launch};
use super::supervisor::Supervisor;
use rustix::event::epoll;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

pub(crate) struct Floor;

impl Supervisor for Floor {
    fn prepare(&mut self, _site: &Site) {}

    fn start(&mut self, site: &Site) {
        let [program, records, _] = site.words(0);
        let mut command = site.command(beside("pinfold-bench"));
        launch(command.args(["floor", &program, &records, &site.count.to_string()]));
    }

    fn processes(&self, site: &Site) -> Vec<u32> {
        site.supervisors()
    }

    fn status(&self, _site: &Site) -> Option<Command> {
        None
    }

    fn known_exits(&self, _site: &Site) -> Option<usize> {
        None
    }
}

/// The floor program itself.
pub(crate) fn keep(program: &str, records: &str, count: u64) {
    let queue = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    // Without a change of user, folder or group this is posix_spawn.
    let start = |number: u64| {
        let words = [records, &number.to_string()];
        let child = Command::new(program).args(words).stdin(Stdio::null()).spawn().unwrap();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
        let watch = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        epoll::add(&queue, &watch, epoll::EventData::new_u64(number), epoll::EventFlags::IN).unwrap();
        (child, watch)
    };
    let mut children: Vec<(Child, OwnedFd)> = (0..count).map(start).collect();
    let mut events = Vec::with_capacity(64);
    loop {
        events.clear();
        if epoll::wait(&queue, rustix::buffer::spare_capacity(&mut events), None).is_err() {
            continue;
        }
        for event in &events {
            let number = event.data.u64();
            let kept = &mut children[usize::try_from(number).unwrap()];
            kept.0.wait().unwrap();
            *kept = start(number);
        }
    }
}

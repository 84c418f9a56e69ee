//! What threads tell the loop, and a descriptor that is readable when they did.

use super::super::effect::Input;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel as std_channel};

/// The loop's end.
pub(super) struct News {
    inputs: Receiver<Input>,
    pub(super) woken: OwnedFd,
}

/// A thread's end.
#[derive(Clone)]
pub(super) struct Teller {
    sender: Sender<Input>,
    wakes: Arc<OwnedFd>,
}

pub(super) fn channel() -> Result<(News, Teller), Errno> {
    let (woken, wakes) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let (sender, inputs) = std_channel();
    Ok((News { inputs, woken }, Teller { sender, wakes: Arc::new(wakes) }))
}

impl News {
    /// What has come.
    pub(super) fn take(&self) -> Vec<Input> {
        let mut bytes = [0; 256];
        while rustix::io::read(&self.woken, &mut bytes).is_ok_and(|count| count == bytes.len()) {}
        self.inputs.try_iter().collect()
    }
}

impl Teller {
    /// Tells the loop something; an error when it has ended.
    pub(super) fn tell(&self, input: Input) -> Result<(), ()> {
        self.sender.send(input).map_err(drop)?;
        // A full pipe wakes as well as another byte in it.
        _ = rustix::io::write(&*self.wakes, &[1]);
        Ok(())
    }
}

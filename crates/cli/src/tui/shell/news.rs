//! A channel from threads to the loop, with a descriptor that is readable when something was sent.

use super::super::effect::UiInput;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel as std_channel};

/// The receiving end, in the loop.
pub(super) struct NewsReceiver {
    inputs: Receiver<UiInput>,
    pub(super) woken: OwnedFd,
}

/// The sending end, in a thread.
#[derive(Clone)]
pub(super) struct Teller {
    sender: Sender<UiInput>,
    wakes: Arc<OwnedFd>,
}

pub(super) fn channel() -> Result<(NewsReceiver, Teller), Errno> {
    let (woken, wakes) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let (sender, inputs) = std_channel();
    Ok((NewsReceiver { inputs, woken }, Teller { sender, wakes: Arc::new(wakes) }))
}

impl NewsReceiver {
    /// Returns everything that has arrived.
    pub(super) fn take(&self) -> Vec<UiInput> {
        let mut bytes = [0; 256];
        while rustix::io::read(&self.woken, &mut bytes).is_ok_and(|count| count == bytes.len()) {}
        self.inputs.try_iter().collect()
    }
}

impl Teller {
    /// Sends something to the loop; an error when the loop has ended.
    pub(super) fn tell(&self, input: UiInput) -> Result<(), ()> {
        self.sender.send(input).map_err(drop)?;
        // A full pipe wakes the loop just as well.
        _ = rustix::io::write(&*self.wakes, &[1]);
        Ok(())
    }
}

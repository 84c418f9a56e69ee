//! The loop under a runtime: inputs, the alarm, and releasing memory when a burst is over.

use super::precedence::Precedence;
use super::{Closing, Engine, EngineFault};
use crate::engine::input::LoopInput;
use crate::ports::clock::Alarm;
use pinfold_store::{Facts, Store};
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long after the last shim connected the memory of a burst goes back to the kernel.
const CALM: Duration = Duration::from_secs(3);

/// How a daemon went down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonEnd {
    /// None runs until a user or a command starts the next one.
    Stopped,
    /// Another one starts right after it.
    HandedOver,
}

impl Engine {
    /// Runs until the daemon goes down; the store stays open for remaining readers.
    pub(crate) async fn run(
        mut self,
        mut inputs: mpsc::UnboundedReceiver<LoopInput>,
    ) -> (Result<DaemonEnd, EngineFault>, Store) {
        let ended = self.take_all(&mut inputs).await;
        let end = if self.handed_over { DaemonEnd::HandedOver } else { DaemonEnd::Stopped };
        (ended.map(|()| end), self.store)
    }

    async fn take_all(&mut self, inputs: &mut mpsc::UnboundedReceiver<LoopInput>) -> Result<(), EngineFault> {
        let alarm = self.alarm.clone();
        let mut precedence = Precedence::of_this_thread();
        while !self.is_over() {
            tokio::select! {
                input = inputs.recv() => match input {
                    Some(input) => self.take(input),
                    None => break,
                },
                rang = rang(alarm.as_deref()) => {
                    rang?;
                    self.tick();
                }
                () = until(self.calm_at) => {
                    self.calm_at = None;
                    pinfold_kernel::allocator::trim();
                    pinfold_kernel::allocator::forget_program();
                }
            }
            self.remove_what_rests();
            self.end_if_at_rest();
            precedence.check();
        }
        self.say_goodbye();
        Ok(())
    }

    /// Whether no more inputs are to be taken.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.closing, Closing::Over(_))
    }

    /// Handles deadlines that have passed; harmless if none has.
    pub(super) fn tick(&mut self) {
        let now = self.ports.clock.boot();
        let due = self.deadlines.take_due(now);
        self.accounts_due(now);
        self.sweep(now);
        self.ports.clock.wake_at(self.first_deadline());
        for id in due {
            self.happened(id, &pinfold_core::Event::Ticked, &Facts::default(), None);
        }
        self.settle_accounts();
    }

    /// A burst is over: if nothing follows, its memory goes back to the kernel.
    pub(crate) fn rest_soon(&mut self) {
        self.calm_at = Some(Instant::now() + CALM);
    }
}

async fn rang(alarm: Option<&Alarm>) -> io::Result<()> {
    match alarm {
        Some(alarm) => alarm.rang().await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

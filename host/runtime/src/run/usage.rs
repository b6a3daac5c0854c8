//! What a run used.
//!
//! It must not know what a run is.

use crate::clock;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// What a run used until its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Units of wasmtime's fuel. `None`: the work of the plugin is not counted.
    pub fuel: Option<u64>,
    /// Memory of all modules together, at its largest, in bytes.
    pub memory_bytes: u64,
    /// Time without waits for input.
    pub wall: Duration,
    /// Time of a processor.
    pub cpu: Duration,
}

impl Usage {
    /// Whether the operator wants to be told. Nothing is measured for nobody: the processor's time costs two system calls a
    /// poll.
    pub(crate) fn is_logged() -> bool {
        tracing::enabled!(tracing::Level::DEBUG)
    }

    /// Tell the operator.
    pub(crate) fn log(&self, plugin: &str, subject: &str) {
        let Self {
            fuel,
            memory_bytes,
            wall,
            cpu,
        } = self;
        let (wall_us, cpu_us) = (wall.as_micros(), cpu.as_micros());
        tracing::debug!(
            plugin,
            subject,
            fuel,
            memory_bytes,
            wall_us,
            cpu_us,
            "a run has ended"
        );
    }
}

/// A future, and the processor's time that its polls took, if that is measured.
pub(crate) struct Timed<F> {
    future: Pin<Box<F>>,
    is_measured: bool,
    taken: Duration,
}

impl<F> Timed<F> {
    pub(crate) fn new(future: F, is_measured: bool) -> Self {
        Self {
            future: Box::pin(future),
            is_measured,
            taken: Duration::ZERO,
        }
    }

    pub(crate) fn taken(&self) -> Duration {
        self.taken
    }
}

impl<F: Future> Future for Timed<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if !self.is_measured {
            return self.future.as_mut().poll(context);
        }
        let before = clock::thread_cpu();
        let polled = self.future.as_mut().poll(context);
        self.taken += clock::thread_cpu().saturating_sub(before);
        polled
    }
}

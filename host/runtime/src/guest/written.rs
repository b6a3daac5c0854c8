//! What a run writes into granted folders, counted.
//!
//! Bytes are counted as they are written, also those that replace others: it bounds the work of the disk as well as what is
//! filled. It must not know where they go.

use super::refusal::Refusals;
use crate::limits::{Limit, Limits};
use bytes::Bytes;
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

/// What is left of a run's bytes. Its streams share it.
#[derive(Clone)]
pub(crate) struct Quota {
    left_bytes: Arc<AtomicU64>,
    refusals: Refusals,
}

impl Quota {
    pub(super) fn new(limits: &Limits, refusals: &Refusals) -> Self {
        Self {
            left_bytes: Arc::new(AtomicU64::new(limits.written_bytes)),
            refusals: refusals.clone(),
        }
    }

    /// Take so many bytes. Not one is taken if there are not enough.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Errno> {
        let left = &self.left_bytes;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(bytes)
        });
        taken.map(drop).map_err(|_| {
            self.refusals.exceed(Limit::WrittenBytes);
            Errno::DQUOT
        })
    }

    /// A stream whose bytes are counted.
    pub(super) fn counted(&self, stream: DynOutputStream) -> DynOutputStream {
        Box::new(Counted {
            stream,
            quota: self.clone(),
        })
    }
}

struct Counted {
    stream: DynOutputStream,
    quota: Quota,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Counted {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Counted {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        // The error is one of the system's, for those are what a guest can ask the meaning of.
        let full = |errno| StreamError::LastOperationFailed(std::io::Error::from(errno).into());
        self.quota.take(bytes.len() as u64).map_err(full)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.stream.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.stream.check_write()
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

//! The limits on memory, tables and instances of one run, all its modules together.

use crate::limits::{Limit, Limits};
use wasmtime::{ResourceLimiter, Result, format_err};

/// Instances, tables and memories in one component; Python guests come close to 16 instances.
const PARTS_MAX: usize = 32;

pub(crate) struct Meter {
    memory_bytes: u64,
    memory_bytes_max: u64,
    table_elements_max: usize,
    /// The first limit that was met. The guest may go on: most allocators end it, and then this is why.
    pub(crate) exceeded: Option<Limit>,
}

impl Meter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            memory_bytes: 0,
            memory_bytes_max: limits.memory_bytes,
            table_elements_max: limits.table_elements as usize,
            exceeded: None,
        }
    }

    pub(crate) fn exceed(&mut self, limit: Limit) {
        self.exceeded.get_or_insert(limit);
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        let grown = self
            .memory_bytes
            .saturating_add(desired.saturating_sub(current) as u64);
        if grown > self.memory_bytes_max {
            self.exceed(Limit::Memory);
            return Ok(false);
        }
        self.memory_bytes = grown;
        Ok(true)
    }

    /// A guest that saw memory run out because the *host* had none would not be replayed the same.
    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> Result<()> {
        if self.exceeded == Some(Limit::Memory) {
            return Ok(());
        }
        Err(format_err!("the host has no memory for the guest: {error}"))
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        let fits = desired <= self.table_elements_max;
        if !fits {
            self.exceed(Limit::TableElements);
        }
        Ok(fits)
    }

    fn instances(&self) -> usize {
        PARTS_MAX
    }

    fn tables(&self) -> usize {
        PARTS_MAX
    }

    fn memories(&self) -> usize {
        PARTS_MAX
    }
}

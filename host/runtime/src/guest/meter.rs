//! The limits on memory, tables and instances of one run, all its modules together.

use super::refusal::Refusals;
use crate::limits::{Limit, Limits};
use wasmtime::{ResourceLimiter, Result, format_err};

/// Instances, tables and memories in one component; Python guests come close to 16 instances.
const PARTS_MAX: usize = 32;

/// An element of a table: a pointer.
const ELEMENT_BYTES: usize = size_of::<usize>();

pub(crate) struct Meter {
    memory_bytes: u64,
    memory_bytes_max: u64,
    table_elements: usize,
    table_elements_max: usize,
    refusals: Refusals,
}

impl Meter {
    pub(crate) fn new(limits: &Limits, refusals: &Refusals) -> Self {
        Self {
            memory_bytes: 0,
            memory_bytes_max: limits.memory_bytes,
            table_elements: 0,
            table_elements_max: limits.table_elements as usize,
            refusals: refusals.clone(),
        }
    }

    /// All memory that was ever there: a module's memory does not shrink.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The same, and all tables: what the guest may have written to.
    pub(crate) fn held_bytes(&self) -> usize {
        let memory_bytes = usize::try_from(self.memory_bytes).unwrap_or(usize::MAX);
        memory_bytes.saturating_add(self.table_elements.saturating_mul(ELEMENT_BYTES))
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        let grown = self
            .memory_bytes
            .saturating_add(desired.saturating_sub(current) as u64);
        if grown > self.memory_bytes_max {
            self.refusals.exceed(Limit::Memory);
            return Ok(false);
        }
        self.memory_bytes = grown;
        Ok(true)
    }

    /// A guest that saw memory run out because the *host* had none would not be replayed the same.
    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> Result<()> {
        if self.refusals.exceeded() == Some(Limit::Memory) {
            return Ok(());
        }
        Err(format_err!("the host has no memory for the guest: {error}"))
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        let fits = desired <= self.table_elements_max;
        if fits {
            self.table_elements += desired.saturating_sub(current);
        } else {
            self.refusals.exceed(Limit::TableElements);
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

//! Clocks, waits and random numbers, answered from the tape or put on it.
//!
//! wasmtime-wasi's own implementations are shadowed, for their hooks cannot fail, cannot see waits, and would sleep again on
//! replay. Resources are created on replay as they were before, since the guest sees their handle numbers; only the waiting
//! is left out.

use super::Guest;
use super::output::{Output, Printer};
use crate::clock;
use crate::grants::Grants;
use crate::limits::Limit;
use crate::run::Shared;
use rand_chacha::rand_core::Rng;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime::{Result, format_err};
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::bindings::io::poll;
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

/// Resolution of the guest's clocks while it computes.
const CLOCK_RESOLUTION_NS: u64 = 1_000_000;

/// The rest of WASI, empty but for the granted variables. Folders are in `files`.
pub(super) fn context(output: &Arc<Output>, grants: &Grants) -> WasiCtx {
    let mut context = WasiCtxBuilder::new();
    for variable in &grants.environment {
        context.env(&variable.name, &variable.value);
    }
    context
        .stdout(Printer::new(output, "stdout"))
        .stderr(Printer::new(output, "stderr"))
        .build()
}

pub(super) fn shadow(linker: &mut Linker<Guest>) -> Result<()> {
    linker.allow_shadowing(true);
    wall_clock::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    monotonic_clock::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    poll::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    random::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    insecure::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    insecure_seed::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    linker.allow_shadowing(false);
    Ok(())
}

impl wall_clock::Host for Guest {
    fn now(&mut self) -> Result<wall_clock::Datetime> {
        let since_start_us = self.read_clock_us()?;
        let us = self
            .seat
            .call
            .started_ms
            .saturating_mul(1_000)
            .saturating_add(since_start_us);
        Ok(wall_clock::Datetime {
            seconds: us / 1_000_000,
            nanoseconds: u32::try_from(us % 1_000_000).unwrap_or_default() * 1_000,
        })
    }

    fn resolution(&mut self) -> Result<wall_clock::Datetime> {
        Ok(wall_clock::Datetime {
            seconds: 0,
            nanoseconds: 1_000_000,
        })
    }
}

impl monotonic_clock::Host for Guest {
    fn now(&mut self) -> Result<u64> {
        Ok(self.read_clock_us()?.saturating_mul(1_000))
    }

    fn resolution(&mut self) -> Result<u64> {
        Ok(CLOCK_RESOLUTION_NS)
    }

    fn subscribe_instant(&mut self, when_ns: u64) -> Result<Resource<DynPollable>> {
        self.timer(when_ns.div_ceil(1_000))
    }

    fn subscribe_duration(&mut self, duration_ns: u64) -> Result<Resource<DynPollable>> {
        let base_us = self.tape.timer_base_us();
        self.timer(base_us.saturating_add(duration_ns.div_ceil(1_000)))
    }
}

impl Guest {
    fn read_clock_us(&mut self) -> Result<u64> {
        self.stop_recording_if_wished();
        Ok(self.tape.clock_us()?)
    }

    /// A pollable that is ready when the guest's clock stands at `at_us`.
    fn timer(&mut self, at_us: u64) -> Result<Resource<DynPollable>> {
        let left = Duration::from_micros(self.tape.until_us(at_us));
        let due = if left.is_zero() {
            Due::Now
        } else {
            Due::after(left)
        };
        let timer = self.table.push(Timer {
            due,
            shared: self.seat.shared.clone(),
        });
        let timer = timer.map_err(|error| self.handles_full(error))?;
        subscribe(&mut self.table, timer)
    }

    pub(super) fn handles_full(
        &mut self,
        error: wasmtime::component::ResourceTableError,
    ) -> wasmtime::Error {
        if matches!(error, wasmtime::component::ResourceTableError::Full) {
            self.refusals.exceed(Limit::Handles);
        }
        error.into()
    }
}

enum Due {
    Now,
    At(Instant),
    /// Further away than can be told: it waits, and can be interrupted.
    Never,
}

impl Due {
    fn after(left: Duration) -> Self {
        clock::instant()
            .checked_add(left)
            .map_or(Self::Never, Self::At)
    }
}

struct Timer {
    due: Due,
    shared: Arc<Shared>,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Timer {
    async fn ready(&mut self) {
        let due = async {
            match self.due {
                // At once: a look must see it too. A guest that looks for ever gives way at the next tick.
                Due::Now => {}
                Due::At(at) => tokio::time::sleep_until(at.into()).await,
                Due::Never => std::future::pending().await,
            }
        };
        tokio::select! {
            // A timer that is due fires as itself, so that the signal is kept for a real wait.
            biased;
            () = due => {}
            () = self.shared.interruption() => {}
        }
        // A timer that has fired stays so: a guest may look again before it drops it.
        self.due = Due::Now;
    }
}

impl poll::Host for Guest {
    async fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> Result<Vec<u32>> {
        if pollables.is_empty() {
            return Err(format_err!("an empty list was polled"));
        }
        if let Some(ready) = self.tape.replay_poll()? {
            return Ok(ready);
        }
        let ready = poll::Host::poll(&mut self.table, pollables).await?;
        self.stop_recording_if_wished();
        self.tape.record_poll(&ready);
        Ok(ready)
    }
}

impl poll::HostPollable for Guest {
    async fn ready(&mut self, pollable: Resource<DynPollable>) -> Result<bool> {
        if let Some(ready) = self.tape.replay_ready()? {
            return Ok(ready);
        }
        let ready = poll::HostPollable::ready(&mut self.table, pollable).await?;
        self.stop_recording_if_wished();
        self.tape.record_ready(ready);
        Ok(ready)
    }

    async fn block(&mut self, pollable: Resource<DynPollable>) -> Result<()> {
        if self.tape.replay_poll()?.is_some() {
            return Ok(());
        }
        poll::HostPollable::block(&mut self.table, pollable).await?;
        self.stop_recording_if_wished();
        self.tape.record_poll(&[0]);
        Ok(())
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> Result<()> {
        poll::HostPollable::drop(&mut self.table, pollable)
    }
}

impl Guest {
    fn draw(&mut self, len: u64) -> Result<Vec<u8>> {
        if len > self.limits().random_bytes {
            self.refusals.exceed(Limit::RandomBytes);
            return Err(format_err!("{len} random bytes were asked for at once"));
        }
        let mut bytes = vec![0; usize::try_from(len)?];
        self.random.fill_bytes(&mut bytes);
        Ok(bytes)
    }
}

// No draw needs an entry of the record: all come from the call's seed, in the order in which the guest asks.
impl random::Host for Guest {
    fn get_random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        self.draw(len)
    }

    fn get_random_u64(&mut self) -> Result<u64> {
        Ok(self.random.next_u64())
    }
}

impl insecure::Host for Guest {
    fn get_insecure_random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        self.draw(len)
    }

    fn get_insecure_random_u64(&mut self) -> Result<u64> {
        Ok(self.random.next_u64())
    }
}

impl insecure_seed::Host for Guest {
    fn insecure_seed(&mut self) -> Result<(u64, u64)> {
        Ok((self.random.next_u64(), self.random.next_u64()))
    }
}

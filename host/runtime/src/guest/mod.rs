//! The host as a guest sees it: the data of a store, and the imports that read and write it.
//!
//! `task` and `notify` hold the imports of the contract, `question` and `answer` what may go out by them, `wasi` the clocks, waits and random numbers that a replay must answer, and
//! `output` what a guest prints. `files` (with `written`) and `outbound` are what the operator can grant, `effect` what of it cannot be undone,
//! `refusal` what was not granted or was too much, `sockets` what nothing grants. The rest of WASI is wasmtime's own, linked whole
//! and empty: no argument, no input.

mod answer;
mod effect;
mod files;
mod meter;
mod notify;
mod outbound;
mod output;
mod question;
mod rate;
mod refusal;
mod sockets;
mod task;
mod wasi;
mod written;

use crate::contract::ClientFeatures;
use crate::contract::generated::longshore::plugin;
use crate::limits::{Limit, Limits};
use crate::record::Tape;
use crate::run::{Answer, Seat, Shared};
use meter::Meter;
use outbound::Outbound;
use output::Output;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use refusal::Refusals;
use std::collections::HashSet;
use std::sync::Arc;
use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// What a waiting guest holds beside its memories and tables, in bytes: its stack, its instances, the data of its store. A small
/// guest in Rust takes 60 KB in all.
const BESIDE_BYTES: usize = 64 << 10;

/// The data of a store: all that one run may see and change.
pub(crate) struct Guest {
    seat: Seat,
    tape: Tape,
    random: ChaCha20Rng,
    meter: Meter,
    refusals: Refusals,
    folders: files::Folders,
    written: written::Quota,
    outbound: Outbound,
    /// It has had an effect.
    acted: bool,
    output: Arc<Output>,
    /// Made when the guest first asks for something of it: many never do.
    wasi: Option<WasiCtx>,
    table: ResourceTable,
    keys: HashSet<String>,
    rounds: u32,
    begun: bool,
    refused_features: ClientFeatures,
    refused_result: Option<String>,
    /// Its result, if that is kept until the run is over.
    kept: Option<Answer>,
    progress: task::ProgressGate,
    updates: rate::Rate,
    external_id: Option<String>,
}

impl Guest {
    pub(crate) fn new(mut seat: Seat) -> Self {
        let limits = &seat.call.limits;
        let record_bytes_max = usize::try_from(limits.record_bytes).unwrap_or(usize::MAX);
        let tape = Tape::new(seat.record.take(), seat.call.started_ms, record_bytes_max);
        let refusals = Refusals::new(&seat.plugin, &seat.shared);
        let output = Output::new(&seat.plugin, seat.call.work.subject(), limits);
        let output = Arc::new(output.hiding(&seat.grants));
        output.mute(tape.is_replaying());
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles as usize);
        Self {
            tape,
            random: ChaCha20Rng::from_seed(seat.call.seed),
            meter: Meter::new(limits, &refusals),
            wasi: None,
            folders: files::Folders::default(),
            written: written::Quota::new(limits, &refusals),
            outbound: Outbound::new(limits, &seat.grants, &refusals),
            refusals,
            acted: false,
            output,
            table,
            keys: HashSet::new(),
            rounds: 0,
            begun: false,
            refused_features: ClientFeatures::empty(),
            refused_result: None,
            kept: None,
            progress: task::ProgressGate::new(limits.progress_per_second),
            updates: rate::Rate::new(notify::UPDATES_PER_SECOND),
            external_id: seat.call.external_id.clone(),
            seat,
        }
    }

    pub(crate) fn meter(&mut self) -> &mut dyn wasmtime::ResourceLimiter {
        &mut self.meter
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.seat.call.limits
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.seat.shared
    }

    /// The limit that a growth, a result or a question was refused for.
    pub(crate) fn exceeded(&self) -> Option<Limit> {
        self.refusals.exceeded()
    }

    /// What it wanted and was not granted, for its caller.
    pub(crate) fn denied(&self) -> Option<String> {
        self.refusals.told()
    }

    /// The memory of all its modules together, at its largest.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.meter.memory_bytes()
    }

    /// What it holds while it waits, at most.
    fn held_bytes(&self) -> usize {
        self.meter.held_bytes().saturating_add(BESIDE_BYTES)
    }

    pub(crate) fn refused_features(&self) -> ClientFeatures {
        self.refused_features
    }

    /// Whether something was refused that a guest is told of and then gives up: its result, a question, a request.
    pub(crate) fn was_refused(&self) -> bool {
        self.refused_result.is_some() || self.exceeded().is_some_and(Limit::is_told)
    }

    pub(crate) fn refused_result(&self) -> Option<String> {
        self.refused_result.clone()
    }

    pub(crate) fn take_kept(&mut self) -> Option<Answer> {
        self.kept.take()
    }

    /// Whether what the guest says now was said before, in the recorded stretch.
    fn repeats_itself(&self) -> bool {
        self.tape.is_replaying()
    }

    /// After the wish to end nothing of this run will be replayed, and a guest that spins would fill the record.
    fn stop_recording_if_wished(&mut self) {
        if self.seat.shared.is_wished() {
            self.tape.stop();
        }
    }

    fn take_answer(&mut self, answer: Answer) {
        self.seat.shared.set_completed();
        if self.seat.rules.tells_usage {
            self.kept = Some(answer);
            return;
        }
        // The channel may be full of progress; the result must not wait for a slow holder within a host call.
        let steps = self.seat.steps.clone();
        let step = crate::run::Step::Finished {
            answer: Box::new(answer),
            usage: None,
        };
        if let Err(tokio::sync::mpsc::error::TrySendError::Full(step)) = steps.try_send(step) {
            tokio::spawn(async move { steps.send(step).await });
        }
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let (output, grants) = (&self.output, &self.seat.grants);
        let ctx = self
            .wasi
            .get_or_insert_with(|| wasi::context(output, grants));
        WasiCtxView {
            ctx,
            table: &mut self.table,
        }
    }
}

/// Offer all that a guest can import.
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasi::shadow(linker)?;
    files::link(linker)?;
    outbound::link(linker)?;
    sockets::link(linker)?;
    plugin::types::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    plugin::task::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    plugin::log::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)?;
    plugin::notify::add_to_linker::<Guest, HasSelf<Guest>>(linker, |guest| guest)
}

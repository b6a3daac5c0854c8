//! The guest's side of a run: admission, its store, its call, and the step that is its last.
//!
//! It must not know what the exports are, nor what a trap means.

use super::exports;
use super::shared::Shared;
use super::usage::{Timed, Usage};
use super::verdict::{End, judge};
use super::{Reply, Run, STEPS_MAX, Step};
use crate::admission::{Admission, Patience};
use crate::call::{Call, Names};
use crate::clock;
use crate::contract::InputRequest;
use crate::engine::{Host, Metering};
use crate::failure::Failure;
use crate::grants::Grants;
use crate::guest::Guest;
use crate::news::Newsroom;
use crate::plugin::Plugin;
use crate::record::Record;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use wasmtime::{Store, UpdateDeadline};

/// What holds for every run.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// What the wire says of a question; the error is for the guest.
    pub(crate) check_question: fn(&InputRequest) -> Result<(), String>,
    /// How long a guest may go on when its time is over, or after its result.
    pub(crate) grace: Duration,
    /// Whether an answer comes with what its run used, and so not before the run is over.
    pub(crate) tells_usage: bool,
    /// Where its news goes; `None` while it lists.
    pub(crate) newsroom: Option<Arc<Newsroom>>,
}

/// On what terms a run is started.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) rules: Rules,
    pub(crate) patience: Patience,
}

/// A run's place: what its guest needs of the world.
pub(crate) struct Seat {
    pub(crate) plugin: String,
    pub(crate) grants: Arc<Grants>,
    pub(crate) call: Call,
    pub(crate) record: Option<Record>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) steps: mpsc::Sender<Step>,
    pub(crate) replies: mpsc::Receiver<Reply>,
    pub(crate) rules: Rules,
    /// Nothing can be asked, and nothing be told, while a plugin lists what it has.
    pub(crate) listing: bool,
}

impl Seat {
    /// A place without a holder, for the listing of what a plugin has.
    pub(crate) fn for_listing(plugin: &str, call: Call, grants: Arc<Grants>) -> Self {
        let (steps, _) = mpsc::channel(1);
        let (_, replies) = mpsc::channel(1);
        Self {
            plugin: plugin.to_owned(),
            grants,
            shared: Arc::new(shared(&call)),
            call,
            record: None,
            steps,
            replies,
            rules: Rules {
                check_question: |_| Err("nothing can be asked by a list".to_owned()),
                grace: Duration::ZERO,
                tells_usage: false,
                newsroom: None,
            },
            listing: true,
        }
    }
}

/// Start a run on the guests' threads.
pub(crate) fn start(
    host: &Arc<Host>,
    admission: &Arc<Admission>,
    plugin: &Arc<Plugin>,
    (call, record): (Call, Option<Record>),
    terms: Terms,
) -> Run {
    let (steps_in, steps) = mpsc::channel(STEPS_MAX);
    let (replies, replies_out) = mpsc::channel(1);
    let shared = Arc::new(shared(&call));
    let seat = Seat {
        plugin: plugin.name.clone(),
        grants: plugin.grants.clone(),
        call,
        record,
        shared: shared.clone(),
        steps: steps_in,
        replies: replies_out,
        rules: terms.rules,
        listing: false,
    };
    let admitted = (admission.clone(), terms.patience);
    let task = drive(host.clone(), admitted, plugin.clone(), seat);
    let guest = host.threads().spawn(task).abort_handle();
    Run {
        steps,
        replies,
        shared,
        host: host.clone(),
        guest: Some((plugin.clone(), guest)),
    }
}

fn shared(call: &Call) -> Shared {
    let wall_time = Duration::from_millis(call.limits.wall_time_ms);
    Shared::new(wall_time, call.names.clone())
}

/// A run that failed before it began.
pub(crate) fn stillborn(host: &Arc<Host>, failure: Failure) -> Run {
    let (steps_in, steps) = mpsc::channel(1);
    let (replies, _) = mpsc::channel(1);
    // The channel is new and has room for one.
    let _ = steps_in.try_send(Step::Failed(failure));
    let shared = Arc::new(Shared::new(Duration::ZERO, Names::default()));
    Run {
        steps,
        replies,
        shared,
        host: host.clone(),
        guest: None,
    }
}

async fn drive(
    host: Arc<Host>,
    (admission, patience): (Arc<Admission>, Patience),
    plugin: Arc<Plugin>,
    seat: Seat,
) {
    let steps = seat.steps.clone();
    let last = match admission.admit(&plugin.name, patience).await {
        // On the heap from here on: thousands may wait for a slot, and a guest's call is a large future.
        Ok(_slot) => Box::pin(supervise(&host, &plugin, seat)).await,
        Err(failure) => Some(Step::Failed(failure)),
    };
    if let Some(step) = last {
        // The holder may be gone; then nobody wants to know.
        let _ = steps.send(step).await;
    }
}

/// Run the guest to its end, whichever comes first. `None`: its result was reported already.
async fn supervise(host: &Host, plugin: &Plugin, seat: Seat) -> Option<Step> {
    let (shared, rules) = (seat.shared.clone(), seat.rules.clone());
    let work = seat.call.work.clone();
    if let Err(missing) = plugin.exports.serve(&work) {
        return Some(Step::Failed(Failure::Unavailable(missing)));
    }
    let mut store = match new_store(host, seat) {
        Ok(store) => store,
        Err(error) => return Some(Step::Failed(Failure::Unavailable(format!("{error:#}")))),
    };
    let wanted = rules.tells_usage || Usage::is_logged();
    shared.start_clock();
    let (end, cpu) = {
        let mut guest = Timed::new(exports::call(&mut store, plugin, &work), wanted);
        let end = tokio::select! {
            // The guest first: one that ends without a pause needs neither a timer nor a bell.
            biased;
            returned = &mut guest => End::Returned(returned),
            () = out_of_time(&shared, rules.grace) => End::OutOfTime,
            () = clean_up_over(&shared, &rules) => End::CleanedUp,
        };
        (end, guest.taken())
    };
    let usage = wanted.then(|| usage(&store, &shared, cpu));
    if let Some(usage) = &usage {
        usage.log(&plugin.name, work.subject());
    }
    let told = usage.filter(|_| rules.tells_usage);
    judge(end, plugin, store.data_mut()).map(|step| match step {
        Step::Finished { answer, .. } => Step::Finished {
            answer,
            usage: told,
        },
        step => step,
    })
}

fn usage(store: &Store<Guest>, shared: &Shared, cpu: Duration) -> Usage {
    let limits = store.data().limits();
    let left = store.get_fuel();
    Usage {
        // Of an unmetered plugin there is none to be told.
        fuel: left.ok().map(|left| limits.fuel.saturating_sub(left)),
        memory_bytes: store.data().memory_bytes(),
        wall: Duration::from_millis(limits.wall_time_ms).saturating_sub(shared.time_left()),
        cpu,
    }
}

pub(super) fn new_store(host: &Host, seat: Seat) -> wasmtime::Result<Store<Guest>> {
    let limits = seat.call.limits.clone();
    let shared = seat.shared.clone();
    let mut store = Store::try_new(&host.engine, Guest::new(seat))?;
    store.limiter(Guest::meter);
    if host.metering == Metering::Fuel {
        store.set_fuel(limits.fuel)?;
    }
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        if shared.is_dead() {
            return Ok(UpdateDeadline::Interrupt);
        }
        Ok(UpdateDeadline::Yield(1))
    });
    store.set_hostcall_fuel(usize::try_from(limits.host_call_bytes).unwrap_or(usize::MAX));
    store.set_max_component_handles(limits.handles as usize);
    Ok(store)
}

/// Resolves when the wall time is used up and the guest was given its grace to notice.
async fn out_of_time(shared: &Shared, grace: Duration) {
    shared.time_over().await;
    shared.wish();
    clock::sleep(grace).await;
}

/// Resolves when a guest that has given its result had its grace for what it does after.
async fn clean_up_over(shared: &Shared, rules: &Rules) {
    shared.completion().await;
    let grace = clock::sleep(rules.grace);
    if !rules.tells_usage {
        return grace.await;
    }
    // Its result is waited for. It stands, so it must not come later than the end that is wished for.
    tokio::select! {
        () = grace => {}
        () = shared.wish_made() => {}
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat")
            .field("plugin", &self.plugin)
            .finish_non_exhaustive()
    }
}

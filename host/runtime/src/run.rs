//! One run: a guest on its threads, and the handle by which it is followed, answered and ended.
//!
//! Who talks to whom: the guest's task owns the store and sends [`Step`]s on a bounded channel; the holder of the [`Run`]
//! answers on another; what both must see at once (the wish to end, the time that is left) lies in `Shared`. Dropping the
//! [`Run`] ends the guest, wherever it is: a computing one at its next look at the epoch, a waiting one with its future.

use crate::admission::{Admission, Patience};
use crate::call::Call;
use crate::clock;
use crate::contract::generated::exports::longshore::plugin::tools::GuestIndices;
use crate::contract::{
    CallResult, ClientFeatures, InputAnswer, InputKind, InputRequest, LogLevel, RpcError, Tool,
};
use crate::engine::Host;
use crate::failure::{Exceeded, Failure};
use crate::guest::Guest;
use crate::limits::Limit;
use crate::plugin::{Plugin, PluginError};
use crate::record::{Diverged, Record};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use wasmtime::component::InstancePre;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap, UpdateDeadline};

/// A question to the client, with the key that is its own for the whole call.
#[derive(Clone, Debug)]
pub struct Question {
    /// The key on the wire.
    pub key: String,
    /// What is asked.
    pub kind: InputKind,
}

/// How far the work has got.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Finite, and greater than the one before.
    pub progress: f64,
    /// The same unit; finite.
    pub total: Option<f64>,
    /// One line for a person.
    pub message: Option<String>,
}

/// A log message that the client wants.
#[derive(Clone, Debug)]
pub struct LogMessage {
    /// How severe.
    pub level: LogLevel,
    /// Which part of the plugin speaks.
    pub logger: Option<String>,
    /// JSON text.
    pub data: String,
}

/// What a run reports. After `Finished`, `Failed` and `Cancelled` there is nothing more.
#[derive(Clone, Debug)]
pub enum Step {
    /// How far the work has got.
    Progress(Progress),
    /// A message for the client.
    Log(LogMessage),
    /// The guest has an id of its own for the call.
    ExternalId(String),
    /// The questions are settled; the guest waits for [`Run::proceed`].
    Begin,
    /// The guest waits for [`Run::answer`]. With the record, another run arrives at the same questions; without, none can.
    NeedsInput {
        /// What it asks.
        questions: Vec<Question>,
        /// `None`: the call is pinned to this run.
        record: Option<Record>,
    },
    /// The result.
    Finished(Box<CallResult>),
    /// There is no result, and why.
    Failed(Failure),
    /// The guest ended after the wish to end, without a result.
    Cancelled,
}

pub(crate) enum Reply {
    Answers(Vec<InputAnswer>),
    Proceed,
}

/// Steps that may wait for a slow holder. Progress and log messages are dropped when it is full; the others wait.
const STEPS_MAX: usize = 64;

/// A run. Dropping it ends the guest, unless that has given its result: then it has the grace period for its clean-up.
#[derive(Debug)]
pub struct Run {
    steps: mpsc::Receiver<Step>,
    replies: mpsc::Sender<Reply>,
    shared: Arc<Shared>,
    host: Arc<Host>,
    guest: Option<(Arc<Plugin>, tokio::task::AbortHandle)>,
}

impl Run {
    /// The next step. Cancelling it loses nothing.
    pub async fn step(&mut self) -> Step {
        self.steps.recv().await.unwrap_or_else(|| {
            Step::Failed(Failure::Unavailable(
                "the run ended without a word".to_owned(),
            ))
        })
    }

    /// The plugin that runs; `None` if none could be had.
    pub fn plugin(&self) -> Option<&Arc<Plugin>> {
        self.guest.as_ref().map(|(plugin, _)| plugin)
    }

    /// Answer the questions of the last [`Step::NeedsInput`], in their order.
    pub fn answer(&self, answers: Vec<InputAnswer>) {
        self.reply(Reply::Answers(answers));
    }

    /// Let the guest go on after [`Step::Begin`].
    pub fn proceed(&self) {
        self.reply(Reply::Proceed);
    }

    fn reply(&self, reply: Reply) {
        // One reply is waited for at a time, and the channel has room for one: it only fails if the guest is gone.
        if self.replies.try_send(reply).is_err() {
            tracing::debug!("a reply came to a guest that does not wait for one");
        }
    }

    /// Tell the guest that the caller wants the work to end: `cancelled()` turns true and a pending wait returns. It may
    /// still finish.
    pub fn cancel(&self) {
        self.shared.wish();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.shared.is_completed() {
            return;
        }
        self.shared.dead.store(true, Ordering::Release);
        self.host.engine.increment_epoch();
        if let Some((_, guest)) = &self.guest {
            guest.abort();
        }
    }
}

/// What the guest's task and the holder of the run both see.
#[derive(Debug)]
pub(crate) struct Shared {
    wished: AtomicBool,
    delivered: AtomicBool,
    wish: Notify,
    dead: AtomicBool,
    completed: AtomicBool,
    complete: Notify,
    budget: Mutex<Budget>,
    budget_changed: Notify,
}

/// The wall time that is left. It stands still while the guest waits for input.
#[derive(Debug)]
struct Budget {
    left: Duration,
    running_since: Option<Instant>,
}

impl Shared {
    fn new(wall_time: Duration) -> Self {
        Self {
            wished: AtomicBool::new(false),
            delivered: AtomicBool::new(false),
            wish: Notify::new(),
            dead: AtomicBool::new(false),
            completed: AtomicBool::new(false),
            complete: Notify::new(),
            budget: Mutex::new(Budget {
                left: wall_time,
                running_since: None,
            }),
            budget_changed: Notify::new(),
        }
    }

    fn wish(&self) {
        self.wished.store(true, Ordering::Release);
        self.wish.notify_waiters();
    }

    pub(crate) fn is_wished(&self) -> bool {
        self.wished.load(Ordering::Acquire)
    }

    /// Resolves once, for the first wait that is pending when the wish comes, or that begins after it: a signal, not a state.
    pub(crate) async fn interruption(&self) {
        let wish = self.wish.notified();
        tokio::pin!(wish);
        // Registered before the flag is read, so that a wish in between is not missed.
        wish.as_mut().enable();
        if !self.is_wished() || self.delivered.swap(true, Ordering::AcqRel) {
            wish.await;
            self.delivered.store(true, Ordering::Release);
        }
    }

    pub(crate) fn set_completed(&self) {
        self.completed.store(true, Ordering::Release);
        self.complete.notify_one();
    }

    pub(crate) fn is_completed(&self) -> bool {
        self.completed.load(Ordering::Acquire)
    }

    pub(crate) fn start_clock(&self) {
        self.budget.lock().running_since = Some(clock::instant());
        self.budget_changed.notify_one();
    }

    pub(crate) fn stop_clock(&self) {
        let mut budget = self.budget.lock();
        if let Some(since) = budget.running_since.take() {
            budget.left = budget.left.saturating_sub(since.elapsed());
        }
    }

    /// The wall time that is left now.
    pub(crate) fn time_left(&self) -> Duration {
        let budget = self.budget.lock();
        let used = budget
            .running_since
            .map_or(Duration::ZERO, |since| since.elapsed());
        budget.left.saturating_sub(used)
    }

    fn runs(&self) -> bool {
        self.budget.lock().running_since.is_some()
    }

    /// Resolves when the wall time is used up.
    async fn time_over(&self) {
        loop {
            let left = self.time_left();
            if !self.runs() {
                self.budget_changed.notified().await;
            } else if left.is_zero() {
                return;
            } else {
                clock::sleep(left).await;
            }
        }
    }
}

/// What holds for every run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// What the wire says of a question; the error is for the guest.
    pub(crate) check_question: fn(&InputRequest) -> Result<(), String>,
    /// How long a guest may go on when its time is over, or after its result.
    pub(crate) grace: Duration,
}

/// On what terms a run is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) rules: Rules,
    pub(crate) patience: Patience,
}

/// A run's place: what its guest needs of the world.
pub(crate) struct Seat {
    pub(crate) plugin: String,
    pub(crate) call: Call,
    pub(crate) record: Option<Record>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) steps: mpsc::Sender<Step>,
    pub(crate) replies: mpsc::Receiver<Reply>,
    pub(crate) rules: Rules,
    /// Nothing can be asked while a plugin lists its tools.
    pub(crate) listing: bool,
}

impl Seat {
    /// A place without a holder, for the listing of tools.
    pub(crate) fn for_listing(plugin: &str, call: Call) -> Self {
        let (steps, _) = mpsc::channel(1);
        let (_, replies) = mpsc::channel(1);
        Self {
            plugin: plugin.to_owned(),
            shared: Arc::new(Shared::new(Duration::from_millis(call.limits.wall_time_ms))),
            call,
            record: None,
            steps,
            replies,
            rules: Rules {
                check_question: |_| Err("nothing can be asked while tools are listed".to_owned()),
                grace: Duration::ZERO,
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
    let shared = Arc::new(Shared::new(Duration::from_millis(call.limits.wall_time_ms)));
    let seat = Seat {
        plugin: plugin.name.clone(),
        call,
        record,
        shared: shared.clone(),
        steps: steps_in,
        replies: replies_out,
        rules: terms.rules,
        listing: false,
    };
    let task = drive(
        host.clone(),
        (admission.clone(), terms.patience),
        plugin.clone(),
        seat,
    );
    let guest = host.threads().spawn(Box::pin(task)).abort_handle();
    Run {
        steps,
        replies,
        shared,
        host: host.clone(),
        guest: Some((plugin.clone(), guest)),
    }
}

/// A run that failed before it began.
pub(crate) fn stillborn(host: &Arc<Host>, failure: Failure) -> Run {
    let (steps_in, steps) = mpsc::channel(1);
    let (replies, _) = mpsc::channel(1);
    // The channel is new and has room for one.
    let _ = steps_in.try_send(Step::Failed(failure));
    let shared = Arc::new(Shared::new(Duration::ZERO));
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
        Ok(_slot) => supervise(&host, &plugin, seat).await,
        Err(failure) => Some(Step::Failed(failure)),
    };
    if let Some(step) = last {
        // The holder may be gone; then nobody wants to know.
        let _ = steps.send(step).await;
    }
}

/// How a guest came to its end.
enum End {
    Returned(wasmtime::Result<Result<(), RpcError>>),
    OutOfTime,
    CleanedUp,
}

/// Run the guest to its end, whichever comes first. `None`: its result was reported already.
async fn supervise(host: &Host, plugin: &Plugin, seat: Seat) -> Option<Step> {
    let (shared, grace) = (seat.shared.clone(), seat.rules.grace);
    let call = (seat.call.tool.clone(), seat.call.arguments.clone());
    let mut store = match new_store(host, seat) {
        Ok(store) => store,
        Err(error) => return Some(Step::Failed(Failure::Unavailable(format!("{error:#}")))),
    };
    shared.start_clock();
    let end = {
        let guest = call_tool(&mut store, plugin, &call);
        tokio::select! {
            returned = Box::pin(guest) => End::Returned(returned),
            () = out_of_time(&shared, grace) => End::OutOfTime,
            () = clean_up_over(&shared, grace) => End::CleanedUp,
        }
    };
    let guest = store.data();
    if shared.is_completed() {
        if let End::Returned(Err(error)) = end {
            tracing::debug!(plugin = %plugin.name, %error, "a guest failed after its result");
        }
        return None;
    }
    Some(match end {
        End::Returned(Ok(Ok(()))) => returned_without_result(guest),
        End::Returned(Ok(Err(error))) if shared.is_wished() => {
            tracing::debug!(plugin = %plugin.name, error = %error.message, "a guest that was to end did so with an error");
            ended_by_wish(guest)
        }
        // What the guest says of it is its own; the limit is the fact.
        End::Returned(Ok(Err(_))) if guest.exceeded() == Some(Limit::ResultBytes) => {
            Step::Failed(exceeded(Limit::ResultBytes, guest))
        }
        End::Returned(Ok(Err(error))) => Step::Failed(Failure::Raised {
            error,
            refused: guest.refused_features(),
        }),
        End::Returned(Err(error)) => Step::Failed(classify(&error, guest)),
        End::OutOfTime | End::CleanedUp => Step::Failed(exceeded(Limit::WallTime, guest)),
    })
}

fn new_store(host: &Host, seat: Seat) -> wasmtime::Result<Store<Guest>> {
    let limits = seat.call.limits.clone();
    let shared = seat.shared.clone();
    let mut store = Store::try_new(&host.engine, Guest::new(seat))?;
    store.limiter(Guest::meter);
    store.set_fuel(limits.fuel)?;
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        if shared.dead.load(Ordering::Acquire) {
            return Ok(UpdateDeadline::Interrupt);
        }
        Ok(UpdateDeadline::Yield(1))
    });
    store.set_hostcall_fuel(usize::try_from(limits.host_call_bytes).unwrap_or(usize::MAX));
    store.set_max_component_handles(limits.handles as usize);
    Ok(store)
}

async fn call_tool(
    store: &mut Store<Guest>,
    plugin: &Plugin,
    (tool, arguments): &(String, String),
) -> wasmtime::Result<Result<(), RpcError>> {
    let instance = plugin.pre.instantiate_async(&mut *store).await?;
    let tools = plugin.tools_export.load(&mut *store, &instance)?;
    tools.call_call(&mut *store, tool, arguments).await
}

/// Resolves when the wall time is used up and the guest was given its grace to notice.
async fn out_of_time(shared: &Shared, grace: Duration) {
    shared.time_over().await;
    shared.wish();
    clock::sleep(grace).await;
}

async fn clean_up_over(shared: &Shared, grace: Duration) {
    shared.complete.notified().await;
    clock::sleep(grace).await;
}

fn returned_without_result(guest: &Guest) -> Step {
    if guest.shared().is_wished() {
        return ended_by_wish(guest);
    }
    Step::Failed(match guest.exceeded() {
        Some(limit) => exceeded(limit, guest),
        None => Failure::NoResult {
            refused: guest.refused_result(),
        },
    })
}

/// The wish to end was the caller's, or the host's because time was over.
fn ended_by_wish(guest: &Guest) -> Step {
    if guest.shared().time_left().is_zero() {
        return Step::Failed(exceeded(Limit::WallTime, guest));
    }
    Step::Cancelled
}

fn exceeded(limit: Limit, guest: &Guest) -> Failure {
    Failure::Limit(Exceeded {
        limit,
        value: guest.limits().value(limit),
    })
}

/// The text of wasmtime's error for exhausted host-call fuel, whose type is private. A test pins it.
const HOST_CALL_FUEL_TEXT: &str = "fuel allocated for hostcalls has been exhausted";

/// The text of wasmtime's error for too many handles; its type is private too.
const HANDLES_TEXT: &str = "handle table";

/// Give a trap its name.
fn classify(error: &wasmtime::Error, guest: &Guest) -> Failure {
    if let Some(diverged) = error.downcast_ref::<Diverged>() {
        return Failure::Diverged {
            step: diverged.step,
            detail: diverged.detail.clone(),
        };
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Failure::Unavailable("no instance slot of this size is free".to_owned());
    }
    if let Some(limit) = error.downcast_ref::<Trap>().and_then(limit_of_trap) {
        return exceeded(limit, guest);
    }
    if let Some(limit) = guest.exceeded() {
        return exceeded(limit, guest);
    }
    let text = format!("{error:#}");
    if text.contains(HOST_CALL_FUEL_TEXT) {
        return exceeded(Limit::HostCallBytes, guest);
    }
    if text.contains(HANDLES_TEXT) {
        return exceeded(Limit::Handles, guest);
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => Failure::Trap(trap.to_string()),
        None => Failure::Trap(error.root_cause().to_string()),
    }
}

fn limit_of_trap(trap: &Trap) -> Option<Limit> {
    match trap {
        Trap::OutOfFuel => Some(Limit::Fuel),
        Trap::StackOverflow => Some(Limit::Stack),
        _ => None,
    }
}

/// Ask a plugin for its tools.
pub(crate) async fn list_tools(
    host: &Host,
    pre: &InstancePre<Guest>,
    export: &GuestIndices,
    seat: Seat,
) -> Result<Vec<Tool>, PluginError> {
    let broken = |error: wasmtime::Error| PluginError::List(format!("{error:#}"));
    let mut store = new_store(host, seat).map_err(broken)?;
    let instance = Box::pin(pre.instantiate_async(&mut store)).await;
    let instance = instance.map_err(|error| list_error(&error, &store))?;
    let tools = export
        .load(&mut store, &instance)
        .map_err(|error| PluginError::NotAPlugin(format!("{error:#}")))?;
    let listed = Box::pin(tools.call_list(&mut store)).await;
    listed.map_err(|error| list_error(&error, &store))
}

fn list_error(error: &wasmtime::Error, store: &Store<Guest>) -> PluginError {
    PluginError::List(describe(&classify(error, store.data())))
}

fn describe(failure: &Failure) -> String {
    match failure {
        Failure::Limit(exceeded) => {
            format!(
                "it exceeded limits.{} = {}",
                exceeded.limit.name(),
                exceeded.value
            )
        }
        Failure::Trap(trap) => format!("it trapped: {trap}"),
        other => other.reason().to_owned(),
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat")
            .field("plugin", &self.plugin)
            .finish_non_exhaustive()
    }
}

/// What a client must declare to be asked this.
pub(crate) fn features_needed(kind: &InputKind) -> ClientFeatures {
    use crate::contract::IncludeContext;
    match kind {
        InputKind::Form(_) => ClientFeatures::ELICITATION_FORM,
        InputKind::Url(_) => ClientFeatures::ELICITATION_URL,
        InputKind::Roots => ClientFeatures::ROOTS,
        InputKind::Sampling(request) => {
            let mut needed = ClientFeatures::SAMPLING;
            if !request.tools.is_empty() || request.tool_choice.is_some() {
                needed |= ClientFeatures::SAMPLING_TOOLS;
            }
            if let Some(IncludeContext::ThisServer | IncludeContext::AllServers) =
                request.include_context
            {
                needed |= ClientFeatures::SAMPLING_CONTEXT;
            }
            needed
        }
    }
}

//! One session of an older client: what the handshake settled, what is in flight, what the client was asked, what it follows.
//!
//! It must not know of transports, nor how a session is found.

use crate::app::App;
use crate::in_flight::InFlight;
use crate::listen::filter::ENTRIES_MAX;
use crate::listen::hub::{Mark, Seat};
use crate::listen::subscriptions::{Subscriptions, tell};
use crate::members::Members;
use crate::message::{Notification, Response};
use crate::outcome::Notices;
use crate::resolve::Caller;
use crate::wire::legacy::{self, Revision};
use crate::wire::{WireError, response};
use longshore_runtime::Work;
use longshore_runtime::contract::{ClientFeatures, InputAnswer, LogLevel, RpcError};
use longshore_tasks::Principal;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a question waits for the client to say that it is ready: it does so right after the handshake, or never.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// How often a question is asked whose answers do not fit: a person may err, a client that does will again.
const TRIES: u32 = 3;

/// What the handshake settled.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// The protocol version.
    pub(crate) revision: Revision,
    /// What the client declared, as far as the version knows it.
    pub(crate) features: ClientFeatures,
    /// Who calls.
    pub(crate) principal: Principal,
    /// The address that it began from.
    pub(crate) peer: Option<IpAddr>,
}

/// A session.
pub(crate) struct Session {
    /// The protocol version.
    pub(crate) revision: Revision,
    /// What the client declared.
    pub(crate) features: ClientFeatures,
    /// Whose session it is.
    pub(crate) principal: Principal,
    /// The address that it was begun from.
    pub(crate) peer: Option<IpAddr>,
    /// Its requests that are being served.
    pub(crate) in_flight: Arc<InFlight>,
    /// Cancelled when the session is over.
    pub(crate) over: CancellationToken,
    /// Cancelled, as a latch, when the client has said that it is ready.
    ready: CancellationToken,
    log_level: Mutex<Option<LogLevel>>,
    questions: Questions,
    /// Cancelled when the server stops: nobody is asked any more.
    stopping: CancellationToken,
    seat: Seat,
    subscriptions: Mutex<Subscriptions>,
}

impl Session {
    /// A session that begins.
    pub(crate) fn begin(app: &Arc<App>, client: Client) -> Self {
        let Client {
            revision,
            features,
            principal,
            peer,
        } = client;
        let caller = Caller::host(principal.clone());
        let lists = BTreeSet::from([Mark::Tools, Mark::Prompts, Mark::Resources]);
        Self {
            revision,
            features,
            principal,
            peer,
            in_flight: Arc::default(),
            over: CancellationToken::new(),
            ready: CancellationToken::new(),
            log_level: Mutex::default(),
            questions: Questions::new(app.questions_asked.clone()),
            stopping: app.stopping.clone(),
            seat: Seat::of_session(&app.hub, lists),
            subscriptions: Mutex::new(Subscriptions::new(app, &caller)),
        }
    }

    /// The least severe log message that the client wants, if it wants any.
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        *self.log_level.lock()
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        *self.log_level.lock() = Some(level);
    }

    /// Take a notification of the client. Those that say nothing here are left alone.
    pub(crate) fn take_notification(&self, notification: &Notification) {
        match notification.method.as_str() {
            "notifications/initialized" => self.ready.cancel(),
            "notifications/cancelled" => {
                if let Some(id) = notification.params.get("requestId") {
                    self.in_flight.cancel(id);
                }
            }
            _ => {}
        }
    }

    /// Take an answer of the client. One that nobody waits for is left alone: it came too late.
    pub(crate) fn take_response(&self, response: Response) {
        self.questions.answered(response);
    }

    /// Ask the client something, the wire text of a question. Whatever comes of it is for the guest; an answer that does not
    /// fit is asked for again.
    ///
    /// Dropping the future stops the waiting: the question is withdrawn, and an answer that comes later is left alone.
    pub(crate) async fn ask(
        &self,
        question: &str,
        patience: Duration,
        notices: &Notices,
    ) -> InputAnswer {
        let mut misfit = String::new();
        for _ in 0..TRIES {
            let answered = tokio::select! {
                answered = self.ask_once(question, patience, notices) => answered,
                () = self.over.cancelled() => Err(refused(-32603, "the session is over")),
                () = self.stopping.cancelled() => Err(refused(-32603, "the server is shutting down")),
            };
            match answered.map(|answer| response::read_answer(question, &answer)) {
                Ok(Ok(answer)) => return answer,
                Ok(Err(wrong)) => misfit = wrong.to_string(),
                Err(refused) => return refused,
            }
            tracing::info!(%misfit, "an answer does not fit its question; it is asked again");
        }
        refused(-32602, &format!("no answer fits: {misfit}"))
    }

    /// The text of an answer; the error is for the guest.
    async fn ask_once(
        &self,
        question: &str,
        patience: Duration,
        notices: &Notices,
    ) -> Result<String, InputAnswer> {
        let mut waiting = self.questions.open();
        let id = waiting.id;
        let request = legacy::question(self.revision, id, question)
            .map_err(|unknown| refused(-32602, &unknown))?;
        // Before that the client may be sent nothing but pings and log messages.
        let ready = timeout(READY_WITHIN, self.ready.cancelled()).await;
        ready.map_err(|_| {
            let never = "the client was not asked: it has to send notifications/initialized first";
            refused(-32600, never)
        })?;
        let answered = async {
            notices.ask(request).await;
            waiting.sent_by = Some(notices);
            waiting.answered().await
        };
        match timeout(patience, answered).await {
            Ok(answer) => answer.map_err(|error| client_error(&error)),
            Err(_) => {
                let within_ms = patience.as_millis();
                let message = format!("the client did not answer within {within_ms} ms");
                Err(refused(-32603, &message))
            }
        }
    }

    /// Follow a resource.
    ///
    /// # Errors
    /// If there is none, its plugin refuses, or the session follows too many.
    pub(super) async fn subscribe(&self, app: &Arc<App>, uri: String) -> Result<(), WireError> {
        let is_new = {
            let mut subscriptions = self.subscriptions.lock();
            if subscriptions.uris().len() >= ENTRIES_MAX {
                return Err(WireError::busy(
                    format!("a session follows at most {ENTRIES_MAX} resources"),
                    "followed_resources",
                    ENTRIES_MAX as u64,
                ));
            }
            subscriptions.add(&uri)
        };
        // Before the plugin hears of it, so that what it says at once is not missed.
        self.seat.want(Mark::Resource(uri.clone()));
        let work = Work::Subscribe { uri: uri.clone() };
        let caller = Caller::host(self.principal.clone());
        let told = tell(app.clone(), work, caller).await;
        // What stood before goes on.
        if told.is_err() && is_new {
            self.unsubscribe(&uri);
        }
        told
    }

    /// Follow a resource no more. One that is not followed is no error.
    pub(super) fn unsubscribe(&self, uri: &str) {
        self.seat.forget(&Mark::Resource(uri.to_owned()));
        self.subscriptions.lock().remove(uri);
    }

    /// The next change that the client is to be told of. Cancelling it loses nothing.
    pub(crate) async fn next_change(&self) -> String {
        self.ready.cancelled().await;
        loop {
            if let Some(mark) = self.seat.next_mark() {
                match mark {
                    Mark::Tools => return legacy::list_changed("tools"),
                    Mark::Prompts => return legacy::list_changed("prompts"),
                    Mark::Resources => return legacy::list_changed("resources"),
                    Mark::Resource(uri) => return legacy::resource_updated(&uri),
                    // They are of the other era.
                    Mark::Task(_) => {}
                }
                continue;
            }
            self.seat.rung().await;
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

/// There is no answer, for the guest.
fn refused(code: i32, message: &str) -> InputAnswer {
    InputAnswer::Refused(RpcError {
        code,
        message: message.to_owned(),
        data: None,
    })
}

/// The error by which a client answered, for the guest.
fn client_error(text: &str) -> InputAnswer {
    let members = Members::parse(text).unwrap_or_default();
    let code = members.value("code").and_then(|code| code.as_i64());
    let code = code.and_then(|code| i32::try_from(code).ok());
    InputAnswer::Refused(RpcError {
        code: code.unwrap_or(-32603),
        message: members
            .string("message")
            .unwrap_or_else(|| "the client answered with an error".to_owned()),
        data: members.get("data").map(|data| data.get().to_owned()),
    })
}

type Answer = Result<String, String>;

/// What the client was asked and has not answered. Each is held by a call that waits, so there are no more than those.
#[derive(Debug)]
struct Questions {
    /// Counts the questions of all sessions: on a connection that had another session before, no id comes twice.
    asked: Arc<AtomicU64>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
}

impl Questions {
    fn new(asked: Arc<AtomicU64>) -> Self {
        Self {
            asked,
            waiting: Mutex::default(),
        }
    }

    fn open(&self) -> Waiting<'_> {
        let id = self.asked.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(id, sender);
        Waiting {
            questions: self,
            id,
            answer,
            sent_by: None,
        }
    }

    fn answered(&self, response: Response) {
        let id = response.id.get().parse::<u64>().ok();
        if let Some(waiting) = id.and_then(|id| self.waiting.lock().remove(&id)) {
            // Its call may be gone.
            let _ = waiting.send(response.answer);
        }
    }
}

/// A question that waits for its answer. Dropped without one it is forgotten, and withdrawn if the client has it.
struct Waiting<'a> {
    questions: &'a Questions,
    id: u64,
    answer: oneshot::Receiver<Answer>,
    /// By what it went to the client, if it did.
    sent_by: Option<&'a Notices>,
}

impl Waiting<'_> {
    async fn answered(&mut self) -> Answer {
        let gone = || Err(r#"{"code":-32603,"message":"the answer got lost"}"#.to_owned());
        let answer = (&mut self.answer).await.unwrap_or_else(|_| gone());
        self.sent_by = None;
        answer
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.questions.waiting.lock().remove(&self.id);
        if let Some(notices) = self.sent_by {
            notices.send(legacy::cancelled(
                self.id,
                "no answer is waited for any more",
            ));
        }
    }
}

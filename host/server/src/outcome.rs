//! How a request ends, and what is told on the way.

use crate::call::Undelivered;
use crate::wire::WireError;
use tokio::sync::mpsc;

/// Notifications that wait to be written. The one who writes them also moves the call on, so only a burst within one step of
/// the call can fill this; what is more is dropped.
const NOTICES_MAX: usize = 256;

/// Where notifications of a request go: finished JSON, one line each.
#[derive(Clone, Debug)]
pub(crate) struct Notices(Option<mpsc::Sender<String>>);

impl Notices {
    /// Notices that someone reads.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<String>) {
        let (sender, receiver) = mpsc::channel(NOTICES_MAX);
        (Self(Some(sender)), receiver)
    }

    /// Notices that nobody reads.
    pub(crate) fn unread() -> Self {
        Self(None)
    }

    /// Whether anyone reads them.
    pub(crate) fn are_read(&self) -> bool {
        self.0.is_some()
    }

    /// Send a question, which must not be lost: it waits for room. Nobody is asked if nobody reads.
    pub(crate) async fn ask(&self, question: String) {
        if let Some(sender) = &self.0 {
            // The reader ends with the call that asks.
            let _ = sender.send(question).await;
        }
    }

    /// Send one, if anyone reads them.
    pub(crate) fn send(&self, notification: String) {
        if let Some(sender) = &self.0
            && sender.try_send(notification).is_err()
        {
            tracing::debug!("a notification came faster than it could be written; it was dropped");
        }
    }
}

/// Drop a call that is not wanted any more; what it has to say at its end comes back: its open questions are withdrawn. What it
/// said before, and nobody has written yet, is not wanted either.
pub(crate) fn last_words<C>(call: C, feed: &mut mpsc::Receiver<String>) -> Vec<String> {
    while feed.try_recv().is_ok() {}
    drop(call);
    std::iter::from_fn(|| feed.try_recv().ok()).collect()
}

/// How a request ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The text of a result object, or an error.
    pub(crate) result: Result<String, WireError>,
    /// What must be undone if this never reaches the client.
    pub(crate) undelivered: Option<Undelivered>,
}

impl Outcome {
    /// A result.
    pub(crate) fn result(text: String) -> Self {
        Self {
            result: Ok(text),
            undelivered: None,
        }
    }

    /// An error.
    pub(crate) fn error(error: WireError) -> Self {
        Self {
            result: Err(error),
            undelivered: None,
        }
    }

    /// The error of a call that was cut off when the server stopped.
    pub(crate) fn cut_off() -> Self {
        let why = "the server is shutting down, and the call took longer than its time for that; call again";
        Self::error(WireError::internal("shutting_down", why))
    }

    /// A result that hands out something that must not be lost.
    pub(crate) fn handle(text: String, undelivered: Undelivered) -> Self {
        Self {
            result: Ok(text),
            undelivered: Some(undelivered),
        }
    }
}

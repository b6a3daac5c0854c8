//! Requests that are being served on one connection or in one session, by id: so that an id means one of them, and that one
//! can be cancelled.
//!
//! It must not know what a request does.

use crate::wire::WireError;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Requests at once. Each may hold a guest, or wait for one; a client that sends more does not read its answers.
const REQUESTS_MAX: usize = 1_024;

/// The requests.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    by_id: Mutex<HashMap<String, CancellationToken>>,
    left: Notify,
}

impl InFlight {
    /// A request begins.
    ///
    /// # Errors
    /// -32600 if another one has its id; -32603 if there are too many.
    pub(crate) fn enter(self: &Arc<Self>, id: &RawValue) -> Result<Place, WireError> {
        let key = key(id);
        let mut by_id = self.by_id.lock();
        if by_id.contains_key(&key) {
            return Err(WireError::invalid_request(
                "another request with this id is being served; ids must be unique",
            ));
        }
        if by_id.len() >= REQUESTS_MAX {
            let message = format!("{REQUESTS_MAX} requests are being served; wait for an answer");
            let (limit, value) = ("requests_at_once", REQUESTS_MAX as u64);
            return Err(WireError::busy(message, limit, value));
        }
        let cancelled = CancellationToken::new();
        by_id.insert(key.clone(), cancelled.clone());
        Ok(Place {
            in_flight: self.clone(),
            key,
            cancelled,
        })
    }

    /// A request is not wanted any more. One that is not there is no error: it may have ended.
    pub(crate) fn cancel(&self, id: &RawValue) {
        if let Some(cancelled) = self.by_id.lock().get(&key(id)) {
            cancelled.cancel();
        }
    }

    /// None is wanted any more.
    pub(crate) fn cancel_all(&self) {
        self.by_id
            .lock()
            .values()
            .for_each(CancellationToken::cancel);
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.lock().is_empty()
    }

    /// Resolves when there is none.
    pub(crate) async fn emptied(&self) {
        loop {
            let left = self.left.notified();
            if self.is_empty() {
                return;
            }
            left.await;
        }
    }
}

/// The same id, however it was written.
fn key(id: &RawValue) -> String {
    serde_json::from_str::<String>(id.get())
        .map_or_else(|_| id.get().to_owned(), |text| format!("{text:?}"))
}

/// The place of one request; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    in_flight: Arc<InFlight>,
    key: String,
    cancelled: CancellationToken,
}

impl Place {
    /// Resolves when the request is not wanted any more.
    pub(crate) fn cancelled(&self) -> WaitForCancellationFutureOwned {
        self.cancelled.clone().cancelled_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.in_flight.by_id.lock().remove(&self.key);
        self.in_flight.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn id(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn an_id_is_taken_until_its_request_ends() {
        let all = Arc::<InFlight>::default();
        let place = all.enter(&id(r#""a""#)).unwrap();
        assert_eq!(all.enter(&id(r#""\u0061""#)).unwrap_err().code, -32600);
        let number = all.enter(&id("1")).unwrap();
        all.enter(&id(r#""1""#)).unwrap();
        all.cancel(&id("2"));
        all.cancel(&id("1"));
        assert!(number.cancelled().now_or_never().is_some());
        assert!(place.cancelled().now_or_never().is_none());
        drop((place, number));
        assert!(all.is_empty());
        all.enter(&id(r#""a""#)).unwrap();
    }

    #[test]
    fn there_are_not_too_many() {
        let all = Arc::<InFlight>::default();
        let places: Vec<_> = (0..REQUESTS_MAX)
            .map(|number| all.enter(&id(&number.to_string())).unwrap())
            .collect();
        assert_eq!(all.enter(&id("-1")).unwrap_err().code, -32603);
        drop(places);
        assert!(all.emptied().now_or_never().is_some());
    }
}

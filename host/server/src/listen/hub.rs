//! Who listens to what. It knows marks only, not what they stand for.

use crate::rate::Who;
use crate::wire::WireError;
use longshore_tasks::TaskId;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio::sync::Notify;

/// Something that may change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mark {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The lists of resources and their templates.
    Resources,
    /// A resource, by URI.
    Resource(String),
    /// A task.
    Task(TaskId),
}

/// All who listen.
#[derive(Debug)]
pub(crate) struct Hub {
    /// Streams at once.
    streams_max: u32,
    /// Streams at once of one client.
    streams_per_client_max: u32,
    listeners: Mutex<Listeners>,
}

#[derive(Debug, Default)]
struct Listeners {
    by_mark: HashMap<Mark, Vec<Arc<Ear>>>,
    by_client: HashMap<Who, u32>,
    streams: u32,
}

/// What one stream has yet to say.
#[derive(Debug, Default)]
struct Ear {
    marks: Mutex<BTreeSet<Mark>>,
    /// Holds one ring: a stream looks at all its marks when it hears it.
    bell: Notify,
}

impl Ear {
    fn mark(&self, mark: Mark) {
        self.marks.lock().insert(mark);
        self.bell.notify_one();
    }
}

/// Why there is no seat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    key: &'static str,
    streams_max: u32,
}

impl Full {
    /// For the client.
    pub(crate) fn wire_error(self) -> WireError {
        let Self { key, streams_max } = self;
        let message = format!(
            "{streams_max} streams are open already; close one, or have the operator raise subscriptions.{key}"
        );
        let limit = format!("subscriptions.{key}");
        WireError::busy(message, &limit, streams_max.into())
    }
}

impl Hub {
    /// A hub with so many seats.
    pub(crate) fn new(streams_max: u32, streams_per_client_max: u32) -> Arc<Self> {
        Arc::new(Self {
            streams_max,
            streams_per_client_max,
            listeners: Mutex::default(),
        })
    }

    /// Something has changed: mark it for all who want to hear of it.
    pub(crate) fn tell(&self, mark: &Mark) {
        let listeners = self.listeners.lock();
        for ear in listeners.by_mark.get(mark).into_iter().flatten() {
            ear.mark(mark.clone());
        }
    }

    /// It is not known what has changed: mark all of this kind that someone wants to hear of.
    pub(crate) fn tell_all(&self, is_of_kind: impl Fn(&Mark) -> bool) {
        let listeners = self.listeners.lock();
        for (mark, ears) in listeners
            .by_mark
            .iter()
            .filter(|(mark, _)| is_of_kind(mark))
        {
            ears.iter().for_each(|ear| ear.mark(mark.clone()));
        }
    }

    /// Whether anyone wants to hear of it.
    pub(crate) fn is_wanted(&self, mark: &Mark) -> bool {
        self.listeners.lock().by_mark.contains_key(mark)
    }
}

impl Listeners {
    fn remove(&mut self, ear: &Arc<Ear>, mark: &Mark) {
        if let Some(ears) = self.by_mark.get_mut(mark) {
            ears.retain(|other| !Arc::ptr_eq(other, ear));
            if ears.is_empty() {
                self.by_mark.remove(mark);
            }
        }
    }
}

/// The place of one stream or session; given back when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    hub: Arc<Hub>,
    counted: Counted,
    wants: Mutex<BTreeSet<Mark>>,
    ear: Arc<Ear>,
}

#[derive(Debug)]
enum Counted {
    /// Among the streams of this client.
    Stream(Who),
    /// Not here: sessions are counted where they are kept.
    Elsewhere,
}

impl Seat {
    /// Take a place, to hear of these.
    ///
    /// # Errors
    /// If all are taken.
    pub(crate) fn take(hub: &Arc<Hub>, who: Who, wants: BTreeSet<Mark>) -> Result<Self, Full> {
        let mut listeners = hub.listeners.lock();
        let of_client = listeners.by_client.get(&who).copied().unwrap_or_default();
        for (taken, streams_max, key) in [
            (listeners.streams, hub.streams_max, "streams_max"),
            (
                of_client,
                hub.streams_per_client_max,
                "streams_per_client_max",
            ),
        ] {
            if taken >= streams_max {
                return Err(Full { key, streams_max });
            }
        }
        listeners.streams += 1;
        listeners.by_client.insert(who.clone(), of_client + 1);
        drop(listeners);
        Ok(Self::new(hub, Counted::Stream(who), wants))
    }

    /// A place for a session, to hear of these.
    pub(crate) fn of_session(hub: &Arc<Hub>, wants: BTreeSet<Mark>) -> Self {
        Self::new(hub, Counted::Elsewhere, wants)
    }

    fn new(hub: &Arc<Hub>, counted: Counted, wants: BTreeSet<Mark>) -> Self {
        let seat = Self {
            hub: hub.clone(),
            counted,
            wants: Mutex::default(),
            ear: Arc::default(),
        };
        wants.into_iter().for_each(|mark| seat.want(mark));
        seat
    }

    /// Hear of this too.
    pub(crate) fn want(&self, mark: Mark) {
        if self.wants.lock().insert(mark.clone()) {
            let mut listeners = self.hub.listeners.lock();
            let ears = listeners.by_mark.entry(mark).or_default();
            ears.push(self.ear.clone());
        }
    }

    /// Mark something for this stream alone.
    pub(crate) fn mark(&self, mark: Mark) {
        self.ear.mark(mark);
    }

    /// The next that is to be said, if there is one.
    pub(crate) fn next_mark(&self) -> Option<Mark> {
        self.ear.marks.lock().pop_first()
    }

    /// Hear of this no more.
    pub(crate) fn forget(&self, mark: &Mark) {
        self.wants.lock().remove(mark);
        self.hub.listeners.lock().remove(&self.ear, mark);
        self.ear.marks.lock().remove(mark);
    }

    /// Wait until there may be something to say. Cancelling it loses nothing.
    pub(crate) async fn rung(&self) {
        self.ear.bell.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut listeners = self.hub.listeners.lock();
        for mark in self.wants.lock().iter() {
            listeners.remove(&self.ear, mark);
        }
        let Counted::Stream(who) = &self.counted else {
            return;
        };
        listeners.streams = listeners.streams.saturating_sub(1);
        if let Some(streams) = listeners.by_client.get_mut(who) {
            *streams = streams.saturating_sub(1);
            if *streams == 0 {
                listeners.by_client.remove(who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn seat(hub: &Arc<Hub>, wants: &[Mark]) -> Seat {
        Seat::take(hub, Who::Peer(None), wants.iter().cloned().collect()).unwrap()
    }

    #[test]
    fn a_burst_is_one_mark_and_others_hear_nothing() {
        let hub = Hub::new(9, 9);
        let (tools, prompts) = (seat(&hub, &[Mark::Tools]), seat(&hub, &[Mark::Prompts]));
        for _ in 0..1_000 {
            hub.tell(&Mark::Tools);
        }
        assert!(tools.rung().now_or_never().is_some());
        assert_eq!(tools.next_mark(), Some(Mark::Tools));
        assert_eq!(tools.next_mark(), None);
        assert!(prompts.rung().now_or_never().is_none());
        assert_eq!(prompts.next_mark(), None);
    }

    #[test]
    fn what_is_forgotten_is_not_heard_of() {
        let hub = Hub::new(9, 9);
        let mark = Mark::Resource("a:b".to_owned());
        let seat = seat(&hub, std::slice::from_ref(&mark));
        assert!(hub.is_wanted(&mark));
        hub.tell(&mark);
        seat.forget(&mark);
        hub.tell(&mark);
        hub.tell_all(|_| true);
        assert_eq!(seat.next_mark(), None);
        assert!(!hub.is_wanted(&mark));
    }

    #[test]
    fn seats_are_bounded_and_given_back() {
        let hub = Hub::new(2, 1);
        let who = |last| Who::Peer(Some([192, 0, 2, last].into()));
        let take = |last| Seat::take(&hub, who(last), BTreeSet::from([Mark::Tools]));
        let (first, _second) = (take(1).unwrap(), take(2).unwrap());
        assert_eq!(take(3).unwrap_err().key, "streams_max");
        drop(first);
        assert_eq!(take(2).unwrap_err().key, "streams_per_client_max");
        drop(take(1).unwrap());
        drop(_second);
        let listeners = hub.listeners.lock();
        assert!(listeners.by_mark.is_empty() && listeners.by_client.is_empty());
    }
}

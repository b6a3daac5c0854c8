//! Sessions over HTTP: found by their id, bound to who began them, ended when idle; and the streams that each of them has.
//!
//! It must not know what is said in a session.

use super::stream::{EventId, EventStream, Reader, STANDALONE};
use crate::config::SessionSettings;
use crate::legacy::session::Session;
use crate::rate::Who;
use longshore_tasks::Principal;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Streams that have ended and are kept for clients that lost their connection.
const ENDED_MAX: usize = 8;

/// How long they are kept, in milliseconds.
const ENDED_MS: u64 = 60_000;

/// What ended streams may keep together, in bytes: beyond it a client that lost its connection has lost the rest too.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// An ended stream that is larger than this, in bytes, is let go as soon as it was read to its end.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// Who begins a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) principal: Principal,
    pub(super) peer: Option<IpAddr>,
}

impl Owner {
    /// Whose sessions are counted together.
    fn who(&self) -> Who {
        Who::of(&self.principal, self.peer)
    }
}

/// A share of what ended streams may keep; given back when dropped.
#[derive(Debug)]
struct Share {
    bytes: usize,
    budget: Arc<AtomicUsize>,
}

impl Share {
    fn take(budget: &Arc<AtomicUsize>, bytes: usize) -> Option<Self> {
        let share = Self {
            bytes,
            budget: budget.clone(),
        };
        // Where it is too much, dropping the share gives it back.
        let taken = budget.fetch_add(bytes, Ordering::AcqRel);
        (taken + bytes <= KEPT_BYTES_MAX).then_some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// A stream that has ended.
#[derive(Debug)]
struct Ended {
    number: u64,
    ended_ms: u64,
    stream: Arc<EventStream>,
    share: Share,
}

/// A session over HTTP.
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    owner: Owner,
    streams: Mutex<Streams>,
    standalone: Arc<EventStream>,
    /// What ended streams of all sessions keep, in bytes.
    budget: Arc<AtomicUsize>,
    /// GET requests that read from it.
    listeners: AtomicUsize,
    used_ms: AtomicU64,
    /// When it was used last, as a count: of two within one millisecond the earlier can still be told.
    turn: AtomicU64,
}

#[derive(Debug, Default)]
struct Streams {
    opened: u64,
    going: BTreeMap<u64, Arc<EventStream>>,
    /// The earliest first.
    ended: Vec<Ended>,
}

impl HttpSession {
    /// A new stream, for a request.
    pub(super) fn open(&self) -> (u64, Arc<EventStream>) {
        let mut streams = self.streams.lock();
        streams.opened += 1;
        let number = streams.opened;
        let stream = Arc::new(EventStream::new(number));
        streams.going.insert(number, stream.clone());
        (number, stream)
    }

    /// A stream has ended; the client may still come for it.
    pub(super) fn keep(&self, number: u64, now_ms: u64) {
        let mut streams = self.streams.lock();
        let Some(stream) = streams.going.remove(&number) else {
            return;
        };
        if let Some(share) = Share::take(&self.budget, stream.bytes()) {
            streams.ended.push(Ended {
                number,
                ended_ms: now_ms,
                stream,
                share,
            });
            if streams.ended.len() > ENDED_MAX {
                streams.ended.remove(0);
            }
        }
    }

    /// A stream is not needed any more: its client has the answer.
    pub(super) fn forget(&self, number: u64) {
        let mut streams = self.streams.lock();
        streams.going.remove(&number);
        streams.ended.retain(|ended| ended.number != number);
    }

    /// A stream was read to its end. A small one is kept: the connection may have been lost behind our back.
    pub(super) fn was_read(&self, number: u64) {
        let mut streams = self.streams.lock();
        streams
            .ended
            .retain(|ended| ended.number != number || ended.share.bytes <= SMALL_BYTES_MAX);
    }

    /// Go on behind an event; `None`: what came behind it is not kept any more.
    pub(super) fn resume(&self, last: EventId) -> Option<Reader> {
        if last.is_standalone() {
            return self.standalone.reader_behind(last.number);
        }
        let streams = self.streams.lock();
        let ended = || {
            let mut ended = streams.ended.iter();
            ended.find(|ended| ended.number == last.stream)
        };
        let stream = streams.going.get(&last.stream);
        let stream = stream.or_else(|| ended().map(|ended| &ended.stream))?;
        stream.reader_behind(last.number)
    }

    /// The stream that belongs to no request.
    pub(super) fn standalone(&self) -> &Arc<EventStream> {
        &self.standalone
    }

    /// Someone reads by GET, until the value is dropped.
    pub(super) fn listening(self: &Arc<Self>) -> Listening {
        self.listeners.fetch_add(1, Ordering::AcqRel);
        Listening(self.clone())
    }

    fn touch(&self, now_ms: u64, turn: u64) {
        self.used_ms.store(now_ms, Ordering::Relaxed);
        self.turn.store(turn, Ordering::Relaxed);
    }

    /// Since when nothing was asked of it, nothing goes on in it and nobody listens; `None`: something does.
    fn idle_since_ms(&self) -> Option<u64> {
        let quiet =
            self.session.in_flight.is_empty() && self.listeners.load(Ordering::Acquire) == 0;
        quiet.then(|| self.used_ms.load(Ordering::Relaxed))
    }

    fn end(&self) {
        self.session.over.cancel();
        self.session.in_flight.cancel_all();
    }
}

/// See [`HttpSession::listening`].
#[derive(Debug)]
pub(super) struct Listening(Arc<HttpSession>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.listeners.fetch_sub(1, Ordering::AcqRel);
    }
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    settings: SessionSettings,
    by_id: Mutex<HashMap<String, Arc<HttpSession>>>,
    /// What ended streams keep, in bytes.
    budget: Arc<AtomicUsize>,
    /// Counts how often any session was used.
    turns: AtomicU64,
}

/// There is no room for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) sessions_max: u32,
}

impl Sessions {
    /// None yet.
    pub(crate) fn new(settings: SessionSettings) -> Self {
        Self {
            settings,
            by_id: Mutex::default(),
            budget: Arc::default(),
            turns: AtomicU64::new(0),
        }
    }

    /// Keep a session; its id comes back. Where there is no room, the one that has been idle for longest has to go: of the
    /// same owner if that one has too many, else of all.
    ///
    /// # Errors
    /// If no session is idle, or the system has no random numbers.
    pub(super) fn begin(
        &self,
        session: Session,
        owner: Owner,
        now_ms: u64,
    ) -> Result<String, Full> {
        let mut random = [0; 16];
        let sessions_max = self.settings.sessions_max;
        getrandom::fill(&mut random).map_err(|_| Full { sessions_max })?;
        let id = hex::encode(random);
        let mut by_id = self.by_id.lock();
        let who = owner.who();
        let of_owner = |session: &HttpSession| session.owner.who() == who;
        let of_owner_max = self.settings.sessions_per_client_max as usize;
        if by_id.values().filter(|session| of_owner(session)).count() >= of_owner_max {
            let sessions_max = self.settings.sessions_per_client_max;
            make_room(&mut by_id, of_owner).ok_or(Full { sessions_max })?;
        }
        if by_id.len() >= sessions_max as usize {
            make_room(&mut by_id, |_| true).ok_or(Full { sessions_max })?;
        }
        let session = HttpSession {
            session: Arc::new(session),
            owner,
            streams: Mutex::default(),
            standalone: Arc::new(EventStream::new(STANDALONE)),
            budget: self.budget.clone(),
            listeners: AtomicUsize::new(0),
            used_ms: AtomicU64::new(now_ms),
            turn: AtomicU64::new(self.next_turn()),
        };
        by_id.insert(id.clone(), Arc::new(session));
        Ok(id)
    }

    fn next_turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// The session of this id, if it is this principal's.
    pub(super) fn get(
        &self,
        id: &str,
        principal: &Principal,
        now_ms: u64,
    ) -> Option<Arc<HttpSession>> {
        let by_id = self.by_id.lock();
        let found = by_id.get(id)?;
        if found.owner.principal != *principal {
            return None;
        }
        found.touch(now_ms, self.next_turn());
        Some(found.clone())
    }

    /// End a session. Whether there was one.
    pub(super) fn end(&self, id: &str, principal: &Principal) -> bool {
        let mut by_id = self.by_id.lock();
        let owned = by_id
            .get(id)
            .is_some_and(|found| found.owner.principal == *principal);
        if let Some(ended) = owned.then(|| by_id.remove(id)).flatten() {
            ended.end();
        }
        owned
    }

    /// End those that are idle for too long, and let go of what is kept for too long.
    pub(crate) fn sweep(&self, now_ms: u64) {
        let mut by_id = self.by_id.lock();
        by_id.retain(|_, session| {
            let idle_ms = session
                .idle_since_ms()
                .map_or(0, |since_ms| now_ms.saturating_sub(since_ms));
            let stays = idle_ms < self.settings.idle_ms;
            if !stays {
                session.end();
            }
            let mut streams = session.streams.lock();
            streams
                .ended
                .retain(|ended| now_ms.saturating_sub(ended.ended_ms) < ENDED_MS);
            stays
        });
    }
}

/// End the one of these that has been idle for longest.
fn make_room(
    by_id: &mut HashMap<String, Arc<HttpSession>>,
    counts: impl Fn(&HttpSession) -> bool,
) -> Option<()> {
    let idle = by_id.iter().filter(|(_, session)| counts(session));
    let idle = idle.filter(|(_, session)| session.idle_since_ms().is_some());
    let (longest, _) = idle.min_by_key(|(_, session)| session.turn.load(Ordering::Relaxed))?;
    let longest = longest.clone();
    let ended = by_id.remove(&longest)?;
    tracing::info!("a session was ended: there are too many, and it was idle for longest");
    ended.end();
    Some(())
}

//! A stream of events that outlives its connection: what was said is kept for a while, so that a client that lost its
//! connection gets the rest on another one (MCP 2025-11-25, "Resumability and Redelivery").
//!
//! It must not know what is said.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// What a stream keeps, in bytes. When more comes the oldest goes: a client that is that far behind has lost it.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Events that a stream keeps.
const KEPT_MAX: usize = 1_024;

/// How long a client that lost its connection waits before it comes again, in milliseconds.
const RETRY_MS: u32 = 1_000;

/// The number of the stream that belongs to no request.
pub(super) const STANDALONE: u64 = 0;

/// Which event: of which stream, and which of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

impl EventId {
    /// Whether its stream belongs to no request.
    pub(super) fn is_standalone(self) -> bool {
        self.stream == STANDALONE
    }

    /// Read the text of an id.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        (digits(stream) && digits(number)).then_some(())?;
        Some(Self {
            stream: stream.parse().ok()?,
            number: number.parse().ok()?,
        })
    }
}

/// A stream.
#[derive(Debug)]
pub(super) struct EventStream {
    number: u64,
    state: Mutex<State>,
    /// Tells readers to look.
    news: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    said: u64,
    /// It began with word that there is a stream.
    primed: bool,
    end: Option<End>,
    /// Only the latest reader reads. 0: there was none yet, so all may still become one response.
    reader: u64,
}

impl State {
    fn says_nothing(&self) -> bool {
        self.said == u64::from(self.primed)
    }
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With a response, and nothing before it.
    Answered(Arc<str>),
    /// With a response after other messages.
    Told,
    /// Its request was not wanted any more.
    Cancelled,
}

impl EventStream {
    /// An empty one.
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            state: Mutex::default(),
            news: watch::Sender::new(()),
        }
    }

    /// Say that there is a stream, so that a client can come again before anything else was said.
    pub(super) fn prime(&self) {
        let mut state = self.state.lock();
        state.primed |= state.said == 0;
        self.add(&mut state, |id| {
            format!("id: {id}\nretry: {RETRY_MS}\ndata: \n\n")
        });
        drop(state);
        self.news.send_replace(());
    }

    /// Say one message, a line of JSON.
    pub(super) fn push(&self, message: &str) {
        let mut state = self.state.lock();
        self.add(&mut state, |id| message_event(id, message));
        drop(state);
        self.news.send_replace(());
    }

    fn add(&self, state: &mut State, event: impl FnOnce(&str) -> String) {
        let number = state.said;
        let event = Bytes::from(event(&format!("{}-{number}", self.number)));
        state.said += 1;
        state.bytes += event.len();
        state.events.push_back((number, event));
        while state.events.len() > 1
            && (state.events.len() > KEPT_MAX || state.bytes > KEPT_BYTES_MAX)
        {
            if let Some((_, oldest)) = state.events.pop_front() {
                state.bytes -= oldest.len();
            }
        }
    }

    /// The last message, and the end. A response alone that nobody reads as a stream yet is kept for who waits for it.
    pub(super) fn end(&self, response: Option<String>) {
        let mut state = self.state.lock();
        let end = match response {
            None => End::Cancelled,
            Some(response) if state.reader == 0 && state.says_nothing() => {
                End::Answered(response.into())
            }
            Some(response) => {
                self.add(&mut state, |id| message_event(id, &response));
                End::Told
            }
        };
        state.end = Some(end);
        drop(state);
        self.news.send_replace(());
    }

    /// What it keeps, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let state = self.state.lock();
        match &state.end {
            Some(End::Answered(response)) => state.bytes + response.len(),
            _ => state.bytes,
        }
    }

    /// Resolves when more was said than that there is a stream, or it has ended.
    pub(super) async fn opened(&self) -> Option<End> {
        let mut news = self.news.subscribe();
        loop {
            news.borrow_and_update();
            {
                let state = self.state.lock();
                if state.end.is_some() || !state.says_nothing() {
                    return state.end.clone();
                }
            }
            // The sender lives as long as this does.
            let _ = news.changed().await;
        }
    }

    /// Resolves when it has ended.
    pub(super) async fn ended(&self) -> End {
        let mut news = self.news.subscribe();
        loop {
            news.borrow_and_update();
            if let Some(end) = self.state.lock().end.clone() {
                return end;
            }
            let _ = news.changed().await;
        }
    }

    /// Read all that is kept. Who read before reads no more.
    pub(super) fn reader(self: &Arc<Self>) -> Reader {
        self.reader_at(|_| Some(0))
            .unwrap_or_else(|| unreachable!("it begins at the beginning"))
    }

    /// Read what comes from here on. Who read before reads no more.
    pub(super) fn reader_from_now(self: &Arc<Self>) -> Reader {
        self.reader_at(|state| Some(state.said))
            .unwrap_or_else(|| unreachable!("now is always there"))
    }

    /// Read from behind an event; `None`: there was no such event, or what came behind it is not kept any more. Who read
    /// before reads no more.
    pub(super) fn reader_behind(self: &Arc<Self>, number: u64) -> Option<Reader> {
        self.reader_at(|state| {
            let next = number.checked_add(1).filter(|next| *next <= state.said)?;
            let kept_from = state.events.front().map_or(state.said, |(first, _)| *first);
            (next >= kept_from).then_some(next)
        })
    }

    fn reader_at(self: &Arc<Self>, next: impl FnOnce(&State) -> Option<u64>) -> Option<Reader> {
        let mut state = self.state.lock();
        let next = next(&state)?;
        state.reader += 1;
        if let Some(End::Answered(response)) = &state.end {
            // Now it is a stream after all.
            let response = response.clone();
            self.add(&mut state, |id| message_event(id, &response));
            state.end = Some(End::Told);
        }
        let reader = Reader {
            turn: state.reader,
            next,
            stream: self.clone(),
            news: self.news.subscribe(),
        };
        drop(state);
        self.news.send_replace(());
        Some(reader)
    }
}

fn message_event(id: &str, message: &str) -> String {
    format!("id: {id}\nevent: message\ndata: {message}\n\n")
}

/// Reads a stream.
#[derive(Debug)]
pub(super) struct Reader {
    stream: Arc<EventStream>,
    news: watch::Receiver<()>,
    turn: u64,
    next: u64,
}

impl Reader {
    /// The next event; `None`: there is none any more. Cancelling it loses nothing.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.news.borrow_and_update();
            {
                let state = self.stream.state.lock();
                if state.reader != self.turn {
                    return None;
                }
                let first = state
                    .events
                    .partition_point(|(number, _)| *number < self.next);
                if let Some((number, event)) = state.events.get(first) {
                    self.next = number + 1;
                    return Some(event.clone());
                }
                if state.end.is_some() {
                    return None;
                }
            }
            let _ = self.news.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn next(reader: &mut Reader) -> Option<String> {
        let event = reader.next().now_or_never().flatten()?;
        Some(String::from_utf8(event.to_vec()).unwrap())
    }

    #[test]
    fn a_reader_that_comes_again_gets_the_rest() {
        let stream = Arc::new(EventStream::new(7));
        stream.prime();
        stream.push("1");
        let mut reader = stream.reader();
        assert_eq!(
            next(&mut reader).unwrap(),
            "id: 7-0\nretry: 1000\ndata: \n\n"
        );
        assert_eq!(
            next(&mut reader).unwrap(),
            "id: 7-1\nevent: message\ndata: 1\n\n"
        );
        stream.end(Some("2".to_owned()));
        let mut again = stream.reader_behind(1).unwrap();
        assert!(next(&mut again).unwrap().contains("data: 2"));
        assert_eq!(again.next().now_or_never(), Some(None));
        assert!(stream.reader_behind(2).is_some() && stream.reader_behind(3).is_none());
        // The one before has nothing to say any more.
        assert_eq!(reader.next().now_or_never(), Some(None));
    }

    #[test]
    fn an_answer_alone_is_known_as_such() {
        let end = |said: usize, response: Option<&str>| {
            let stream = Arc::new(EventStream::new(1));
            stream.prime();
            assert!(stream.opened().now_or_never().is_none());
            (0..said).for_each(|_| stream.push("n"));
            stream.end(response.map(str::to_owned));
            assert!(stream.opened().now_or_never().is_some());
            stream.ended().now_or_never().unwrap()
        };
        assert_eq!(end(0, Some("r")), End::Answered("r".into()));
        assert_eq!(end(1, Some("r")), End::Told);
        assert_eq!(end(0, None), End::Cancelled);
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_newest_stays() {
        let stream = Arc::new(EventStream::new(1));
        let long = "x".repeat(KEPT_BYTES_MAX / 4);
        (0..9).for_each(|_| stream.push(&long));
        stream.push(&"y".repeat(2 * KEPT_BYTES_MAX));
        assert!(next(&mut stream.reader()).unwrap().contains("data: y"));
        (0..=KEPT_MAX).for_each(|_| stream.push("z"));
        assert!(stream.state.lock().events.len() <= KEPT_MAX);
        // What came behind the first event is not all there any more.
        assert!(stream.reader_behind(0).is_none());
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        assert_eq!(
            EventId::parse("3-14"),
            Some(EventId {
                stream: 3,
                number: 14
            })
        );
        for wrong in ["", "3", "3-", "-1", "a-b", "3-1-4", "3_1", "+3-+1"] {
            assert_eq!(EventId::parse(wrong), None, "{wrong}");
        }
    }
}

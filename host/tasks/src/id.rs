//! Names of tasks and of those who own them. Knows nothing of what a task holds.

use std::fmt;
use std::str::FromStr;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The name of a task: 160 random bits, written as 40 lower-case hex digits.
///
/// It is safe in a header and says nothing of time, order or owner. 128 of its bits are drawn for it alone. The other 32, its
/// *neighbourhood*, are the first of its raw form and are shared by what is made in one millisecond: a store that sorts by the
/// raw form so finds beside each other what is written together, and most often ends together. In the text they are masked by
/// the rest, so that neighbours do not look alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TaskId([u8; TaskId::BYTES]);

/// Length of a neighbourhood, in bytes.
const NEIGHBOURHOOD_BYTES: usize = 4;

impl TaskId {
    /// Length of the raw form.
    pub const BYTES: usize = 20;

    /// Draws a new id, in a neighbourhood of its own, from the operating system's random numbers; fails if it has none to give.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; Self::BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The id of these raw bytes, as a store keeps them.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The raw bytes, for keys in a store.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// From the raw form to that of the text, and back.
    fn masked(mut self) -> Self {
        let (words, _) = self.0.as_chunks_mut::<NEIGHBOURHOOD_BYTES>();
        let all = words.iter().map(|word| u32::from_ne_bytes(*word));
        words[0] = all.fold(0, |all, word| all ^ word).to_ne_bytes();
        self
    }
}

/// Makes the ids of new tasks: those of one millisecond are neighbours.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Since when, in milliseconds since the epoch, and which. `None` before the first id.
    neighbourhood: Mutex<Option<(u64, [u8; NEIGHBOURHOOD_BYTES])>>,
}

impl Ids {
    /// A new id; fails if the operating system has no random numbers to give.
    pub(crate) fn make(&self, now_ms: u64) -> Result<TaskId, getrandom::Error> {
        let mut id = TaskId::random()?;
        let (drawn, _) = id.0.split_at_mut(NEIGHBOURHOOD_BYTES);
        let mut neighbourhood = self.neighbourhood.lock();
        match &*neighbourhood {
            Some((since_ms, shared)) if *since_ms == now_ms => drawn.copy_from_slice(shared),
            _ => *neighbourhood = drawn.first_chunk().map(|drawn| (now_ms, *drawn)),
        }
        Ok(id)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 2 * Self::BYTES];
        hex::encode_to_slice(self.masked().0, &mut digits).map_err(|_| fmt::Error)?;
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskId({self})")
    }
}

/// The text is not a task id: 40 lower-case hex digits are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a task id: 40 lower-case hex digits are expected")]
pub struct BadTaskId;

impl FromStr for TaskId {
    type Err = BadTaskId;

    fn from_str(text: &str) -> Result<Self, BadTaskId> {
        // One spelling only, so that two texts never name the same task.
        if text.bytes().any(|digit| digit.is_ascii_uppercase()) {
            return Err(BadTaskId);
        }
        let mut bytes = [0; Self::BYTES];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| BadTaskId)?;
        Ok(Self(bytes).masked())
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for TaskId {
    type Error = BadTaskId;

    fn try_from(text: String) -> Result<Self, BadTaskId> {
        text.parse()
    }
}

/// Who called: a token's subject, or `anonymous`. Only the same principal finds a task again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Principal(String);

const ANONYMOUS: &str = "anonymous";

impl Principal {
    /// The principal of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The principal of a server without authentication.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS)
    }

    /// Whether it is the one of a server without authentication.
    pub fn is_anonymous(&self) -> bool {
        self.0 == ANONYMOUS
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn t12_ten_thousand_ids_do_not_repeat_and_have_no_fixed_byte() {
        let ids: HashSet<TaskId> = (0..10_000).map(|_| TaskId::random().unwrap()).collect();
        assert_eq!(ids.len(), 10_000);
        for place in 0..TaskId::BYTES {
            let values: HashSet<u8> = ids.iter().map(|id| id.as_bytes()[place]).collect();
            assert_eq!(values.len(), 256, "byte {place} does not take every value");
        }
    }

    #[test]
    fn ids_of_one_millisecond_lie_together_and_do_not_look_alike() {
        let ids = Ids::default();
        let near: Vec<TaskId> = (0..1_000).map(|_| ids.make(5).unwrap()).collect();
        let far = ids.make(6).unwrap();
        let neighbourhood = |id: &TaskId| id.as_bytes()[..NEIGHBOURHOOD_BYTES].to_vec();
        let shown = |id: &TaskId| id.to_string()[..2 * NEIGHBOURHOOD_BYTES].to_owned();
        let apart: HashSet<_> = near.iter().map(neighbourhood).collect();
        assert_eq!(apart.len(), 1);
        assert!(!apart.contains(&neighbourhood(&far)));
        let texts: HashSet<_> = near.iter().map(shown).collect();
        assert!(texts.len() > 990, "{} beginnings of texts", texts.len());
        let own = near.iter().map(|id| &id.as_bytes()[NEIGHBOURHOOD_BYTES..]);
        assert_eq!(own.collect::<HashSet<_>>().len(), 1_000);
    }

    #[test]
    fn text_round_trips_and_other_spellings_are_refused() {
        let id = TaskId::random().unwrap();
        let text = id.to_string();
        assert_eq!(text.parse(), Ok(id));
        assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        for bad in [
            "",
            "0",
            &text[1..],
            &format!("{text}0"),
            &"G".repeat(40),
            &"AB".repeat(20),
        ] {
            assert_eq!(bad.parse::<TaskId>(), Err(BadTaskId), "{bad}");
        }
    }
}

//! Names of tasks and of those who own them. Knows nothing of what a task holds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a task: 128 random bits, written as 32 lower-case hex digits.
///
/// It is safe in a header and says nothing of time, order or owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TaskId([u8; TaskId::BYTES]);

impl TaskId {
    /// Length of the raw form.
    pub const BYTES: usize = 16;

    /// Draws a new id from the operating system's random numbers; fails if it has none to give.
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
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskId({self})")
    }
}

/// The text is not a task id: 32 lower-case hex digits are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a task id: 32 lower-case hex digits are expected")]
pub struct BadTaskId;

impl FromStr for TaskId {
    type Err = BadTaskId;

    fn from_str(text: &str) -> Result<Self, BadTaskId> {
        let digits = text.as_bytes();
        if digits.len() != 2 * Self::BYTES {
            return Err(BadTaskId);
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

/// One spelling only, so that two texts never name the same task.
fn nibble(digit: u8) -> Result<u8, BadTaskId> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(BadTaskId),
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

impl Principal {
    /// The principal of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The principal of a server without authentication.
    pub fn anonymous() -> Self {
        Self::new("anonymous")
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
            &"G".repeat(32),
            &"AB".repeat(16),
        ] {
            assert_eq!(bad.parse::<TaskId>(), Err(BadTaskId), "{bad}");
        }
    }
}

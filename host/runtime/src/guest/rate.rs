//! So many a second, and no more.

use crate::clock;
use std::time::{Duration, Instant};

/// Counts within windows of one second.
pub(super) struct Rate {
    per_second: u32,
    window: Option<(Instant, u32)>,
}

impl Rate {
    pub(super) fn new(per_second: u32) -> Self {
        Self {
            per_second,
            window: None,
        }
    }

    /// Whether one more is let through now. What is not is counted too.
    pub(super) fn admits(&mut self) -> bool {
        let now = clock::instant();
        let (since, count) = match self.window {
            Some((since, count)) if now.duration_since(since) < Duration::from_secs(1) => {
                (since, count)
            }
            _ => (now, 0),
        };
        self.window = Some((since, count.saturating_add(1)));
        count < self.per_second
    }
}

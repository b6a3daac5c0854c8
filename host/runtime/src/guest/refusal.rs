//! What a run was refused: the first limit it met, and what it wanted that was not granted.
//!
//! The guest learns of it by an error code at most; this is how its caller and the operator learn what happened. It must not
//! know how anything is enforced.

use crate::grants::key_of;
use crate::limits::{Limit, Limits};
use parking_lot::Mutex;
use std::sync::Arc;

/// Denials of one run that are told apart; the caller needs no longer list, and a guest could try for ever.
const DENIALS_MAX: usize = 8;

/// A wish is shown with so many characters; it is the guest's own text.
const WISH_CHARACTERS_MAX: usize = 200;

/// Shared by the parts of a guest, and with requests that are on their way.
#[derive(Clone)]
pub(crate) struct Refusals {
    plugin: Arc<str>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    exceeded: Option<Limit>,
    denials: Vec<Denial>,
}

struct Denial {
    wish: String,
    key: &'static str,
}

impl Refusals {
    pub(crate) fn new(plugin: &str) -> Self {
        Self {
            plugin: plugin.into(),
            seen: Arc::default(),
        }
    }

    /// A limit was met. The guest may go on: most allocators end it, and then the first limit is why.
    pub(crate) fn exceed(&self, limit: Limit) {
        self.seen.lock().exceeded.get_or_insert(limit);
    }

    pub(crate) fn exceeded(&self) -> Option<Limit> {
        self.seen.lock().exceeded
    }

    /// Something was wanted that is not granted. `wish` completes "was denied: ..."; `key` is that of the grants that would
    /// allow it, and `line` what to write there.
    pub(crate) fn deny(&self, wish: &str, key: &'static str, line: &str) {
        let wish: String = wish
            .chars()
            .take(WISH_CHARACTERS_MAX)
            .flat_map(char::escape_debug)
            .collect();
        let mut seen = self.seen.lock();
        let known = seen.denials.iter().any(|denial| denial.wish == wish);
        if known || seen.denials.len() >= DENIALS_MAX {
            return;
        }
        tracing::warn!(
            plugin = %self.plugin,
            "a plugin was denied {wish}; to allow it, write below [plugins.{}.grants]: {line}",
            key_of(&self.plugin),
        );
        seen.denials.push(Denial { wish, key });
    }

    /// What was denied, for the caller; `None` if nothing was.
    pub(crate) fn told(&self) -> Option<String> {
        let seen = self.seen.lock();
        if seen.denials.is_empty() {
            return None;
        }
        let plugin = &self.plugin;
        let tell = |denial: &Denial| {
            format!(
                "The plugin {plugin} was denied {}; the operator can allow it: plugins.{}.grants.{}.",
                denial.wish,
                key_of(plugin),
                denial.key
            )
        };
        let told: Vec<String> = seen.denials.iter().map(tell).collect();
        Some(told.join(" "))
    }
}

impl Refusals {
    /// That a limit was met, for the caller.
    pub(crate) fn told_limit(&self, limit: Limit, limits: &Limits) -> String {
        let (plugin, name, value) = (&self.plugin, limit.name(), limits.value(limit));
        let key = key_of(plugin);
        format!(
            "The plugin {plugin} exceeded its limit {name} = {value}; the operator can raise it: plugins.{key}.limits.{name}."
        )
    }
}

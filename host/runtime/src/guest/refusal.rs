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

/// A line that would allow it is shown with so many characters: longer than any that is of use.
const LINE_CHARACTERS_MAX: usize = 16 << 10;

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
    /// For the caller.
    remedy: String,
}

/// What would allow what was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// A line of the plugin's grants.
    Line { key: &'static str, line: String },
    /// Nothing; but HTTP requests can be granted.
    NoSockets,
}

impl Remedy {
    /// A line that begins with this key.
    pub(crate) fn line(key: &'static str, line: String) -> Self {
        Self::Line { key, line }
    }
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

    /// Something was wanted that is not granted. `wish` completes "was denied: ...".
    pub(crate) fn deny(&self, wish: &str, remedy: Remedy) {
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
        let (plugin, table) = (
            &self.plugin,
            format!("plugins.{}.grants", key_of(&self.plugin)),
        );
        let remedy = match remedy {
            Remedy::Line { key, line } => {
                // Part of it may be the guest's own text, as long as it likes.
                let line: String = line.chars().take(LINE_CHARACTERS_MAX).collect();
                tracing::warn!(%plugin, "a plugin was denied {wish}; to allow it, write below [{table}]: {line}");
                format!("the operator can allow it: {table}.{key}")
            }
            Remedy::NoSockets => {
                tracing::warn!(%plugin, "a plugin was denied {wish}; no grant opens sockets, only hosts for HTTP requests can be granted: {table}.hosts");
                format!("no grant opens sockets, only HTTP requests can be allowed: {table}.hosts")
            }
        };
        seen.denials.push(Denial { wish, remedy });
    }

    /// What was denied, for the caller; `None` if nothing was.
    pub(crate) fn told(&self) -> Option<String> {
        let seen = self.seen.lock();
        if seen.denials.is_empty() {
            return None;
        }
        let plugin = self.plugin.escape_debug();
        let tell = |denial: &Denial| {
            format!(
                "The plugin {plugin} was denied {}; {}.",
                denial.wish, denial.remedy
            )
        };
        let told: Vec<String> = seen.denials.iter().map(tell).collect();
        Some(told.join(" "))
    }
}

impl Refusals {
    /// That a limit was met, for the caller.
    pub(crate) fn told_limit(&self, limit: Limit, limits: &Limits) -> String {
        let (name, value) = (limit.name(), limits.value(limit));
        let (plugin, key) = (self.plugin.escape_debug(), key_of(&self.plugin));
        format!(
            "The plugin {plugin} exceeded its limit {name} = {value}; the operator can raise it: plugins.{key}.limits.{name}."
        )
    }
}

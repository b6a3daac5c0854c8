//! What a run was refused: the first limit it met, and what it wanted that was not granted.
//!
//! The guest learns of it by an error code at most; this is how its caller and the operator learn what happened. It must not
//! know how anything is enforced.

use crate::grants::key_of;
use crate::limits::{Limit, Limits};
use crate::run::Shared;
use parking_lot::Mutex;
use std::sync::Arc;
use tracing::field::display;

/// Denials of one run that are told apart; the caller needs no longer list, and a guest could try for ever.
const DENIALS_MAX: usize = 8;

/// A wish is shown with so many characters; it is the guest's own text.
const WISH_CHARACTERS_MAX: usize = 200;

/// A line that would allow it is shown with so many characters: longer than any that is of use.
const LINE_CHARACTERS_MAX: usize = 16 << 10;

/// Shared by the parts of a guest, and with requests that are on their way.
#[derive(Clone)]
pub(crate) struct Refusals(Arc<Refused>);

struct Refused {
    plugin: String,
    /// Whose run it is.
    shared: Arc<Shared>,
    seen: Mutex<Seen>,
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
    pub(crate) fn new(plugin: &str, shared: &Arc<Shared>) -> Self {
        Self(Arc::new(Refused {
            plugin: plugin.to_owned(),
            shared: shared.clone(),
            seen: Mutex::default(),
        }))
    }

    /// A limit was met. The guest may go on: most allocators end it, and then the first limit is why.
    pub(crate) fn exceed(&self, limit: Limit) {
        self.0.seen.lock().exceeded.get_or_insert(limit);
    }

    pub(crate) fn exceeded(&self) -> Option<Limit> {
        self.0.seen.lock().exceeded
    }

    /// Something was wanted that is not granted. `wish` completes "was denied: ...".
    pub(crate) fn deny(&self, wish: &str, remedy: Remedy) {
        let wish: String = wish
            .chars()
            .take(WISH_CHARACTERS_MAX)
            .flat_map(char::escape_debug)
            .collect();
        let mut seen = self.0.seen.lock();
        let known = seen.denials.iter().any(|denial| denial.wish == wish);
        if known || seen.denials.len() >= DENIALS_MAX {
            return;
        }
        let plugin = &self.0.plugin;
        let table = format!("plugins.{}.grants", key_of(plugin));
        let names = self.0.shared.names();
        let (task, principal) = (names.task.map(display), names.principal.map(display));
        let remedy = match remedy {
            Remedy::Line { key, line } => {
                // Part of it may be the guest's own text, as long as it likes.
                let line: String = line.chars().take(LINE_CHARACTERS_MAX).collect();
                tracing::warn!(%plugin, task, principal, "a plugin was denied {wish}; to allow it, write below [{table}]: {line}");
                format!("the operator can allow it: {table}.{key}")
            }
            Remedy::NoSockets => {
                tracing::warn!(%plugin, task, principal, "a plugin was denied {wish}; no grant opens sockets, only hosts for HTTP requests can be granted: {table}.hosts");
                format!("no grant opens sockets, only HTTP requests can be allowed: {table}.hosts")
            }
        };
        seen.denials.push(Denial { wish, remedy });
    }

    /// What was denied, for the caller; `None` if nothing was.
    pub(crate) fn told(&self) -> Option<String> {
        let seen = self.0.seen.lock();
        if seen.denials.is_empty() {
            return None;
        }
        let plugin = self.0.plugin.escape_debug();
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
        let (plugin, key) = (self.0.plugin.escape_debug(), key_of(&self.0.plugin));
        format!(
            "The plugin {plugin} exceeded its limit {name} = {value}; the operator can raise it: plugins.{key}.limits.{name}."
        )
    }
}

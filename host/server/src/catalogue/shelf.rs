//! Entries of one kind, by the key under which clients ask for them.

use super::offer::LeftOut;
use longshore_runtime::Plugin;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A tool, by name.
    Tool,
    /// A prompt, by name.
    Prompt,
    /// A resource, by URI.
    Resource,
    /// A family of resources, by URI template.
    Template,
}

impl Kind {
    /// The word for one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        }
    }

    /// The method that lists them.
    pub(crate) fn list_method(self) -> &'static str {
        match self {
            Self::Tool => "tools/list",
            Self::Prompt => "prompts/list",
            Self::Resource => "resources/list",
            Self::Template => "resources/templates/list",
        }
    }

    /// The member of that method's result.
    pub(crate) fn list_member(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
        }
    }
}

/// An entry of a list.
pub(crate) trait Entry {
    /// What it is.
    const KIND: Kind;

    /// What clients ask for it by.
    fn key(&self) -> &str;

    /// The plugin that owns it.
    fn plugin(&self) -> &Arc<Plugin>;

    /// Its definition, as JSON in one line.
    fn definition(&self) -> &str;
}

/// Entries of one kind. Their order is that of their list.
#[derive(Debug)]
pub(crate) struct Shelf<E>(BTreeMap<String, Arc<E>>);

impl<E> Default for Shelf<E> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<E: Entry> Shelf<E> {
    /// Put entries in. One whose key is taken is left out.
    pub(super) fn put(&mut self, entries: &[Arc<E>]) {
        for entry in entries {
            match self.0.get(entry.key()) {
                None => {
                    self.0.insert(entry.key().to_owned(), entry.clone());
                }
                Some(winner) => tracing::warn!(
                    name = entry.key(),
                    plugin = %entry.plugin().name,
                    serves = %winner.plugin().name,
                    "a {} is left out: another plugin has one of that name",
                    E::KIND.name()
                ),
            }
        }
    }

    /// Those of these entries whose key another plugin has taken.
    pub(super) fn taken(&self, entries: &[Arc<E>]) -> Vec<LeftOut> {
        let lost = |entry: &&Arc<E>| {
            !self
                .get(entry.key())
                .is_some_and(|kept| Arc::ptr_eq(kept, entry))
        };
        let told = |entry: &Arc<E>| {
            let winner = self
                .get(entry.key())
                .map_or("another", |kept| &kept.plugin().name);
            LeftOut {
                kind: E::KIND.name(),
                name: entry.key().to_owned(),
                reason: format!("the plugin {winner} has one of that name"),
            }
        };
        entries.iter().filter(lost).map(told).collect()
    }

    /// An entry by its key.
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<E>> {
        self.0.get(key)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether its list says the same as another.
    pub(crate) fn lists_the_same(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .iter()
                .zip(other.iter())
                .all(|(one, other)| one.definition() == other.definition())
    }

    /// All, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<E>> {
        self.0.values()
    }

    /// At most `max` entries behind the key, in order, and whether there are more.
    pub(crate) fn page(&self, after: Option<&str>, max: usize) -> (Vec<&Arc<E>>, bool) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = self.0.range::<str, _>((from, Bound::Unbounded));
        let page = rest.by_ref().take(max).map(|(_, entry)| entry).collect();
        (page, rest.next().is_some())
    }
}

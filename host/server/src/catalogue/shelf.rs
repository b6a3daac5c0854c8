//! Entries of one kind, by the key under which clients ask for them.

use super::collision::Collision;
use super::offer::LeftOut;
use longshore_runtime::Plugin;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

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
pub(crate) struct Shelf<E> {
    entries: BTreeMap<String, Arc<E>>,
    print: Print,
    /// What a client is told that asks for the list from its beginning. Made when the first one does: most ask for no more.
    first_page: OnceLock<String>,
}

/// Tells lists apart: a digest of all that a list says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Print(u64);

impl Print {
    /// Its text: 16 hexadecimal digits.
    pub(super) fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

impl<E> Default for Shelf<E> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            print: Print::default(),
            first_page: OnceLock::new(),
        }
    }
}

impl<E: Entry> Shelf<E> {
    /// Put entries in. One whose key is taken is left out, and comes back.
    pub(super) fn put(&mut self, entries: &[Arc<E>]) -> Vec<Collision> {
        let mut lost = Vec::new();
        for entry in entries {
            match self.entries.get(entry.key()) {
                None => {
                    self.entries.insert(entry.key().to_owned(), entry.clone());
                }
                Some(winner) => lost.push(Collision {
                    plugin: entry.plugin().name.clone(),
                    kind: E::KIND.name(),
                    name: entry.key().to_owned(),
                    serves: winner.plugin().name.clone(),
                }),
            }
        }
        lost
    }

    /// All entries are in.
    pub(super) fn seal(&mut self) {
        let mut digest = Sha256::new();
        for entry in self.entries.values() {
            digest.update(entry.definition());
            digest.update(b"\n");
        }
        let digest: [u8; 32] = digest.finalize().into();
        let first: [u8; 8] = std::array::from_fn(|at| digest[at]);
        self.print = Print(u64::from_be_bytes(first));
    }

    /// What the list says, in short.
    pub(crate) fn print(&self) -> Print {
        self.print
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
        self.entries.get(key)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<E>> {
        self.entries.values()
    }

    /// The answer to who asks for the list from its beginning, made once.
    pub(crate) fn first_page(&self, make: impl FnOnce() -> String) -> String {
        self.first_page.get_or_init(make).clone()
    }

    /// The first entries behind the key, in order, and whether there are more. They are at most `max`, with definitions of at most
    /// `bytes_max`; a larger one comes alone.
    pub(crate) fn page(
        &self,
        after: Option<&str>,
        max: usize,
        bytes_max: usize,
    ) -> (Vec<&Arc<E>>, bool) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut page, mut bytes) = (Vec::new(), 0);
        for (_, entry) in self.entries.range::<str, _>((from, Bound::Unbounded)) {
            bytes += entry.definition().len();
            if page.len() == max || (bytes > bytes_max && !page.is_empty()) {
                return (page, true);
            }
            page.push(entry);
        }
        (page, false)
    }
}

//! Entries that are left out because another plugin has one of that name: each is told once, when it is new.
//!
//! It must not know which of two wins.

use std::collections::BTreeSet;

/// New ones that are told one by one; of more only how many: a copy of a plugin may bring a thousand, and `plugin list` has them.
const TOLD_MAX: usize = 20;

/// An entry that is left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Collision {
    /// Whose it is.
    pub(super) plugin: String,
    /// What it is: a tool, for instance.
    pub(super) kind: &'static str,
    /// Its name or URI.
    pub(super) name: String,
    /// The plugin that serves it.
    pub(super) serves: String,
}

/// Tell of those that were not there before.
pub(super) fn tell(now: &BTreeSet<Collision>, before: &BTreeSet<Collision>) {
    let new: Vec<_> = now.difference(before).collect();
    if new.len() > TOLD_MAX {
        let plugins: BTreeSet<_> = new.iter().map(|collision| &collision.plugin).collect();
        let (entries, plugins) = (new.len(), plugins.len());
        let (plugin, name) = (&new[0].plugin, &new[0].name);
        tracing::warn!(
            entries,
            plugins,
            plugin,
            name,
            "many entries are left out, this one among them: other plugins have some of their names; `longshore plugin list` shows all"
        );
        return;
    }
    for collision in new {
        let Collision {
            plugin,
            kind,
            name,
            serves,
        } = collision;
        tracing::warn!(%name, %plugin, %serves, "a {kind} is left out: another plugin has one of that name");
    }
}

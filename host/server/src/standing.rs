//! How the plugins stand: what each serves, and what of it is not served, and why. For those who run the server.
//!
//! It must not know who asks.

use crate::app::App;
use longshore_runtime::{Change, Why};
use serde_json::{Map, Value, json};

/// How much is said of changes that wait for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// A line for each. What a stranger may read.
    Lines,
    /// What it was, and what it would be.
    Whole,
}

/// Plugins that are served, files that are refused, and versions that are withheld.
pub(crate) fn standing(app: &App, detail: Detail) -> Map<String, Value> {
    let (snapshot, catalogue) = (app.runtime.snapshot(), app.catalogue.load());
    let plugins = snapshot.plugins.values().map(|plugin| {
        let mut said = json!({ "name": plugin.name, "version": plugin.version });
        // It is loaded a moment before it is in the catalogue.
        if let Some((counts, left_out)) = catalogue.of_plugin(&plugin.name) {
            for (list, count) in counts {
                said[list] = count.into();
            }
            said["left_out"] = json!(left_out);
        }
        said
    });
    let refused = snapshot.refused.values().map(|refusal| {
        json!({
            "name": refusal.plugin,
            "version": refusal.version,
            "reason": refusal.reason.to_string(),
            "still_serving": refusal.still_serving,
        })
    });
    let withheld = snapshot.withheld.iter().map(|(name, withheld)| {
        let (why, changes) = match &withheld.why {
            Why::RolledBack => ("rolled_back", &[][..]),
            Why::Pinned(changes) => ("pinned", changes.as_slice()),
        };
        json!({
            "name": name,
            "version": withheld.version,
            "why": why,
            "changes": changes.iter().map(|change| told(change, detail)).collect::<Vec<_>>(),
        })
    });
    let mut standing = Map::new();
    standing.insert("plugins".to_owned(), plugins.collect());
    standing.insert("refused".to_owned(), refused.collect());
    standing.insert("withheld".to_owned(), withheld.collect());
    standing
}

fn told(change: &Change, detail: Detail) -> Value {
    match detail {
        Detail::Lines => change.to_string().into(),
        Detail::Whole => json!({
            "what": change.to_string(),
            "before": change.before,
            "after": change.after,
        }),
    }
}

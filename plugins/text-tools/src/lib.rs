//! Tools for texts: measure, slugify, compare. All of them answer at once.

mod diff;
mod slug;
mod stats;

use longshore_plugin::{Json, Result, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Measures a text: characters, words, sentences, lines, and how long a person needs to read it.
#[derive(Deserialize, JsonSchema)]
struct TextStats {
    /// The text to measure.
    text: String,
}

fn text_stats(args: TextStats) -> Json<stats::Stats> {
    Json(stats::measure(&args.text))
}

/// Turns a title into a slug for an address or a file name: "Über uns!" becomes "ueber-uns".
#[derive(Deserialize, JsonSchema)]
struct Slugify {
    /// The title.
    title: String,
    /// At most this many characters; cut at a word.
    #[schemars(range(min = 1, max = 200))]
    max_length: Option<usize>,
}

fn slugify(args: Slugify) -> String {
    slug::slug(&args.title, args.max_length.unwrap_or(80))
}

/// Compares two texts line by line. Returns a unified diff, and how many lines were added and removed.
#[derive(Deserialize, JsonSchema)]
struct DiffTexts {
    /// The text before.
    before: String,
    /// The text after.
    after: String,
    /// How many equal lines to show around a change; 3 if nothing is said.
    #[schemars(range(max = 20))]
    context: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct Diff {
    /// Empty if the texts are equal.
    diff: String,
    added: usize,
    removed: usize,
}

fn diff_texts(args: DiffTexts) -> Result<Json<Diff>> {
    let edits = diff::edits(&args.before, &args.after)?;
    Ok(Json(Diff {
        diff: diff::unified(&edits, args.context.unwrap_or(3)),
        added: edits
            .iter()
            .filter(|edit| edit.change == diff::Change::Added)
            .count(),
        removed: edits
            .iter()
            .filter(|edit| edit.change == diff::Change::Removed)
            .count(),
    }))
}

longshore_plugin::plugin! {
    tools: [
        tool("text_stats", text_stats).title("Measure a text").read_only(),
        tool("slugify", slugify).title("Make a slug").read_only(),
        tool("diff_texts", diff_texts).title("Compare two texts").read_only(),
    ]
}

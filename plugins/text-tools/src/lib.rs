//! Tools for texts.
use longshore_plugin::{Json, Result, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts the words of a text.
#[derive(Deserialize, JsonSchema)]
struct CountWords {
    /// The text to look at.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Count {
    words: usize,
}

fn count_words(args: CountWords) -> Result<Json<Count>> {
    Ok(Json(Count {
        words: args.text.split_whitespace().count(),
    }))
}

longshore_plugin::plugin! { tools: [tool("count_words", count_words)] }

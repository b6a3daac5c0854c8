//! Measures of a text.

use schemars::JsonSchema;
use serde::Serialize;

/// How fast an adult reads prose.
const WORDS_PER_MINUTE: usize = 230;

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Stats {
    characters: usize,
    words: usize,
    sentences: usize,
    lines: usize,
    /// Time to read it, in whole seconds.
    reading_time_seconds: usize,
}

pub(crate) fn measure(text: &str) -> Stats {
    let words = text.split_whitespace().count();
    Stats {
        characters: text.chars().count(),
        words,
        sentences: sentences(text),
        lines: text.lines().count(),
        reading_time_seconds: (words * 60).div_ceil(WORDS_PER_MINUTE),
    }
}

/// A sentence ends where a word ends in a mark; what is left over is one more.
fn sentences(text: &str) -> usize {
    let mut count = 0;
    let mut open = false;
    for word in text.split_whitespace() {
        let bare = word.trim_end_matches(['"', '\'', ')', '”', '’', '»']);
        open = !bare.ends_with(['.', '!', '?', '…']);
        count += usize::from(!open);
    }
    count + usize::from(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_measured() {
        let stats = measure("It costs 3.50 (“really!”). Why?\nNobody knows");
        assert_eq!((stats.words, stats.sentences, stats.lines), (7, 3, 2));
        assert_eq!(stats.reading_time_seconds, 2);
    }

    #[test]
    fn nothing_is_nothing() {
        let stats = measure("");
        assert_eq!(
            (stats.characters, stats.words, stats.sentences, stats.lines),
            (0, 0, 0, 0)
        );
    }
}

//! The difference of two texts, by lines.

use std::fmt;
use std::fmt::Write as _;

/// Most pairs of changed lines that are compared: 16 MiB of table.
const PAIRS_MAX: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Kept,
    Removed,
    Added,
}

/// One line of the way from one text to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit<'a> {
    pub(crate) change: Change,
    line: &'a str,
}

/// The texts differ in too many lines.
#[derive(Debug)]
pub(crate) struct TooDifferent {
    pairs: usize,
}

impl fmt::Display for TooDifferent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the texts are too different: {} pairs of lines to compare, at most {PAIRS_MAX}; compare parts of them",
            self.pairs
        )
    }
}

impl std::error::Error for TooDifferent {}

/// The shortest way from `before` to `after`.
pub(crate) fn edits<'a>(before: &'a str, after: &'a str) -> Result<Vec<Edit<'a>>, TooDifferent> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    let (old_core, new_core) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let kept = |line: &&'a str| Edit {
        change: Change::Kept,
        line,
    };
    let mut edits: Vec<_> = old[..head].iter().map(kept).collect();
    edits.extend(core_edits(old_core, new_core)?);
    edits.extend(old[old.len() - tail..].iter().map(kept));
    Ok(edits)
}

/// By the longest common subsequence, from a table of its lengths.
fn core_edits<'a>(old: &[&'a str], new: &[&'a str]) -> Result<Vec<Edit<'a>>, TooDifferent> {
    let pairs = (old.len() + 1).saturating_mul(new.len() + 1);
    if pairs > PAIRS_MAX {
        return Err(TooDifferent { pairs });
    }
    let width = new.len() + 1;
    let mut common = vec![0u32; pairs];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut edits) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        let removing = j == new.len()
            || (i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]);
        if i < old.len() && j < new.len() && old[i] == new[j] {
            edits.push(Edit {
                change: Change::Kept,
                line: old[i],
            });
            (i, j) = (i + 1, j + 1);
        } else if removing {
            edits.push(Edit {
                change: Change::Removed,
                line: old[i],
            });
            i += 1;
        } else {
            edits.push(Edit {
                change: Change::Added,
                line: new[j],
            });
            j += 1;
        }
    }
    Ok(edits)
}

/// A unified diff with `context` equal lines around each change; empty if there is none.
pub(crate) fn unified(edits: &[Edit<'_>], context: usize) -> String {
    let mut text = String::new();
    let (mut at, mut old_line, mut new_line) = (0, 1, 1);
    while let Some((start, end)) = hunk(edits, at, context) {
        let skipped = start - at;
        (old_line, new_line) = (old_line + skipped, new_line + skipped);
        let lines = |gone: Change| {
            edits[start..end]
                .iter()
                .filter(|e| e.change != gone)
                .count()
        };
        let (old_count, new_count) = (lines(Change::Added), lines(Change::Removed));
        // A side without lines is placed after the line before it.
        let first = |line: usize, count: usize| line - usize::from(count == 0);
        let (old_first, new_first) = (first(old_line, old_count), first(new_line, new_count));
        let _ = writeln!(
            text,
            "@@ -{old_first},{old_count} +{new_first},{new_count} @@"
        );
        for edit in &edits[start..end] {
            let mark = match edit.change {
                Change::Kept => ' ',
                Change::Removed => '-',
                Change::Added => '+',
            };
            let _ = writeln!(text, "{mark}{}", edit.line);
        }
        (at, old_line, new_line) = (end, old_line + old_count, new_line + new_count);
    }
    text
}

/// Where the next run of near changes starts and ends, at or after `from`.
fn hunk(edits: &[Edit<'_>], from: usize, context: usize) -> Option<(usize, usize)> {
    let changed = |edit: &Edit<'_>| edit.change != Change::Kept;
    let first = from + edits[from..].iter().position(changed)?;
    let mut last = first;
    for (place, edit) in edits.iter().enumerate().skip(first) {
        if place - last > 2 * context + 1 {
            break;
        }
        if changed(edit) {
            last = place;
        }
    }
    Some((
        first.saturating_sub(context).max(from),
        (last + 1 + context).min(edits.len()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, after: &str) -> String {
        unified(&edits(before, after).unwrap(), 1)
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(diff("a\nb\n", "a\nb\n"), "");
    }

    #[test]
    fn near_changes_share_a_hunk_and_far_ones_do_not() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = "1\nzwei\n3\n4\n5\n6\n7\n9\nten\n";
        let expected = "@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3\n@@ -7,3 +7,3 @@\n 7\n-8\n 9\n+ten\n";
        assert_eq!(diff(before, after), expected);
    }

    #[test]
    fn a_side_may_be_empty() {
        assert_eq!(diff("", "a\n"), "@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(diff("a\n", ""), "@@ -1,1 +0,0 @@\n-a\n");
    }

    #[test]
    fn too_much_is_refused() {
        let many = |word: &str| {
            (0..3000)
                .map(|n| format!("{word} {n}\n"))
                .collect::<String>()
        };
        assert!(edits(&many("a"), &many("b")).is_err());
    }
}

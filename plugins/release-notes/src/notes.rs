//! The notes as Markdown.

use crate::commit::{Commit, Kind};
use crate::version::Version;
use std::fmt::Write as _;

const SECTIONS: [(Kind, &str); 5] = [
    (Kind::Feature, "New"),
    (Kind::Fix, "Fixed"),
    (Kind::Speed, "Faster"),
    (Kind::Other, "Other changes"),
    (Kind::Internal, "Internal"),
];

/// What breaks comes first, whatever else it is. Internal changes are left out unless asked for.
pub(crate) fn markdown(
    project: &str,
    version: Version,
    introduction: &str,
    commits: &[Commit],
    internal: bool,
) -> String {
    let mut text = format!("# {project} {version}\n");
    if !introduction.is_empty() {
        let _ = write!(text, "\n{introduction}\n");
    }
    let breaking: Vec<_> = commits.iter().filter(|commit| commit.breaking).collect();
    section(&mut text, "Breaking changes", &breaking);
    for (kind, title) in SECTIONS {
        if kind == Kind::Internal && !internal {
            continue;
        }
        let of_kind = |commit: &&Commit| commit.kind == kind && !commit.breaking;
        section(
            &mut text,
            title,
            &commits.iter().filter(of_kind).collect::<Vec<_>>(),
        );
    }
    text
}

fn section(text: &mut String, title: &str, commits: &[&Commit]) {
    if commits.is_empty() {
        return;
    }
    let _ = write!(text, "\n## {title}\n\n");
    for commit in commits {
        let _ = match &commit.scope {
            Some(scope) => writeln!(text, "- **{scope}**: {}", commit.subject),
            None => writeln!(text, "- {}", commit.subject),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_sorted_by_what_matters() {
        let messages = ["fix(api): b", "chore: c", "feat!: a", "feat: d"];
        let commits: Vec<_> = messages.iter().map(|text| Commit::parse(text)).collect();
        let version = "2.0.0".parse().unwrap();
        let expected = "# Dock 2.0.0\n\nHello.\n\n## Breaking changes\n\n- a\n\n## New\n\n- d\n\n## Fixed\n\n- **api**: b\n";
        assert_eq!(
            markdown("Dock", version, "Hello.", &commits, false),
            expected
        );
        assert!(markdown("Dock", version, "", &commits, true).ends_with("## Internal\n\n- c\n"));
    }
}

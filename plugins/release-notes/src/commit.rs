//! Commit messages, read by the rules of Conventional Commits.

/// What a commit is about. The order is that of the notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Feature,
    Fix,
    Speed,
    Other,
    Internal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) kind: Kind,
    pub(crate) scope: Option<String>,
    pub(crate) subject: String,
    pub(crate) breaking: bool,
}

impl Commit {
    /// A message that follows no rule is taken as it stands.
    pub(crate) fn parse(message: &str) -> Self {
        let first = message.lines().next().unwrap_or_default().trim();
        let footer = message.lines().skip(1).any(|line| {
            line.starts_with("BREAKING CHANGE:") || line.starts_with("BREAKING-CHANGE:")
        });
        let plain = Self {
            kind: Kind::Other,
            scope: None,
            subject: first.into(),
            breaking: footer,
        };
        let Some((head, subject)) = first.split_once(": ") else {
            return plain;
        };
        let (head, bang) = match head.strip_suffix('!') {
            Some(head) => (head, true),
            None => (head, false),
        };
        let (word, scope) = match head.strip_suffix(')').and_then(|head| head.split_once('(')) {
            Some((word, scope)) => (word, Some(scope.to_owned())),
            None => (head, None),
        };
        let kind = match word.to_ascii_lowercase().as_str() {
            "feat" | "feature" => Kind::Feature,
            "fix" => Kind::Fix,
            "perf" => Kind::Speed,
            "build" | "chore" | "ci" | "docs" | "refactor" | "style" | "test" => Kind::Internal,
            _ => return plain,
        };
        Self {
            kind,
            scope,
            subject: subject.trim().into(),
            breaking: bang || footer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        let read = |text| {
            let commit = Commit::parse(text);
            (commit.kind, commit.scope, commit.subject, commit.breaking)
        };
        assert_eq!(read("feat: a"), (Kind::Feature, None, "a".into(), false));
        assert_eq!(
            read("fix(api)!: b"),
            (Kind::Fix, Some("api".into()), "b".into(), true)
        );
        assert_eq!(
            read("chore: c\n\nBREAKING CHANGE: all of it"),
            (Kind::Internal, None, "c".into(), true)
        );
        assert_eq!(
            read("Merge: x"),
            (Kind::Other, None, "Merge: x".into(), false)
        );
        assert_eq!(read(""), (Kind::Other, None, String::new(), false));
    }
}

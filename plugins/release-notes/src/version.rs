//! Versions of the form 1.2.3, and how they grow.

use crate::commit::{Commit, Kind};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    major: u64,
    minor: u64,
    patch: u64,
}

/// How much a version grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Bump {
    /// Patch: only fixes
    Patch,
    /// Minor: something new
    Minor,
    /// Major: something breaks
    Major,
}

impl Bump {
    /// What the commits ask for.
    pub(crate) fn for_commits(commits: &[Commit]) -> Self {
        if commits.iter().any(|commit| commit.breaking) {
            Self::Major
        } else if commits.iter().any(|commit| commit.kind == Kind::Feature) {
            Self::Minor
        } else {
            Self::Patch
        }
    }
}

impl fmt::Display for Bump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        })
    }
}

impl Version {
    pub(crate) fn bumped(self, bump: Bump) -> Self {
        match bump {
            Bump::Patch => Self {
                patch: self.patch.saturating_add(1),
                ..self
            },
            Bump::Minor => Self {
                minor: self.minor.saturating_add(1),
                patch: 0,
                ..self
            },
            Bump::Major => Self {
                major: self.major.saturating_add(1),
                minor: 0,
                patch: 0,
            },
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A text that is no version.
#[derive(Debug)]
pub(crate) struct NoVersion(String);

impl fmt::Display for NoVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no version; write it as in \"1.4.2\"", self.0)
    }
}

impl std::error::Error for NoVersion {}

impl FromStr for Version {
    type Err = NoVersion;

    fn from_str(text: &str) -> Result<Self, NoVersion> {
        let numbers: Option<Vec<u64>> = text
            .trim()
            .trim_start_matches('v')
            .split('.')
            .map(|part| part.parse().ok())
            .collect();
        match numbers.as_deref() {
            Some(&[major, minor, patch]) => Ok(Self {
                major,
                minor,
                patch,
            }),
            _ => Err(NoVersion(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_grow() {
        let version: Version = "v1.4.2".parse().unwrap();
        let grown = [Bump::Patch, Bump::Minor, Bump::Major].map(|b| version.bumped(b).to_string());
        assert_eq!(grown, ["1.4.3", "1.5.0", "2.0.0"]);
        assert!("1.4".parse::<Version>().is_err());
        assert!("1.4.x".parse::<Version>().is_err());
    }

    #[test]
    fn commits_ask_for_a_bump() {
        let bump = |messages: &[&str]| {
            Bump::for_commits(
                &messages
                    .iter()
                    .map(|m| Commit::parse(m))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(bump(&["fix: a", "docs: b"]), Bump::Patch);
        assert_eq!(bump(&["fix: a", "feat: b"]), Bump::Minor);
        assert_eq!(bump(&["feat: b", "fix!: a"]), Bump::Major);
    }
}

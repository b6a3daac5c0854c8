//! Owns the list of scenarios in `tests/conformance/scenarios.txt`: its form, and whether it is
//! complete. Must not know how a scenario is run.

use anyhow::{Context, Result, ensure};

/// The tag of scenarios that know their wire.
const EXTENSION: &str = "extension";

/// The one wire of the suite that the host does not serve. A tag that is not known yet needs a decision, so it is missing.
const NOT_SERVED: &str = "2025-03-26";

/// What is expected of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Every check succeeds.
    Pass,
    /// The suite checks nothing; as soon as it does, it must pass.
    Mute,
    /// It is not run.
    Out,
}

/// A scenario of the suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// The revision whose wire it speaks; none if the scenario knows.
    pub(crate) wire: Option<String>,
    pub(crate) expected: Expected,
}

impl Scenario {
    /// `NAME` or `NAME@WIRE`: its word in the list, and the name of the folder for its results.
    pub(crate) fn word(&self) -> String {
        match &self.wire {
            Some(wire) => format!("{}@{wire}", self.name),
            None => self.name.clone(),
        }
    }

    fn parse(word: &str, expected: Expected) -> Self {
        let (name, wire) = match word.split_once('@') {
            Some((name, wire)) => (name, Some(wire.to_owned())),
            None => (word, None),
        };
        Self {
            name: name.to_owned(),
            wire,
            expected,
        }
    }
}

/// Read the list.
///
/// # Errors
/// Names the line that is not understood.
pub(crate) fn parse(text: &str) -> Result<Vec<Scenario>> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let scenario = line_of(line).with_context(|| format!("scenarios.txt:{}", index + 1))?;
        if let Some(scenario) = scenario {
            let again = scenarios.contains(&scenario);
            ensure!(!again, "scenarios.txt:{}: listed twice", index + 1);
            scenarios.push(scenario);
        }
    }
    Ok(scenarios)
}

fn line_of(line: &str) -> Result<Option<Scenario>> {
    let (entry, reason) = match line.split_once('#') {
        Some((entry, reason)) => (entry.trim(), reason.trim()),
        None => (line.trim(), ""),
    };
    if entry.is_empty() {
        return Ok(None);
    }
    let (expected, word) = entry.split_once(' ').context("expected `WORD NAME`")?;
    let expected = match expected {
        "pass" => Expected::Pass,
        "mute" => Expected::Mute,
        "out" => Expected::Out,
        other => anyhow::bail!("{other:?} is none of pass, mute, out"),
    };
    ensure!(
        expected == Expected::Pass || !reason.is_empty(),
        "{word} is left out without a reason"
    );
    Ok(Some(Scenario::parse(word.trim(), expected)))
}

/// Those to run: all that are not out, or the named ones, `NAME` or `NAME@WIRE`. A named one is
/// run even if it is out or unknown here, and must pass.
pub(crate) fn chosen(list: &[Scenario], names: &[String]) -> Vec<Scenario> {
    if names.is_empty() {
        let wanted = |scenario: &&Scenario| scenario.expected != Expected::Out;
        return list.iter().filter(wanted).cloned().collect();
    }
    let find = |word: &String| {
        let named = Scenario::parse(word, Expected::Pass);
        let listed = list.iter().find(|listed| {
            listed.name == named.name && (named.wire.is_none() || named.wire == listed.wire)
        });
        match listed {
            Some(listed) if listed.expected == Expected::Mute => listed.clone(),
            Some(listed) => Scenario {
                expected: Expected::Pass,
                ..listed.clone()
            },
            None => named,
        }
    };
    names.iter().map(find).collect()
}

/// What is missing here of the suite's own list, lines of `  - NAME [TAG,TAG]`: each scenario on each wire that it is tagged with,
/// as `NAME@WIRE`.
///
/// # Errors
/// If the suite lists nothing in this form.
pub(crate) fn missing(list: &[Scenario], suite: &str) -> Result<Vec<String>> {
    let lines = suite.lines();
    let listed: Vec<(&str, &str)> = lines
        .filter_map(|line| line.trim().strip_prefix("- ")?.split_once(' '))
        .collect();
    ensure!(
        !listed.is_empty(),
        "the suite lists no scenarios in the form that is known here"
    );
    let words = listed.into_iter().flat_map(|(name, tags)| {
        let tags = tags.trim_matches(['[', ']']).split(',');
        tags.filter(|tag| *tag != NOT_SERVED)
            .map(move |tag| match tag {
                EXTENSION => name.to_owned(),
                wire => format!("{name}@{wire}"),
            })
    });
    let is_known = |word: &String| list.iter().any(|known| known.word() == *word);
    Ok(words.filter(|word| !is_known(word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_in_the_tree_is_well_formed() {
        let list = parse(include_str!("../../tests/conformance/scenarios.txt")).unwrap();
        assert!(list.iter().any(|known| known.name == "tasks-lifecycle"));
    }

    #[test]
    fn what_is_left_out_has_a_reason_and_nothing_stands_twice() {
        assert!(parse("out prompts-list@2026-07-28").is_err());
        assert!(parse("out prompts-list@2026-07-28  # prompts").is_ok());
        assert!(parse("pass a\npass a").is_err());
        assert!(parse("may a").is_err());
    }

    #[test]
    fn a_named_scenario_is_run_on_its_wire_and_must_pass() {
        let list = parse("pass a@2026-07-28\nout b  # later\nmute c  # never").unwrap();
        let all: Vec<_> = chosen(&list, &[]).into_iter().map(|one| one.name).collect();
        assert_eq!(all, ["a", "c"]);
        let named = chosen(&list, &["b".into(), "a".into(), "d@2025-11-25".into()]);
        assert_eq!(named[0].expected, Expected::Pass);
        assert_eq!(named[1].wire.as_deref(), Some("2026-07-28"));
        assert_eq!(named[2].wire.as_deref(), Some("2025-11-25"));
    }

    #[test]
    fn a_scenario_that_the_suite_gained_is_noticed() {
        let list = parse("pass a@2026-07-28\npass b@2025-06-18\npass e").unwrap();
        let suite = "Server scenarios (test against a server):
  - a [2025-06-18,2025-11-25,2026-07-28]
  - b [2025-03-26,2025-06-18]
  - c [2025-03-26]
  - d [extension]
  - e [extension]
  - f [2027-01-01]";
        let found = missing(&list, suite).unwrap();
        assert_eq!(found, ["a@2025-06-18", "a@2025-11-25", "d", "f@2027-01-01"]);
        assert!(missing(&list, "Server scenarios:").is_err());
    }
}

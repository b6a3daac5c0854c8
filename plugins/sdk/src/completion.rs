//! Suggestions while a user types an argument of a prompt, or a variable of a template.

use crate::contract::completions::exports::longshore::plugin::completions as contract;
use contract::CompletionTarget;
use std::fmt;

/// Suggestions that are sent at once: as many as the protocol takes.
const VALUES_MAX: usize = 100;

/// What a user has typed so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Typed {
    /// The beginning of the argument.
    pub value: String,
    /// What other arguments hold already: name and value.
    pub known: Vec<(String, String)>,
}

impl Typed {
    /// What another argument holds.
    pub fn known(&self, argument: &str) -> Option<&str> {
        let mut known = self.known.iter();
        let found = known.find(|(name, _)| name == argument);
        found.map(|(_, value)| value.as_str())
    }
}

/// Suggests values, best first.
type Suggest = Box<dyn Fn(&Typed) -> Vec<String>>;

/// What suggests values for one argument. Made by [`complete_prompt`] and [`complete_template`].
pub struct Completer {
    target: CompletionTarget,
    argument: String,
    suggest: Suggest,
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completer")
            .field("target", &self.target)
            .field("argument", &self.argument)
            .finish_non_exhaustive()
    }
}

/// Suggests values for an argument of the prompt `prompt`, best first.
pub fn complete_prompt<V: IntoIterator<Item: Into<String>>>(
    prompt: &str,
    argument: &str,
    suggest: impl Fn(&Typed) -> V + 'static,
) -> Completer {
    completer(CompletionTarget::Prompt(prompt.into()), argument, suggest)
}

/// Suggests values for a variable of the template `uri_template`, best first.
pub fn complete_template<V: IntoIterator<Item: Into<String>>>(
    uri_template: &str,
    variable: &str,
    suggest: impl Fn(&Typed) -> V + 'static,
) -> Completer {
    completer(
        CompletionTarget::ResourceTemplate(uri_template.into()),
        variable,
        suggest,
    )
}

fn completer<V: IntoIterator<Item: Into<String>>>(
    target: CompletionTarget,
    argument: &str,
    suggest: impl Fn(&Typed) -> V + 'static,
) -> Completer {
    Completer {
        target,
        argument: argument.into(),
        suggest: Box::new(move |typed| suggest(typed).into_iter().map(Into::into).collect()),
    }
}

/// Suggests; what [`plugin!`](crate::plugin) does. For an argument that has no completer there is nothing to suggest.
pub fn complete(
    completers: &[Completer],
    target: &CompletionTarget,
    argument: &str,
    typed: &Typed,
) -> contract::Completion {
    let meant =
        |completer: &&Completer| completer.target == *target && completer.argument == argument;
    let mut values = completers
        .iter()
        .find(meant)
        .map(|completer| (completer.suggest)(typed))
        .unwrap_or_default();
    let total = values.len();
    values.truncate(VALUES_MAX);
    contract::Completion {
        values,
        total: u32::try_from(total).ok(),
        has_more: total > VALUES_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(value: &str) -> Typed {
        Typed {
            value: value.into(),
            known: vec![("year".into(), "2026".into())],
        }
    }

    #[test]
    fn the_completer_of_the_argument_is_asked() {
        let months = |typed: &Typed| {
            vec![format!(
                "{}-{}",
                typed.known("year").unwrap_or("?"),
                typed.value
            )]
        };
        let completers = [complete_template("n://{year}/{month}", "month", months)];
        let target = CompletionTarget::ResourceTemplate("n://{year}/{month}".into());
        assert_eq!(
            complete(&completers, &target, "month", &typed("0")).values,
            ["2026-0"]
        );
        assert_eq!(
            complete(&completers, &target, "year", &typed("0")).total,
            Some(0)
        );
        let other = CompletionTarget::Prompt("month".into());
        assert!(
            complete(&completers, &other, "month", &typed("0"))
                .values
                .is_empty()
        );
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let many = |_: &Typed| (0..250).map(|number| number.to_string());
        let completers = [complete_prompt("p", "a", many)];
        let target = CompletionTarget::Prompt("p".into());
        let found = complete(&completers, &target, "a", &typed(""));
        assert_eq!(
            (found.values.len(), found.total, found.has_more),
            (100, Some(250), true)
        );
    }
}

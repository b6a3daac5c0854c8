//! What a client wants to hear of: the params of `subscriptions/listen`.

use super::hub::Mark;
use crate::members::Members;
use crate::wire::WireError;
use longshore_tasks::TaskId;
use std::collections::BTreeSet;

/// Resources, and tasks, that one stream may follow: each costs a mark, and at the start a look.
pub(crate) const ENTRIES_MAX: usize = 256;

/// What is wanted, as it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Changes of the list of tools.
    pub(crate) tools: bool,
    /// Of prompts.
    pub(crate) prompts: bool,
    /// Of resources.
    pub(crate) resources: bool,
    /// URIs, each once; `None`: nothing is said of them.
    pub(crate) resource_subscriptions: Option<Vec<String>>,
    /// Ids, each once; `None`: nothing is said of them.
    pub(crate) task_ids: Option<Vec<String>>,
}

/// What of it is granted, beside the lists, which always are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Honoured {
    /// Resources, in the order asked.
    pub(crate) uris: Vec<String>,
    /// Tasks, in the order asked.
    pub(crate) tasks: Vec<TaskId>,
}

impl Filter {
    /// Read it.
    ///
    /// # Errors
    /// -32602, naming the member. Members that are not known are left out.
    pub(crate) fn read(notifications: &Members) -> Result<Self, WireError> {
        Ok(Self {
            tools: flag(notifications, "toolsListChanged")?,
            prompts: flag(notifications, "promptsListChanged")?,
            resources: flag(notifications, "resourcesListChanged")?,
            resource_subscriptions: strings(notifications, "resourceSubscriptions")?,
            task_ids: strings(notifications, "taskIds")?,
        })
    }

    /// The resources.
    pub(crate) fn uris(&self) -> &[String] {
        self.resource_subscriptions.as_deref().unwrap_or_default()
    }

    /// The tasks. A text that is no id is the id of no task.
    pub(crate) fn task_ids(&self) -> impl Iterator<Item = TaskId> {
        let ids = self.task_ids.as_deref().unwrap_or_default();
        ids.iter().filter_map(|id| id.parse().ok())
    }

    /// All that may be heard of.
    pub(crate) fn marks(&self) -> BTreeSet<Mark> {
        let lists = [
            (self.tools, Mark::Tools),
            (self.prompts, Mark::Prompts),
            (self.resources, Mark::Resources),
        ];
        let lists = lists
            .into_iter()
            .filter_map(|(wanted, mark)| wanted.then_some(mark));
        let uris = self.uris().iter().cloned().map(Mark::Resource);
        lists
            .chain(uris)
            .chain(self.task_ids().map(Mark::Task))
            .collect()
    }
}

fn must_be(name: &str, kind: &str) -> WireError {
    WireError::invalid_params(format!("params.notifications.{name} must be {kind}"))
}

fn flag(notifications: &Members, name: &str) -> Result<bool, WireError> {
    let Some(value) = notifications.get(name) else {
        return Ok(false);
    };
    serde_json::from_str(value.get()).map_err(|_| must_be(name, "true or false"))
}

fn strings(notifications: &Members, name: &str) -> Result<Option<Vec<String>>, WireError> {
    let Some(value) = notifications.get(name) else {
        return Ok(None);
    };
    let mut strings: Vec<String> =
        serde_json::from_str(value.get()).map_err(|_| must_be(name, "an array of strings"))?;
    if strings.len() > ENTRIES_MAX {
        let kind =
            format!("an array of at most {ENTRIES_MAX} strings; open another stream for more");
        return Err(must_be(name, &kind));
    }
    let mut seen = BTreeSet::new();
    strings.retain(|string| seen.insert(string.clone()));
    Ok(Some(strings))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Filter, i32> {
        Filter::read(&Members::parse(text).unwrap()).map_err(|error| error.code)
    }

    #[test]
    fn what_is_not_asked_is_not_wanted() {
        assert_eq!(read("{}"), Ok(Filter::default()));
        let asked = read(r#"{"toolsListChanged":true,"promptsListChanged":false,"x":1,"resourceSubscriptions":["a:b","a:b"],"taskIds":["junk"]}"#).unwrap();
        assert!(asked.tools && !asked.prompts && !asked.resources);
        assert_eq!(asked.uris(), ["a:b"]);
        assert_eq!(asked.task_ids().count(), 0);
        assert_eq!(asked.marks().len(), 2);
    }

    #[test]
    fn other_shapes_are_refused() {
        let many = format!(r#"{{"taskIds":[{}"a"]}}"#, "\"a\",".repeat(ENTRIES_MAX));
        for text in [
            r#"{"toolsListChanged":1}"#,
            r#"{"resourcesListChanged":null}"#,
            r#"{"resourceSubscriptions":"a:b"}"#,
            r#"{"taskIds":[1]}"#,
            r#"{"taskIds":null}"#,
            many.as_str(),
        ] {
            assert_eq!(read(text), Err(-32602), "{text:.60}");
        }
    }
}

//! What a plugin says of itself to models, and how two versions differ in it: tools, prompts and templates of resources. Lists of
//! resources are data, and change as it does. And what of an operator's grants it could use, for those were given to the former.
//!
//! It must not know what follows from a difference.

use crate::plugin::Plugin;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// Members that are JSON as text.
const TEXTS: [&str; 3] = ["input_schema", "output_schema", "meta"];

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What it is of: a tool, for instance, or `use of` what can be granted.
    pub kind: &'static str,
    /// Its name, or URI template; what is used.
    pub name: String,
    /// Which member of it; none if all of it came or went.
    pub member: Option<String>,
    /// What it was.
    pub before: Value,
    /// What it is.
    pub after: Value,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, .. } = self;
        match &self.member {
            Some(member) => write!(f, "{member} of the {kind} {name}"),
            None if self.before.is_null() => write!(f, "the new {kind} {name}"),
            None => write!(f, "the {kind} {name} is gone"),
        }
    }
}

/// How a newer version differs.
pub(crate) fn compare(former: &Plugin, newer: &Plugin) -> Vec<Change> {
    let mut changes = Vec::new();
    let (before, after) = (tools(former), tools(newer));
    compare_kind("tool", &before, &after, &mut changes);
    let (before, after) = (prompts(former), prompts(newer));
    compare_kind("prompt", &before, &after, &mut changes);
    let (before, after) = (templates(former), templates(newer));
    compare_kind("resource template", &before, &after, &mut changes);
    let (before, after) = (uses(former), uses(newer));
    compare_kind("use of", &before, &after, &mut changes);
    changes
}

type Definitions = BTreeMap<String, Map<String, Value>>;

fn tools(plugin: &Plugin) -> Definitions {
    let named = plugin.tools.iter().map(|tool| (&tool.name, members(tool)));
    definitions(named)
}

fn prompts(plugin: &Plugin) -> Definitions {
    let named = plugin.prompts.iter();
    definitions(named.map(|prompt| (&prompt.name, members(prompt))))
}

fn templates(plugin: &Plugin) -> Definitions {
    let named = plugin.templates.iter();
    definitions(named.map(|template| (&template.uri_template, members(template))))
}

fn uses(plugin: &Plugin) -> Definitions {
    let used = plugin.wants.named().into_iter().filter(|(_, used)| *used);
    used.map(|(name, _)| (name.to_owned(), Map::new()))
        .collect()
}

/// Of two with one name the first counts, as everywhere.
fn definitions<'a>(named: impl Iterator<Item = (&'a String, Map<String, Value>)>) -> Definitions {
    let mut definitions = Definitions::new();
    for (name, members) in named {
        definitions.entry(name.clone()).or_insert(members);
    }
    definitions
}

fn members(definition: &impl Serialize) -> Map<String, Value> {
    // Records of the contract are always objects.
    let Ok(Value::Object(mut members)) = serde_json::to_value(definition) else {
        return Map::new();
    };
    for name in TEXTS {
        if let Some(member) = members.get_mut(name)
            && let Some(parsed) = member
                .as_str()
                .and_then(|text| serde_json::from_str(text).ok())
        {
            *member = parsed;
        }
    }
    members
}

fn compare_kind(
    kind: &'static str,
    before: &Definitions,
    after: &Definitions,
    changes: &mut Vec<Change>,
) {
    let change = |name: &String, member: Option<&String>, before: Value, after: Value| Change {
        kind,
        name: name.clone(),
        member: member.cloned(),
        before,
        after,
    };
    for (name, former) in before {
        let Some(newer) = after.get(name) else {
            changes.push(change(name, None, former.clone().into(), Value::Null));
            continue;
        };
        // Both are of one type, so they have the same members.
        for (member, now) in newer {
            let was = former.get(member).unwrap_or(&Value::Null);
            if was != now {
                changes.push(change(name, Some(member), was.clone(), now.clone()));
            }
        }
    }
    let new = after.iter().filter(|(name, _)| !before.contains_key(*name));
    changes.extend(new.map(|(name, newer)| change(name, None, Value::Null, newer.clone().into())));
}

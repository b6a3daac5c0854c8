//! Arbitrary definitions.

use crate::contents::{annotations, icon};
use crate::contract::exports::longshore::plugin::{prompts, resources, tools};
use crate::dice::Dice;
use crate::{KNOWN, KNOWN_URI};
use prompts::{Prompt, PromptArgument};
use resources::{ResourceEntry, ResourceTemplate};
use tools::{TaskSupport, Tool, ToolAnnotations};

/// Entries of a list.
const ENTRIES_MAX: usize = 8;

pub(crate) fn tools(dice: &mut Dice) -> Vec<Tool> {
    let mut tools = dice.some(ENTRIES_MAX, tool);
    tools.push(Tool {
        name: KNOWN.into(),
        input_schema: "{\"type\":\"object\"}".into(),
        output_schema: None,
        ..tool(dice)
    });
    tools
}

fn tool(dice: &mut Dice) -> Tool {
    let supports = [
        TaskSupport::Forbidden,
        TaskSupport::Optional,
        TaskSupport::Required,
    ];
    Tool {
        name: dice.name(),
        title: dice.maybe(Dice::text),
        description: dice.maybe(Dice::text),
        input_schema: dice.schema(),
        output_schema: dice.maybe(Dice::schema),
        annotations: dice.maybe(|dice| ToolAnnotations {
            title: dice.maybe(Dice::text),
            read_only: dice.maybe(Dice::flag),
            destructive: dice.maybe(Dice::flag),
            idempotent: dice.maybe(Dice::flag),
            open_world: dice.maybe(Dice::flag),
        }),
        icons: dice.some(2, icon),
        meta: dice.maybe(Dice::object),
        task_support: dice.pick(&supports),
        asks_first: dice.once_in(4),
    }
}

pub(crate) fn prompts(dice: &mut Dice) -> Vec<Prompt> {
    let mut prompts = dice.some(ENTRIES_MAX, prompt);
    prompts.push(Prompt {
        name: KNOWN.into(),
        arguments: Vec::new(),
        ..prompt(dice)
    });
    prompts
}

fn prompt(dice: &mut Dice) -> Prompt {
    Prompt {
        name: dice.name(),
        title: dice.maybe(Dice::text),
        description: dice.maybe(Dice::text),
        arguments: dice.some(3, |dice| PromptArgument {
            name: dice.name(),
            title: dice.maybe(Dice::text),
            description: dice.maybe(Dice::text),
            required: dice.flag(),
        }),
        icons: dice.some(2, icon),
        meta: dice.maybe(Dice::object),
    }
}

pub(crate) fn resources(dice: &mut Dice) -> Vec<ResourceEntry> {
    let mut entries = dice.some(ENTRIES_MAX, entry);
    entries.push(ResourceEntry {
        uri: format!("{KNOWN_URI}{}", dice.roll(1_000_000)),
        ..entry(dice)
    });
    entries
}

fn entry(dice: &mut Dice) -> ResourceEntry {
    ResourceEntry {
        uri: dice.uri(),
        name: dice.text(),
        title: dice.maybe(Dice::text),
        description: dice.maybe(Dice::text),
        mime_type: dice.maybe(Dice::media_type),
        size: dice.maybe(Dice::integer),
        icons: dice.some(2, icon),
        annotations: dice.maybe(annotations),
        meta: dice.maybe(Dice::object),
    }
}

pub(crate) fn templates(dice: &mut Dice) -> Vec<ResourceTemplate> {
    dice.some(ENTRIES_MAX, |dice| ResourceTemplate {
        uri_template: dice.uri(),
        name: dice.text(),
        title: dice.maybe(Dice::text),
        description: dice.maybe(Dice::text),
        mime_type: dice.maybe(Dice::media_type),
        icons: dice.some(2, icon),
        annotations: dice.maybe(annotations),
        meta: dice.maybe(Dice::object),
    })
}

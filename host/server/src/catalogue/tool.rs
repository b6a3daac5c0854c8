//! One tool as clients see it: its definition for the wire, and what checks a call of it.

use super::header::HeaderParams;
use super::shelf::{Entry, Kind};
use crate::config::Config;
use crate::schema::{self, Allowance, Checks, Misfit, Schema};
use crate::wire::WireError;
use crate::wire::content::{guest_meta, icons};
use crate::wire::object::Object;
use http::HeaderMap;
use longshore_runtime::Plugin;
use longshore_runtime::contract::{TaskSupport, Tool, ToolAnnotations};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// Length of a name, in characters.
const NAME_MAX: usize = 128;

/// A tool that is served.
#[derive(Debug)]
pub(crate) struct CatalogueTool {
    plugin: Arc<Plugin>,
    /// Its place in the plugin's list.
    index: usize,
    /// With its prefix.
    name: String,
    /// The operator's word, else the plugin's.
    pub(crate) task_support: TaskSupport,
    input: Schema,
    headers: HeaderParams,
    definition: String,
}

impl CatalogueTool {
    /// Check a tool of a plugin.
    ///
    /// # Errors
    /// Why it cannot be served, and what to do.
    pub(super) fn build(
        plugin: &Arc<Plugin>,
        index: usize,
        config: &Config,
        allowance: &mut Allowance,
    ) -> Result<Self, String> {
        let tool = &plugin.tools[index];
        let name = format!("{}{}", config.prefix(&plugin.name), tool.name);
        if tool.name.is_empty() || !is_name(&name) {
            return Err(format!(
                "its name must be 1 to {NAME_MAX} of A-Z a-z 0-9 _ . -, its prefix (plugins.{}.prefix) with it",
                plugin.name
            ));
        }
        let input = schema::parse(&tool.input_schema)
            .and_then(|value| {
                schema::require_object(&value)?;
                Ok((
                    Schema::compile(&value, allowance)?,
                    HeaderParams::find(&value)?,
                ))
            })
            .map_err(|reason| format!("its input schema {reason}"))?;
        if input.0.is_apart() {
            tracing::info!(%name, plugin = %plugin.name, "the arguments of a tool are checked in a process of their own, for its input schema may make much work");
        }
        if let Some(output) = &tool.output_schema {
            schema::parse(output)
                .and_then(|value| Schema::compile(&value, allowance))
                .map_err(|reason| format!("its output schema {reason}"))?;
        }
        let task_support = config.task_support(&plugin.name, &tool.name);
        Ok(Self {
            definition: definition(tool, &name),
            plugin: plugin.clone(),
            index,
            name,
            task_support: task_support.unwrap_or(tool.task_support),
            input: input.0,
            headers: input.1,
        })
    }

    /// As the plugin listed it.
    pub(crate) fn tool(&self) -> &Tool {
        &self.plugin.tools[self.index]
    }

    /// Its name, with its prefix.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether its questions come before its task.
    pub(crate) fn asks_first(&self) -> bool {
        self.tool().asks_first
    }

    /// Check the arguments against the input schema.
    ///
    /// # Errors
    /// What is wrong, where, and what to do, for the client's model; or why that is not known.
    pub(crate) async fn check_arguments(
        &self,
        checks: &Checks,
        arguments: &Value,
    ) -> Result<(), Misfit> {
        let name = self.name();
        let schema = (&self.input, self.tool().input_schema.as_str());
        match checks.check(&self.plugin, schema, arguments).await {
            Err(Misfit::Wrong(wrong)) => Err(Misfit::Wrong(format!(
                "the arguments of {name} do not fit its input schema: {wrong}. Change them and call again"
            ))),
            checked => checked,
        }
    }

    /// Check the headers that mirror arguments.
    ///
    /// # Errors
    /// -32020, naming the header.
    pub(crate) fn check_headers(
        &self,
        headers: &HeaderMap,
        arguments: &Value,
    ) -> Result<(), WireError> {
        self.headers.check(headers, arguments)
    }

    /// Whether some arguments are mirrored into headers.
    pub(crate) fn mirrors_arguments(&self) -> bool {
        !self.headers.is_empty()
    }
}

impl Entry for CatalogueTool {
    const KIND: Kind = Kind::Tool;

    fn key(&self) -> &str {
        self.name()
    }

    fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    fn definition(&self) -> &str {
        &self.definition
    }
}

/// Whether a text may be the name of a tool.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotations<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world_hint: Option<bool>,
}

fn annotations(annotations: &ToolAnnotations) -> Annotations<'_> {
    Annotations {
        title: annotations.title.as_deref(),
        read_only_hint: annotations.read_only,
        destructive_hint: annotations.destructive,
        idempotent_hint: annotations.idempotent,
        open_world_hint: annotations.open_world,
    }
}

fn definition(tool: &Tool, name: &str) -> String {
    let mut object = Object::new()
        .value("name", &name)
        .option("title", tool.title.as_ref())
        .option("description", tool.description.as_ref())
        .raw("inputSchema", &tool.input_schema);
    if let Some(output) = &tool.output_schema {
        object = object.raw("outputSchema", output);
    }
    let icons = icons(&tool.icons);
    object
        .option(
            "annotations",
            tool.annotations.as_ref().map(annotations).as_ref(),
        )
        .option("icons", (!icons.is_empty()).then_some(&icons))
        .option("_meta", guest_meta(tool.meta.as_deref()).as_ref())
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool() -> Tool {
        Tool {
            name: "t".to_owned(),
            title: None,
            description: Some("It does.".to_owned()),
            input_schema: "{\"type\":\"object\",\n \"maximum\":1.50}".to_owned(),
            output_schema: None,
            annotations: None,
            icons: vec![],
            meta: Some(r#"{"dev.mcp/a":1,"b":2}"#.to_owned()),
            task_support: TaskSupport::Optional,
            asks_first: false,
        }
    }

    #[test]
    fn a_definition_has_the_schema_verbatim_and_in_one_line() {
        assert_eq!(
            definition(&tool(), "p.t"),
            r#"{"name":"p.t","description":"It does.","inputSchema":{"type":"object",  "maximum":1.50},"_meta":{"b":2}}"#
        );
    }

    #[test]
    fn names_are_of_the_rule() {
        for name in ["a", "A-b_c.9", &"x".repeat(NAME_MAX)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "a/b", "grüße", &"x".repeat(NAME_MAX + 1)] {
            assert!(!is_name(name), "{name}");
        }
    }
}

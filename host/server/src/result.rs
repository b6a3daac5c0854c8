//! Results of guests on their way to the wire: a result that the wire does not admit, or that breaks its tool's own output
//! schema, becomes an error result that names the tool, so that no client sees a success that is none.
//!
//! It must not know of tasks or requests.

use crate::schema::{self, Schema};
use crate::wire::{check, content};
use longshore_runtime::contract::CallResult;
use longshore_runtime::{Answer, Plugin, Usage, Version};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Compiled output schemas that are kept. More than a server has tools; beyond it they are compiled anew.
const SCHEMAS_MAX: usize = 1_024;

/// Checks results, and words them.
#[derive(Debug, Default)]
pub(crate) struct Results {
    schemas: Mutex<HashMap<(Version, String), Arc<Schema>>>,
}

impl Results {
    /// The text of an answer to a call of a tool.
    pub(crate) fn answer(
        &self,
        plugin: &Plugin,
        tool: &str,
        (answer, usage): (&Answer, Option<&Usage>),
    ) -> String {
        match answer {
            Answer::Tool(result) => self.text(plugin, tool, (result, usage)),
            Answer::Prompt(_) | Answer::Resource(_) | Answer::Completion(_) | Answer::Done => {
                content::tool_error(&format!("the tool {tool} gave an answer of another kind"))
            }
        }
    }

    /// The text of the result object: what the guest gave, or an error result that says what is wrong with it.
    fn text(
        &self,
        plugin: &Plugin,
        tool: &str,
        (result, usage): (&CallResult, Option<&Usage>),
    ) -> String {
        match check::result(result).and_then(|()| self.check_output(plugin, tool, result)) {
            Ok(()) => content::call_result(result, usage),
            Err(wrong) => {
                tracing::warn!(plugin = %plugin.name, tool, %wrong, "a plugin gave a result that is not valid");
                content::tool_error(&format!(
                    "the tool {tool} of the plugin {} gave a result that is not valid: {wrong}",
                    plugin.name
                ))
            }
        }
    }

    /// An error of the tool says what went wrong; it is never held against a schema of successes.
    fn check_output(&self, plugin: &Plugin, tool: &str, result: &CallResult) -> Result<(), String> {
        if result.is_error {
            return Ok(());
        }
        let Some(schema) = self.schema(plugin, tool)? else {
            return Ok(());
        };
        let Some(structured) = &result.structured_content else {
            return Err("it has an output schema, and no structured content".to_owned());
        };
        let value = serde_json::from_str(structured).map_err(|error| error.to_string())?;
        schema.check(&value).map_err(|wrong| {
            format!("the structured content does not fit the output schema: {wrong}")
        })
    }

    fn schema(&self, plugin: &Plugin, tool: &str) -> Result<Option<Arc<Schema>>, String> {
        let definition = plugin.tools.iter().find(|listed| listed.name == tool);
        let Some(text) = definition.and_then(|tool| tool.output_schema.as_deref()) else {
            return Ok(None);
        };
        let key = (plugin.version.clone(), tool.to_owned());
        if let Some(schema) = self.schemas.lock().get(&key) {
            return Ok(Some(schema.clone()));
        }
        // Not under the lock: compiling may take milliseconds.
        let schema = Arc::new(schema::parse(text).and_then(|value| Schema::compile(&value))?);
        let mut schemas = self.schemas.lock();
        if schemas.len() >= SCHEMAS_MAX {
            schemas.clear();
        }
        schemas.insert(key, schema.clone());
        Ok(Some(schema))
    }
}

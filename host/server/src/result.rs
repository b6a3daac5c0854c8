//! Results of guests on their way to the wire: a result that the wire does not admit, or that breaks its tool's own output
//! schema, becomes an error result that names the tool, so that no client sees a success that is none.
//!
//! It must not know of tasks or requests.

use crate::failure;
use crate::runner::Speaker;
use crate::schema::{self, Allowance, Checks, Misfit, Schema};
use crate::wire::{WireError, check, content};
use longshore_runtime::contract::CallResult;
use longshore_runtime::{Answer, Failure, Plugin, Usage, Version};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Compiled output schemas that are kept. More than a server has tools; beyond it they are compiled anew.
const SCHEMAS_MAX: usize = 1_024;

/// Checks results, and words them.
#[derive(Debug)]
pub(crate) struct Results {
    checks: Arc<Checks>,
    schemas: Mutex<HashMap<(Version, String), Arc<Schema>>>,
}

impl Results {
    pub(crate) fn new(checks: Arc<Checks>) -> Self {
        Self {
            checks,
            schemas: Mutex::default(),
        }
    }

    /// The text of an answer to a call of a tool.
    ///
    /// # Errors
    /// Why it is not known whether the answer is right.
    pub(crate) async fn answer(
        &self,
        plugin: &Plugin,
        tool: &str,
        (answer, usage): (&Answer, Option<&Usage>),
    ) -> Result<String, WireError> {
        match answer {
            Answer::Tool(result) => self.text(plugin, tool, (result, usage)).await,
            Answer::Prompt(_) | Answer::Resource(_) | Answer::Completion(_) | Answer::Done => Ok(
                content::tool_error(&format!("the tool {tool} gave an answer of another kind")),
            ),
        }
    }

    /// The text of the result object: what the guest gave, or an error result that says what is wrong with it.
    async fn text(
        &self,
        plugin: &Plugin,
        tool: &str,
        (result, usage): (&CallResult, Option<&Usage>),
    ) -> Result<String, WireError> {
        let checked = match check::result(result) {
            Ok(()) => self.check_output(plugin, tool, result).await,
            Err(wrong) => Err(Misfit::Wrong(wrong)),
        };
        match checked {
            Ok(()) => Ok(content::call_result(result, usage)),
            Err(Misfit::Wrong(wrong)) => {
                tracing::warn!(plugin = %plugin.name, tool, %wrong, "a plugin gave a result that is not valid");
                Ok(content::tool_error(&format!(
                    "the tool {tool} of the plugin {} gave a result that is not valid: {wrong}",
                    plugin.name
                )))
            }
            Err(Misfit::Failed(failure)) => {
                let speaker = Speaker {
                    plugin: plugin.name.clone(),
                    kind: "tool",
                    subject: tool.to_owned(),
                };
                Err(failure::of_run(&failure, &speaker))
            }
        }
    }

    /// An error of the tool says what went wrong; it is never held against a schema of successes.
    async fn check_output(
        &self,
        plugin: &Plugin,
        tool: &str,
        result: &CallResult,
    ) -> Result<(), Misfit> {
        let definition = plugin.tools.iter().find(|listed| listed.name == tool);
        let text = definition.and_then(|tool| tool.output_schema.as_deref());
        let Some(text) = text.filter(|_| !result.is_error) else {
            return Ok(());
        };
        let Some(structured) = &result.structured_content else {
            let wrong = "it has an output schema, and no structured content";
            return Err(Misfit::Wrong(wrong.to_owned()));
        };
        let schema = self.schema(plugin, tool, text).await?;
        let value =
            serde_json::from_str(structured).map_err(|error| Misfit::Wrong(error.to_string()))?;
        match self.checks.check(plugin, (&schema, text), &value).await {
            Err(Misfit::Wrong(wrong)) => Err(Misfit::Wrong(format!(
                "the structured content does not fit the output schema: {wrong}"
            ))),
            checked => checked,
        }
    }

    async fn schema(&self, plugin: &Plugin, tool: &str, text: &str) -> Result<Arc<Schema>, Misfit> {
        let key = (plugin.version.clone(), tool.to_owned());
        if let Some(schema) = self.schemas.lock().get(&key) {
            return Ok(schema.clone());
        }
        // Compiling may take a while: not on this thread, and not under the lock.
        let text = text.to_owned();
        let compile = move || {
            let schema = schema::parse(&text)?;
            Schema::compile(&schema, &mut Allowance::default())
        };
        let compiled = tokio::task::spawn_blocking(compile).await;
        let compiled =
            compiled.map_err(|error| Misfit::Failed(Failure::Unavailable(error.to_string())))?;
        let schema = Arc::new(compiled.map_err(Misfit::Wrong)?);
        let mut schemas = self.schemas.lock();
        if schemas.len() >= SCHEMAS_MAX {
            schemas.clear();
        }
        schemas.insert(key, schema.clone());
        Ok(schema)
    }
}

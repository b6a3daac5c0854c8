//! A tool: a function, with what clients are told of it.

use crate::contract::exports::longshore::plugin::tools as contract;
use crate::error::Kind;
use crate::{Answer, CallResult, Error, Icon, Result, RpcError, schema};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

pub use contract::TaskSupport;

/// What can serve a tool: a function of one argument (a struct, from the call's arguments) or of none.
pub trait Handler<Signature> {
    /// The schema of the arguments.
    fn input_schema() -> Value;
    /// The schema of the structured content, if there is one.
    fn output_schema() -> Option<Value>;
    /// Serves one call.
    ///
    /// # Errors
    /// If the arguments cannot be read, or the tool failed.
    fn handle(&self, arguments: &str) -> Result<()>;
}

impl<F, A, R> Handler<fn(A) -> R> for F
where
    F: Fn(A) -> R,
    A: DeserializeOwned + JsonSchema,
    R: Answer,
{
    fn input_schema() -> Value {
        schema::of_input::<A>()
    }

    fn output_schema() -> Option<Value> {
        R::output_schema()
    }

    fn handle(&self, arguments: &str) -> Result<()> {
        let arguments = crate::json::read(arguments)
            .map_err(|error| Error::msg(format_args!("the arguments cannot be used: {error}")))?;
        self(arguments).give()
    }
}

impl<F, R> Handler<fn() -> R> for F
where
    F: Fn() -> R,
    R: Answer,
{
    fn input_schema() -> Value {
        schema::of_nothing()
    }

    fn output_schema() -> Option<Value> {
        R::output_schema()
    }

    fn handle(&self, _arguments: &str) -> Result<()> {
        self().give()
    }
}

/// A tool by the name of `name` (1 to 128 of `A-Z a-z 0-9 _ . -`), served by `handler`.
///
/// Its description is the doc comment of the arguments' type. It runs as a task when that is of use to the caller
/// ([`TaskSupport::Optional`]).
pub fn tool<S, H: Handler<S> + 'static>(name: &str, handler: H) -> Tool {
    Tool {
        name: name.into(),
        title: None,
        description: None,
        input_schema: Schema::Derived(H::input_schema),
        output_schema: None,
        derived_output: H::output_schema,
        annotations: None,
        icons: Vec::new(),
        meta: None,
        task_support: TaskSupport::Optional,
        asks_first: false,
        handle: Box::new(move |arguments| handler.handle(arguments)),
    }
}

/// Schemas are made when they are asked for: a call needs none.
enum Schema {
    Derived(fn() -> Value),
    Verbatim(String),
}

/// Serves one call, from the arguments as JSON.
type Serve = Box<dyn Fn(&str) -> Result<()>>;

/// A tool. Made by [`tool`].
pub struct Tool {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Schema,
    output_schema: Option<String>,
    derived_output: fn() -> Option<Value>,
    annotations: Option<contract::ToolAnnotations>,
    icons: Vec<Icon>,
    meta: Option<String>,
    task_support: TaskSupport,
    asks_first: bool,
    handle: Serve,
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Tool {
    /// A name for a person.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What the tool does and when to use it, for a model.
    #[must_use]
    pub fn description(mut self, text: &str) -> Self {
        self.description = Some(text.into());
        self
    }

    /// A JSON Schema for the arguments, sent as it stands instead of the derived one.
    #[must_use]
    pub fn input_schema(mut self, json: impl Into<String>) -> Self {
        self.input_schema = Schema::Verbatim(json.into());
        self
    }

    /// A JSON Schema for the structured content, sent as it stands.
    #[must_use]
    pub fn output_schema(mut self, json: impl Into<String>) -> Self {
        self.output_schema = Some(json.into());
        self
    }

    /// A hint that the tool changes nothing. After a crash the host may run it again.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.annotate(|hints| hints.read_only = Some(true))
    }

    /// A hint that doing it twice is as good as once. After a crash the host may run it again.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.annotate(|hints| hints.idempotent = Some(true))
    }

    /// A hint whether the tool destroys something. Clients assume so if nothing is said.
    #[must_use]
    pub fn destructive(self, destructive: bool) -> Self {
        self.annotate(|hints| hints.destructive = Some(destructive))
    }

    /// A hint whether the tool deals with a world that is not its own (the web, say).
    #[must_use]
    pub fn open_world(self, open_world: bool) -> Self {
        self.annotate(|hints| hints.open_world = Some(open_world))
    }

    fn annotate(mut self, set: impl FnOnce(&mut contract::ToolAnnotations)) -> Self {
        set(self.annotations.get_or_insert(contract::ToolAnnotations {
            title: None,
            read_only: None,
            destructive: None,
            idempotent: None,
            open_world: None,
        }));
        self
    }

    /// Adds a picture.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// Sets `_meta`, a JSON object.
    #[must_use]
    pub fn meta(mut self, meta: &serde_json::Map<String, Value>) -> Self {
        self.meta = Some(Value::Object(meta.clone()).to_string());
        self
    }

    /// Says whether a call may become a task.
    #[must_use]
    pub fn task_support(mut self, support: TaskSupport) -> Self {
        self.task_support = support;
        self
    }

    /// A call never becomes a task: the caller waits.
    #[must_use]
    pub fn task_forbidden(self) -> Self {
        self.task_support(TaskSupport::Forbidden)
    }

    /// A call is always a task: a client that does not understand tasks is refused.
    #[must_use]
    pub fn task_required(self) -> Self {
        self.task_support(TaskSupport::Required)
    }

    /// The questions come before the task; it is made when the tool calls [`begin`](crate::begin).
    #[must_use]
    pub fn asks_first(mut self) -> Self {
        self.asks_first = true;
        self
    }

    /// The tool as clients are told of it.
    fn definition(&self) -> contract::Tool {
        let (input_schema, doc) = self.described_input();
        let output_schema = self
            .output_schema
            .clone()
            .or_else(|| (self.derived_output)().map(|schema| schema.to_string()));
        contract::Tool {
            name: self.name.clone(),
            title: self.title.clone(),
            description: self.description.clone().or(doc),
            input_schema,
            output_schema,
            annotations: self.annotations.clone(),
            icons: self.icons.clone(),
            meta: self.meta.clone(),
            task_support: self.task_support,
            asks_first: self.asks_first,
        }
    }

    /// The input schema, and the doc comment of the type it was derived from.
    fn described_input(&self) -> (String, Option<String>) {
        let derive = match &self.input_schema {
            Schema::Verbatim(json) => return (json.clone(), None),
            Schema::Derived(derive) => derive,
        };
        let mut schema = derive();
        assert!(
            schema["type"] == "object",
            "tool `{}`: its argument must be a struct with named fields",
            self.name
        );
        let doc = schema
            .as_object_mut()
            .and_then(|members| members.shift_remove("description"));
        let doc = doc.and_then(|text| text.as_str().map(str::to_owned));
        (schema.to_string(), doc)
    }
}

/// What [`plugin!`](crate::plugin) lists.
pub fn definitions(tools: &[Tool]) -> Vec<contract::Tool> {
    tools.iter().map(Tool::definition).collect()
}

/// Serves one call; what [`plugin!`](crate::plugin) does.
///
/// # Errors
/// If there is no such tool, or it says that the request is wrong.
pub fn serve(tools: &[Tool], name: &str, arguments: &str) -> Result<(), RpcError> {
    let tool = tools
        .iter()
        .find(|tool| tool.name == name)
        .ok_or_else(|| RpcError::invalid_params(format!("there is no tool `{name}`")))?;
    match (tool.handle)(arguments).map_err(Error::into_kind) {
        Ok(()) | Err(Kind::Interrupted) => Ok(()),
        Err(Kind::Rpc(error)) => Err(error),
        Err(kind @ Kind::NotFound) => Err(kind.into_rpc()),
        Err(Kind::Failed(text)) => CallResult::failed(text).complete().map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    /// Adds two numbers.
    #[derive(Deserialize, JsonSchema)]
    struct Add {
        /// The first.
        a: i32,
        b: Option<i32>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Sum {
        sum: i32,
    }

    fn add(args: Add) -> Result<Json<Sum>> {
        Ok(Json(Sum {
            sum: args.a + args.b.unwrap_or(0),
        }))
    }

    fn parsed(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn types_describe_a_tool() {
        let definition = tool("add", add).read_only().task_required().definition();
        assert_eq!(definition.description.as_deref(), Some("Adds two numbers."));
        assert_eq!(
            parsed(&definition.input_schema),
            json!({
                "type": "object",
                "properties": {
                    "a": { "type": "integer", "description": "The first." },
                    "b": { "type": ["integer", "null"] },
                },
                "required": ["a"],
            })
        );
        let output = parsed(definition.output_schema.as_deref().unwrap());
        assert_eq!(output["required"], json!(["sum"]));
        assert_eq!(definition.annotations.unwrap().read_only, Some(true));
        assert_eq!(definition.task_support, TaskSupport::Required);
    }

    #[test]
    fn a_function_of_nothing_takes_nothing() {
        let definition = tool("now", || "now").definition();
        assert_eq!(
            parsed(&definition.input_schema),
            json!({ "type": "object", "additionalProperties": false })
        );
        assert_eq!(definition.output_schema, None);
    }

    #[test]
    fn a_schema_of_ones_own_is_kept_to_the_letter() {
        let text = r#"{ "type":"object",  "if": {} }"#;
        let definition = tool("raw", |_: Value| "raw")
            .input_schema(text)
            .definition();
        assert_eq!(definition.input_schema, text);
    }

    #[test]
    #[should_panic(expected = "tool `bad`: its argument must be a struct")]
    fn an_argument_that_is_no_object_is_named() {
        tool("bad", |_: u32| "bad").definition();
    }

    #[test]
    fn an_unknown_tool_is_a_wrong_request() {
        let error = serve(&[tool("add", add)], "sub", "{}").unwrap_err();
        assert_eq!(error.code, -32602);
    }
}

//! From what a function returns to the result of the call.

use crate::contract::longshore::plugin::task;
use crate::{CallResult, Content, Error, Result, RpcError, schema};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What a tool may return: text, [`Content`], a [`CallResult`], [`Json`] of a type of its own, nothing at all, or a `Result`
/// of one of these.
pub trait Answer: Sized {
    /// The schema of the structured content, if there always is one of the same shape.
    fn output_schema() -> Option<Value> {
        None
    }

    /// Gives the result to the host.
    ///
    /// # Errors
    /// If the tool failed, or if the host does not take the result.
    fn give(self) -> Result<()>;
}

/// A typed result: structured content with a schema, and a text copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// The result is given already, and the tool went on after it. Only [`CallResult::complete`] makes one.
#[derive(Debug)]
pub struct Completed(());

impl CallResult {
    /// Gives the result now, so that what the tool still does (clean up, warm a cache) keeps nobody waiting.
    ///
    /// # Errors
    /// If the host does not take it: it is too large, holds text that is not the JSON it should be, or there is one already.
    pub fn complete(mut self) -> Result<Completed, RpcError> {
        if let (true, Some(json)) = (self.content.is_empty(), &self.structured_content) {
            self.content.push(Content::text(json.clone()));
        }
        match task::complete(&self) {
            Ok(()) => Ok(Completed(())),
            Err(task::CompleteError::AlreadyComplete) => Err(RpcError::internal(
                "the tool gave a second result; the first one stands",
            )),
            Err(task::CompleteError::Invalid(why)) => Err(RpcError::internal(format!(
                "the result was not taken: {why}"
            ))),
        }
    }
}

impl Answer for CallResult {
    fn give(self) -> Result<()> {
        self.complete()?;
        Ok(())
    }
}

impl Answer for Completed {
    fn give(self) -> Result<()> {
        Ok(())
    }
}

impl<T: Serialize + JsonSchema> Answer for Json<T> {
    fn output_schema() -> Option<Value> {
        Some(schema::of_output::<T>())
    }

    fn give(self) -> Result<()> {
        CallResult::new().structured(&self.0)?.give()
    }
}

impl Answer for Value {
    fn give(self) -> Result<()> {
        CallResult::new().structured(&self)?.give()
    }
}

impl Answer for String {
    fn give(self) -> Result<()> {
        CallResult::new().text(self).give()
    }
}

impl Answer for &str {
    fn give(self) -> Result<()> {
        CallResult::new().text(self).give()
    }
}

impl Answer for Content {
    fn give(self) -> Result<()> {
        CallResult::new().block(self).give()
    }
}

impl Answer for Vec<Content> {
    fn give(self) -> Result<()> {
        CallResult {
            content: self,
            ..CallResult::new()
        }
        .give()
    }
}

impl Answer for () {
    fn give(self) -> Result<()> {
        CallResult::new().give()
    }
}

impl<T: Answer, E: Into<Error>> Answer for Result<T, E> {
    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn give(self) -> Result<()> {
        self.map_err(Into::into)?.give()
    }
}

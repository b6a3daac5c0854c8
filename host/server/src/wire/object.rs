//! Writing JSON objects member by member. Raw members pass as they are, digits and all; everything stays in one line.

use super::content::{answer_meta, one_line};
use longshore_runtime::Usage;
use serde::Serialize;

/// A JSON object that is being written.
#[derive(Debug)]
pub(crate) struct Object(String);

impl Object {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    /// A result of the wire: begins with `resultType`, `complete` for instance.
    pub(crate) fn result(result_type: &str) -> Self {
        Self::new().value("resultType", &result_type)
    }

    /// Add a member whose value is JSON text already.
    pub(crate) fn raw(self, name: &str, json: &str) -> Self {
        self.line(name, &one_line(json))
    }

    /// The same, of text that was written here, in one line.
    pub(crate) fn line(mut self, name: &str, json: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.push_name(name);
        self.0.push(':');
        self.0.push_str(json);
        self
    }

    fn push_name(&mut self, name: &str) {
        let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if name.bytes().all(plain) {
            self.0.push('"');
            self.0.push_str(name);
            self.0.push('"');
        } else {
            self.0.push_str(&serde_json::Value::from(name).to_string());
        }
    }

    /// Add a member.
    pub(crate) fn value(self, name: &str, value: &impl Serialize) -> Self {
        // What is written here has no maps but such with text as keys, so it cannot fail.
        let json = serde_json::to_string(value).expect("the value is JSON");
        self.line(name, &json)
    }

    /// Add a member, if there is a value.
    pub(crate) fn option(self, name: &str, value: Option<&impl Serialize>) -> Self {
        match value {
            Some(value) => self.value(name, value),
            None => self,
        }
    }

    /// End a result: adds `_meta` with the server's name.
    pub(crate) fn finish_result(self) -> String {
        self.finish_answer(None)
    }

    /// End the result of a plugin: as [`Self::finish_result`], with what its run used if that is to be told.
    pub(crate) fn finish_answer(self, usage: Option<&Usage>) -> String {
        self.raw("_meta", answer_meta(None, usage).get()).finish()
    }

    /// The text.
    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

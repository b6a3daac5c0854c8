//! What can go wrong in a tool, and which of three ways it takes to the caller.

use std::fmt;

pub use crate::contract::longshore::plugin::types::RpcError;

/// The outcome of a tool, or of a step of it.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a tool gave no result.
///
/// Every error of the standard library's kind turns into one by `?`. What the caller sees:
/// - mostly a result with `isError` whose text is the error with its causes: the model reads it and may try again;
/// - for an [`RpcError`] (the *request* is wrong) and for a question that cannot be asked, a JSON-RPC error;
/// - after the caller's wish to stop, nothing: the run ends, and the call is cancelled.
///
/// Prompts and resources have no result that could say that the work failed: there it is a JSON-RPC error.
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    /// The work failed; the text says why.
    Failed(String),
    /// The request is wrong.
    Rpc(RpcError),
    /// The caller wants no result any more.
    Interrupted,
    /// There is no such resource.
    NotFound,
}

impl Kind {
    /// For what has no result that could say that the work failed.
    pub(crate) fn into_rpc(self) -> RpcError {
        match self {
            Self::Rpc(error) => error,
            Self::Failed(text) => RpcError::internal(text),
            Self::Interrupted | Self::NotFound => RpcError::internal(Error(self).to_string()),
        }
    }
}

impl Error {
    /// An error of one sentence.
    pub fn msg(text: impl fmt::Display) -> Self {
        Self(Kind::Failed(text.to_string()))
    }

    /// The end of a run that nobody waits for any more.
    pub fn interrupted() -> Self {
        Self(Kind::Interrupted)
    }

    /// The resource that was to be read is not there. See [`not_found`](crate::not_found).
    pub fn not_found() -> Self {
        Self(Kind::NotFound)
    }

    pub(crate) fn into_kind(self) -> Kind {
        self.0
    }

    pub(crate) fn into_rpc(self) -> RpcError {
        self.0.into_rpc()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Failed(text) => f.write_str(text),
            Kind::Rpc(error) => f.write_str(&error.message),
            Kind::Interrupted => f.write_str("the caller wants the work to end"),
            Kind::NotFound => f.write_str("there is no such thing"),
        }
    }
}

// No `std::error::Error` for `Error` itself: the blanket conversion below would overlap with the identity.
impl<E: std::error::Error + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let text = with_causes(&error);
        let boxed: Box<dyn std::error::Error> = Box::new(error);
        match boxed.downcast::<RpcError>().map(|rpc| *rpc) {
            Ok(rpc) => Self(Kind::Rpc(rpc)),
            Err(boxed) => match boxed.downcast::<AskError>() {
                Ok(ask) => (*ask).into_error(),
                Err(_) => Self(Kind::Failed(text)),
            },
        }
    }
}

/// "outermost: its cause: the cause of that".
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl RpcError {
    /// The parameters are wrong (-32602).
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// Something is broken in the plugin (-32603).
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, message)
    }

    /// An error with a code of your own, outside -32768..-32000. The host lets no other code through.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Adds what a program may want to know.
    #[must_use]
    pub fn with_data(mut self, data: &serde_json::Value) -> Self {
        self.data = Some(data.to_string());
        self
    }
}

/// Why a question has no answer. A tool usually passes it on with `?`.
#[derive(Debug, Clone, PartialEq)]
pub enum AskError {
    /// The caller wants the work to end. Passed on, it ends the run.
    Interrupted,
    /// The client cannot answer such a question; the text says what it lacks. Passed on, the client learns what it would
    /// have to declare.
    Unsupported(String),
    /// This is no valid question; the text says what is wrong with it. A fault of the plugin.
    Invalid(String),
    /// The client answered with an error.
    Refused(RpcError),
    /// The answer is not what was asked for.
    Unreadable(String),
}

impl AskError {
    /// The code by which the host is told that the refused question is the reason.
    const MISSING_CAPABILITY: i32 = -32021;

    fn into_error(self) -> Error {
        let text = self.to_string();
        match self {
            Self::Interrupted => Error::interrupted(),
            Self::Unsupported(_) => Error(Kind::Rpc(RpcError::new(Self::MISSING_CAPABILITY, text))),
            Self::Invalid(_) => Error(Kind::Rpc(RpcError::internal(text))),
            Self::Refused(_) | Self::Unreadable(_) => Error(Kind::Failed(text)),
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("the caller wants the work to end"),
            Self::Unsupported(what) => write!(f, "the client cannot answer this question: {what}"),
            Self::Invalid(what) => write!(f, "the plugin's question is not valid: {what}"),
            Self::Refused(error) => {
                write!(
                    f,
                    "the client answered with error {}: {}",
                    error.code, error.message
                )
            }
            Self::Unreadable(what) => write!(f, "the answer cannot be used: {what}"),
        }
    }
}

impl std::error::Error for AskError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the port")
        }
    }

    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    fn kind<E: Into<Error>>(error: E) -> Kind {
        error.into().into_kind()
    }

    #[test]
    fn a_plain_error_keeps_its_causes() {
        let error = Outer("x".parse::<u16>().unwrap_err());
        let Kind::Failed(text) = kind(error) else {
            panic!("not a failure of the work")
        };
        assert_eq!(text, "the port: invalid digit found in string");
    }

    #[test]
    fn an_rpc_error_stays_one() {
        let Kind::Rpc(error) = kind(RpcError::invalid_params("no")) else {
            panic!("not rpc")
        };
        assert_eq!((error.code, error.message.as_str()), (-32602, "no"));
    }

    #[test]
    fn a_refused_question_names_the_missing_capability() {
        let Kind::Rpc(error) = kind(AskError::Unsupported("sampling".into())) else {
            panic!("not rpc")
        };
        assert_eq!(error.code, -32021);
        assert!(matches!(kind(AskError::Interrupted), Kind::Interrupted));
    }
}

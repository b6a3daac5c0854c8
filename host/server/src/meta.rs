//! `_meta` of a request: what the client says of itself and of this one call.
//!
//! Capabilities are per request: nothing is remembered.

use crate::members::{Members, is_string_or_integer};
use crate::wire::{TASKS, WireError};
use longshore_runtime::contract::{ClientFeatures, LogLevel};
use serde_json::Value;
use serde_json::value::RawValue;

/// The key of the protocol version.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
const PROGRESS_KEY: &str = "progressToken";

/// The keys of trace context (W3C), the only ones without a prefix.
const TRACE_KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// Size of one value of trace context, in bytes: what W3C lets `baggage` have. Longer ones are left out.
const TRACE_BYTES_MAX: usize = 8_192;

/// Size of a progress token, in bytes of its JSON text: it is repeated in every notification.
const TOKEN_BYTES_MAX: usize = 1_024;

/// What a request says in `_meta`.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    /// What the client declared.
    pub(crate) features: ClientFeatures,
    /// Names the request in progress notifications, if they are wanted: a JSON string or integer, to be echoed as it is.
    pub(crate) progress_token: Option<Box<RawValue>>,
    /// The least severe log message that is wanted, if any are.
    pub(crate) log_level: Option<LogLevel>,
    /// Trace context: name and value.
    pub(crate) trace: Vec<(String, String)>,
}

impl Meta {
    /// Read it.
    ///
    /// # Errors
    /// -32602 with status 400 if a member is missing that must be there; one of a wrong type counts as missing.
    pub(crate) fn read(members: &Members) -> Result<Self, WireError> {
        if members.text(VERSION_KEY).is_none() {
            return Err(Self::no_version());
        }
        let capabilities = members
            .value(CAPABILITIES_KEY)
            .filter(Value::is_object)
            .ok_or_else(|| missing(CAPABILITIES_KEY, "an object"))?;
        Ok(Self {
            features: features(&capabilities),
            progress_token: progress_token(members)?,
            log_level: log_level(members)?,
            trace: trace(members),
        })
    }

    /// What is known where no client asks.
    pub(crate) fn of_nobody() -> Self {
        Self {
            features: ClientFeatures::empty(),
            progress_token: None,
            log_level: None,
            trace: Vec::new(),
        }
    }

    /// Read the `_meta` of a request in a session, in which features and level were settled before.
    ///
    /// # Errors
    /// -32602 if a member has a wrong type.
    pub(crate) fn in_session(
        members: &Members,
        features: ClientFeatures,
        log_level: Option<LogLevel>,
    ) -> Result<Self, WireError> {
        Ok(Self {
            features,
            progress_token: progress_token(members)?,
            log_level,
            trace: trace(members),
        })
    }

    /// The error of a `_meta` without a protocol version.
    pub(crate) fn no_version() -> WireError {
        missing(VERSION_KEY, "the protocol version")
    }

    /// Whether the client declared the Tasks extension.
    pub(crate) fn has_tasks(&self) -> bool {
        self.features.contains(ClientFeatures::TASKS)
    }
}

fn missing(key: &str, kind: &str) -> WireError {
    WireError::incomplete_meta(format!("params._meta has no {key}; it must be {kind}"))
}

/// What declared capabilities amount to. A setting that is no object declares nothing.
pub(crate) fn features(capabilities: &Value) -> ClientFeatures {
    // Indexing into what is no object, or has no such member, gives null.
    let declared = |one: &str| capabilities[one].is_object();
    let part = |one: &str, other: &str| capabilities[one][other].is_object();
    let mut features = ClientFeatures::empty();
    let mut set = |flag: ClientFeatures, on: bool| {
        if on {
            features |= flag;
        }
    };
    // An elicitation that names no mode is form only.
    let url = part("elicitation", "url");
    let form = declared("elicitation") && (part("elicitation", "form") || !url);
    set(ClientFeatures::ELICITATION_FORM, form);
    set(ClientFeatures::ELICITATION_URL, url);
    set(ClientFeatures::SAMPLING, declared("sampling"));
    set(ClientFeatures::SAMPLING_TOOLS, part("sampling", "tools"));
    set(
        ClientFeatures::SAMPLING_CONTEXT,
        part("sampling", "context"),
    );
    set(ClientFeatures::ROOTS, declared("roots"));
    set(ClientFeatures::TASKS, part("extensions", TASKS));
    features
}

fn progress_token(members: &Members) -> Result<Option<Box<RawValue>>, WireError> {
    let Some(token) = members.get(PROGRESS_KEY) else {
        return Ok(None);
    };
    if token.get().len() > TOKEN_BYTES_MAX || !is_string_or_integer(token) {
        return Err(WireError::incomplete_meta(format!(
            "params._meta.{PROGRESS_KEY} must be a string or an integer of at most {TOKEN_BYTES_MAX} bytes"
        )));
    }
    Ok(Some(token.to_owned()))
}

fn log_level(members: &Members) -> Result<Option<LogLevel>, WireError> {
    if members.get(LOG_LEVEL_KEY).is_none() {
        return Ok(None);
    }
    let named = members.text(LOG_LEVEL_KEY);
    let level = named.as_deref().and_then(level_named).ok_or_else(|| {
        WireError::incomplete_meta(format!(
            "params._meta has a {LOG_LEVEL_KEY} that is none: use {LEVELS}"
        ))
    })?;
    Ok(Some(level))
}

/// The names of the levels, for errors.
pub(crate) const LEVELS: &str = "debug, info, notice, warning, error, critical, alert or emergency";

/// The level of this name.
pub(crate) fn level_named(name: &str) -> Option<LogLevel> {
    Some(match name {
        "debug" => LogLevel::Debug,
        "info" => LogLevel::Info,
        "notice" => LogLevel::Notice,
        "warning" => LogLevel::Warning,
        "error" => LogLevel::Error,
        "critical" => LogLevel::Critical,
        "alert" => LogLevel::Alert,
        "emergency" => LogLevel::Emergency,
        _ => return None,
    })
}

fn trace(members: &Members) -> Vec<(String, String)> {
    TRACE_KEYS
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), members.string(key)?)))
        .filter(|(_, value)| value.len() <= TRACE_BYTES_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(meta: &Value) -> Result<Meta, WireError> {
        let text = meta.to_string();
        Meta::read(&Members::parse(&text).unwrap())
    }

    fn declared(capabilities: &Value) -> ClientFeatures {
        read(&json!({ VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: capabilities }))
            .unwrap()
            .features
    }

    #[test]
    fn capabilities_are_read_by_mode_and_part() {
        assert_eq!(
            declared(&json!({"elicitation": {}})),
            ClientFeatures::ELICITATION_FORM
        );
        assert_eq!(
            declared(&json!({"elicitation": {"url": {}}})),
            ClientFeatures::ELICITATION_URL
        );
        assert_eq!(
            declared(&json!({"elicitation": {"url": {}, "form": {}}})),
            ClientFeatures::ELICITATION_URL | ClientFeatures::ELICITATION_FORM
        );
        assert_eq!(
            declared(&json!({"sampling": {"tools": {}}})),
            ClientFeatures::SAMPLING | ClientFeatures::SAMPLING_TOOLS
        );
        assert_eq!(
            declared(&json!({"extensions": {TASKS: {}}})),
            ClientFeatures::TASKS
        );
        for nothing in [
            json!({}),
            json!({"elicitation": true, "sampling": null, "roots": []}),
            json!({"extensions": {TASKS: true}}),
            json!({"tasks": {}}),
        ] {
            assert_eq!(declared(&nothing), ClientFeatures::empty(), "{nothing}");
        }
    }

    #[test]
    fn what_must_be_there_is_named() {
        for (meta, named) in [
            (json!({}), VERSION_KEY),
            (json!({VERSION_KEY: 7, CAPABILITIES_KEY: {}}), VERSION_KEY),
            (json!({VERSION_KEY: "2026-07-28"}), CAPABILITIES_KEY),
            (
                json!({VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: []}),
                CAPABILITIES_KEY,
            ),
            (
                json!({VERSION_KEY: "x", CAPABILITIES_KEY: {}, PROGRESS_KEY: 1.5}),
                PROGRESS_KEY,
            ),
            (
                json!({VERSION_KEY: "x", CAPABILITIES_KEY: {}, LOG_LEVEL_KEY: "loud"}),
                LOG_LEVEL_KEY,
            ),
        ] {
            let error = read(&meta).unwrap_err();
            assert_eq!(
                (error.code, error.http_status.as_u16()),
                (-32602, 400),
                "{meta}"
            );
            assert!(error.message.contains(named), "{}", error.message);
        }
    }

    #[test]
    fn a_token_keeps_its_type_and_digits() {
        let text = format!(
            r#"{{"{VERSION_KEY}":"2026-07-28","{CAPABILITIES_KEY}":{{}},"{PROGRESS_KEY}":12345678901234567890123}}"#
        );
        let meta = Meta::read(&Members::parse(&text).unwrap()).unwrap();
        assert_eq!(
            meta.progress_token.unwrap().get(),
            "12345678901234567890123"
        );
    }
}

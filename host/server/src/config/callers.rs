//! Who may call, and the sessions of older clients, as they stand in the file.

use super::ConfigError;
use crate::auth::{PRINCIPAL_RULE, Tokens, is_principal};
use serde::Deserialize;

/// `[auth]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WrittenAuth {
    tokens: Vec<WrittenToken>,
}

/// `[[auth.tokens]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    /// Who has it.
    principal: String,
    /// Its SHA-256, in hexadecimal digits.
    sha256: String,
}

impl WrittenAuth {
    pub(super) fn resolve(self) -> Result<Tokens, ConfigError> {
        let mut tokens = Tokens::default();
        for WrittenToken { principal, sha256 } in self.tokens {
            let wrong = |key: &str, value: &str, expected: &str| ConfigError::Value {
                key: format!("auth.tokens.{key}"),
                value: value.to_owned(),
                expected: expected.to_owned(),
            };
            if !is_principal(&principal) {
                return Err(wrong("principal", &principal, PRINCIPAL_RULE));
            }
            tokens
                .add(&principal, &sha256)
                .map_err(|expected| wrong("sha256", &sha256, expected))?;
        }
        Ok(tokens)
    }
}

/// `[sessions]`: sessions of clients that begin with a handshake, over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SessionSettings {
    /// Sessions at once.
    pub(crate) sessions_max: u32,
    /// Sessions at once of one principal, or of one address where there are no tokens.
    pub(crate) sessions_per_client_max: u32,
    /// How long a session may be idle, in milliseconds.
    pub(crate) idle_ms: u64,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            // An idle one takes about 2 KiB.
            sessions_max: 10_000,
            // Many clients may come through one proxy.
            sessions_per_client_max: 5_000,
            // Clients begin another one when theirs is gone.
            idle_ms: 1_800_000,
        }
    }
}

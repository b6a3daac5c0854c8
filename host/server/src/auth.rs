//! Who calls: bearer tokens of the configuration, each with the principal that it stands for (rung 3 of the ladder).
//!
//! Tokens are kept as digests, so neither the configuration nor the memory of the server holds one. Without tokens in the
//! configuration every caller is `anonymous`; with them nobody is, so what was made before is nobody's any more.
//!
//! It must not know what a principal may do.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use longshore_tasks::Principal;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// Bytes of a token that is made here: 256 random bits.
const TOKEN_BYTES: usize = 32;

/// The tokens that are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens(HashMap<[u8; 32], String>);

/// Why a caller is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// It says nothing of who it is.
    Nobody,
    /// What it says is not right.
    Unknown,
}

impl Stranger {
    /// The same in a word, for the log.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Nobody => "no_token",
            Self::Unknown => "unknown_token",
        }
    }

    /// What it is told.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Nobody => "a token is needed: send the header Authorization: Bearer TOKEN",
            Self::Unknown => {
                "the header Authorization is not Bearer with a token that is known here"
            }
        }
    }
}

impl Tokens {
    /// Take a token, by the hexadecimal text of its SHA-256.
    ///
    /// # Errors
    /// If the text is no such digest, or stands for another principal already.
    pub(crate) fn add(&mut self, principal: &str, sha256: &str) -> Result<(), &'static str> {
        let mut digest = [0; 32];
        hex::decode_to_slice(sha256, &mut digest)
            .map_err(|_| "the SHA-256 of a token, in 64 hexadecimal digits")?;
        match self.0.insert(digest, principal.to_owned()) {
            Some(former) if former != principal => Err("a token of one principal only"),
            _ => Ok(()),
        }
    }

    /// Whether there is none, so that everyone is let in.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who sends a request with these headers. The look-up is by the digest of what was sent, so its time says nothing of how
    /// much of a token was right.
    ///
    /// # Errors
    /// If there are tokens, and it has none of them. An unknown one is never taken for none.
    pub(crate) fn principal(&self, headers: &HeaderMap) -> Result<Principal, Stranger> {
        if self.0.is_empty() {
            return Ok(Principal::anonymous());
        }
        let mut stated = headers.get_all(AUTHORIZATION).iter();
        let first = stated.next().ok_or(Stranger::Nobody)?;
        if stated.next().is_some() {
            return Err(Stranger::Unknown);
        }
        let text = first.to_str().map_err(|_| Stranger::Unknown)?;
        let (scheme, token) = text.split_once(' ').ok_or(Stranger::Unknown)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Stranger::Unknown);
        }
        let digest: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
        let known = self.0.get(&digest).ok_or(Stranger::Unknown)?;
        Ok(Principal::new(known))
    }
}

/// Length of a principal's name, in characters.
const PRINCIPAL_MAX: usize = 128;

/// Whether a principal with a token can have this name. Whoever called before there were tokens must not be taken for someone.
pub(crate) fn is_principal(name: &str) -> bool {
    (1..=PRINCIPAL_MAX).contains(&name.chars().count())
        && !name.chars().any(char::is_control)
        && name != Principal::anonymous().as_str()
}

/// What [`is_principal`] asks of a name.
pub(crate) const PRINCIPAL_RULE: &str = "a name of 1 to 128 characters, and not anonymous";

/// A new token, and its digest for the configuration; both as text.
///
/// # Errors
/// If the system has no random numbers.
pub(crate) fn new_token() -> Result<(String, String), getrandom::Error> {
    let mut token = [0; TOKEN_BYTES];
    getrandom::fill(&mut token)?;
    let token = hex::encode(token);
    let digest = hex::encode(Sha256::digest(token.as_bytes()));
    Ok((token, digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn without_tokens_everyone_is_anonymous() {
        let none = Tokens::default();
        for sent in [&[][..], &["Bearer x"]] {
            assert_eq!(none.principal(&headers(sent)), Ok(Principal::anonymous()));
        }
    }

    #[test]
    fn a_token_is_its_principal_and_anything_else_is_refused() {
        let (token, digest) = new_token().unwrap();
        let mut tokens = Tokens::default();
        tokens.add("alice", &digest).unwrap();
        for right in [format!("Bearer {token}"), format!("bearer  {token}")] {
            assert_eq!(
                tokens.principal(&headers(&[&right])),
                Ok(Principal::new("alice"))
            );
        }
        assert_eq!(tokens.principal(&headers(&[])), Err(Stranger::Nobody));
        let right = format!("Bearer {token}");
        for wrong in [
            &["Bearer "][..],
            &["Bearer"],
            &["Basic YTpi"],
            &[&format!("Bearer {digest}")],
            &[&right, &right],
        ] {
            let sent = headers(wrong);
            assert_eq!(tokens.principal(&sent), Err(Stranger::Unknown), "{wrong:?}");
        }
    }

    #[test]
    fn a_digest_is_one_and_of_one() {
        let mut tokens = Tokens::default();
        let digest = "ab".repeat(32);
        tokens.add("alice", &digest).unwrap();
        tokens.add("alice", &digest).unwrap();
        assert!(tokens.add("bob", &digest).is_err());
        assert!(tokens.add("bob", "ab").is_err());
        assert!(tokens.add("bob", &"xy".repeat(32)).is_err());
    }
}

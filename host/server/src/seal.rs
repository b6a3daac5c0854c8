//! `requestState`: what the server would have to remember of a call between two rounds, sealed and given to the client.
//!
//! It is encrypted and authenticated (XChaCha20-Poly1305), so the client can neither read nor change it, and bound to what it
//! was made for: caller, tool, arguments, plugin version, and a time.
//!
//! It must not know how a call is run.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use longshore_runtime::{Call, Record};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Size of a sealed state, in bytes of its text. Common proxies take bodies of 1 MiB and more; a client keeps one a call.
pub(crate) const STATE_BYTES_MAX: usize = 64 << 10;

/// Size of an opened state. What is more was not made here.
const OPENED_BYTES_MAX: usize = 1 << 20;

const NONCE_BYTES: usize = 24;

const KEY_BYTES: usize = 32;

/// What everybody may do with a file, in its mode. A group may be there to share a key.
const OTHERS: u32 = 0o007;

/// Names the layout; part of what is authenticated.
const CONTEXT: &[u8] = b"longshore requestState 1";

/// Compression: fast, and good enough for clock readings.
const LEVEL: u8 = 4;

/// A call between two rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// What it is bound to.
    pub(crate) binding: Binding,
    /// The call, without its arguments and the context of its last request, which come with each request.
    pub(crate) call: Call,
    /// What earlier runs learned. It ends with the questions that the client was asked.
    pub(crate) record: Record,
    /// Answers to some of these questions, by key.
    pub(crate) answers: BTreeMap<String, String>,
}

/// What a state can be used for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Binding {
    /// The method and the name: `tools/call echo`.
    pub(crate) target: String,
    /// SHA-256 of the arguments' text.
    pub(crate) arguments: [u8; 32],
    /// Who called.
    pub(crate) principal: String,
    /// The plugin.
    pub(crate) plugin: String,
    /// Its version.
    pub(crate) version: String,
    /// Until when: milliseconds since 1970-01-01T00:00:00Z.
    pub(crate) expires_ms: u64,
}

impl Binding {
    /// The digest of the arguments' text.
    pub(crate) fn digest(arguments: &str) -> [u8; 32] {
        Sha256::digest(arguments.as_bytes()).into()
    }

    /// Whether a state with this binding is for the same call as `other`, now.
    ///
    /// # Errors
    /// What does not fit, for the client.
    pub(crate) fn admits(&self, other: &Self, now_ms: u64) -> Result<(), &'static str> {
        if self.expires_ms < now_ms {
            return Err("it has expired; start again without it");
        }
        if self.principal != other.principal || self.target != other.target {
            return Err("it belongs to another call");
        }
        if self.arguments != other.arguments {
            return Err("it was made for other arguments; repeat those of the first request");
        }
        Ok(())
    }
}

/// The keys that states are sealed with: a new one, and the one before it, which still opens.
pub(crate) struct Sealer {
    current: XChaCha20Poly1305,
    former: Option<XChaCha20Poly1305>,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

impl Sealer {
    /// Keys from a folder: `state.key`, made if it is missing, and `state.former.key` if it is there. To rotate, rename the one
    /// to the other and restart.
    ///
    /// # Errors
    /// If a key cannot be read or made.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let cipher = |key: [u8; 32]| XChaCha20Poly1305::new(&key.into());
        let current = cipher(longshore_runtime::read_or_make_key(
            &folder.join("state.key"),
        )?);
        let former = folder.join("state.former.key");
        let former = if former.exists() {
            Some(cipher(longshore_runtime::read_or_make_key(&former)?))
        } else {
            None
        };
        Ok(Self { current, former })
    }

    /// Keys from files of the operator, which other servers may share: the first seals and opens, the second only opens. To
    /// rotate, put a new one before the first and restart.
    ///
    /// # Errors
    /// If one cannot be read, is no key, or can be read by everybody; the text says which, and what to do.
    pub(crate) fn of_files(files: &[PathBuf]) -> io::Result<Self> {
        let mut ciphers = Vec::with_capacity(files.len());
        for file in files {
            let key = read_key(file).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", file.display()))
            })?;
            ciphers.push(XChaCha20Poly1305::new(&key.into()));
        }
        let mut ciphers = ciphers.into_iter();
        let current = ciphers.next();
        let current = current.ok_or_else(|| io::Error::other("there is none"))?;
        let former = ciphers.next();
        Ok(Self { current, former })
    }

    /// Seal a state. `None`: it is larger than [`STATE_BYTES_MAX`], or the system has no random numbers.
    pub(crate) fn seal(&self, state: &State) -> Option<String> {
        let plain = rmp_serde::to_vec_named(state).ok()?;
        if plain.len() > OPENED_BYTES_MAX {
            return None;
        }
        let compressed = miniz_oxide::deflate::compress_to_vec(&plain, LEVEL);
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload {
            msg: &compressed,
            aad: CONTEXT,
        };
        let mut sealed = nonce.to_vec();
        sealed.extend(self.current.encrypt(&XNonce::from(nonce), payload).ok()?);
        let text = URL_SAFE_NO_PAD.encode(sealed);
        (text.len() <= STATE_BYTES_MAX).then_some(text)
    }

    /// Open a state. `None`: it was not sealed here, or was changed.
    pub(crate) fn open_state(&self, text: &str) -> Option<State> {
        if text.len() > STATE_BYTES_MAX {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = sealed.split_at_checked(NONCE_BYTES)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
        let open = |cipher: &XChaCha20Poly1305| {
            cipher
                .decrypt(
                    &XNonce::from(nonce),
                    Payload {
                        msg: sealed,
                        aad: CONTEXT,
                    },
                )
                .ok()
        };
        let compressed = open(&self.current).or_else(|| self.former.as_ref().and_then(open))?;
        let plain =
            miniz_oxide::inflate::decompress_to_vec_with_limit(&compressed, OPENED_BYTES_MAX)
                .ok()?;
        rmp_serde::from_slice(&plain).ok()
    }
}

fn read_key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let file = longshore_runtime::open_regular(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(io::Error::other(format!(
            "everybody may use it (mode {mode:04o}); let only the user of the server: chmod 600"
        )));
    }
    let mut key = Vec::new();
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut key)?;
    key.try_into().map_err(|key: Vec<u8>| {
        let size = match key.len() {
            more if more > KEY_BYTES => "more".to_owned(),
            fewer => format!("only {fewer}"),
        };
        io::Error::other(format!(
            "a key is {KEY_BYTES} random bytes, and there are {size}; make one: head -c {KEY_BYTES} /dev/urandom"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_runtime::contract::ClientFeatures;
    use longshore_runtime::{Context, GrantsPrint, Limits, Work};

    fn state(record: Vec<u8>) -> State {
        let context = Context {
            features: ClientFeatures::empty(),
            log_level: None,
            trace: Vec::new(),
        };
        let work = Work::Tool {
            name: "echo".to_owned(),
            arguments: String::new(),
        };
        State {
            binding: Binding {
                target: "tools/call echo".to_owned(),
                arguments: Binding::digest("{}"),
                principal: "anonymous".to_owned(),
                plugin: "echo".to_owned(),
                version: "0".repeat(64),
                expires_ms: 1_000,
            },
            call: Call::begin(work, context, (Limits::default(), GrantsPrint::default())).unwrap(),
            record: Record::from_bytes(record),
            answers: BTreeMap::new(),
        }
    }

    #[test]
    fn what_was_sealed_opens_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let sealer = Sealer::open(folder.path()).unwrap();
        let sealed = sealer.seal(&state(vec![1, 2, 3])).unwrap();
        assert_eq!(
            sealer.open_state(&sealed).unwrap().record.as_bytes(),
            [1, 2, 3]
        );
        assert!(sealer.open_state(&format!("{sealed}-TAMPERED")).is_none());
        for place in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            assert!(
                sealer
                    .open_state(std::str::from_utf8(&changed).unwrap())
                    .is_none(),
                "{place}"
            );
        }
    }

    #[test]
    fn the_key_before_still_opens() {
        let folder = tempfile::tempdir().unwrap();
        let sealed = Sealer::open(folder.path())
            .unwrap()
            .seal(&state(vec![]))
            .unwrap();
        let (key, former) = (
            folder.path().join("state.key"),
            folder.path().join("state.former.key"),
        );
        std::fs::rename(&key, former).unwrap();
        assert!(
            Sealer::open(folder.path())
                .unwrap()
                .open_state(&sealed)
                .is_some()
        );
    }

    #[test]
    fn a_record_that_does_not_compress_is_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let sealer = Sealer::open(folder.path()).unwrap();
        let mut noise = vec![0; 100 << 10];
        getrandom::fill(&mut noise).unwrap();
        assert!(sealer.seal(&state(noise)).is_none());
        assert!(sealer.seal(&state(vec![7; 100 << 10])).is_some());
    }

    #[test]
    fn a_binding_admits_its_own_call_only() {
        let binding = state(vec![]).binding;
        assert!(binding.admits(&binding, 1_000).is_ok());
        assert!(binding.admits(&binding, 1_001).is_err());
        let other = |change: fn(&mut Binding)| {
            let mut other = binding.clone();
            change(&mut other);
            binding.admits(&other, 0)
        };
        assert!(other(|b| b.principal = "eve".to_owned()).is_err());
        assert!(other(|b| b.target = "tools/call other".to_owned()).is_err());
        assert!(other(|b| b.arguments = Binding::digest("{ }")).is_err());
    }
}

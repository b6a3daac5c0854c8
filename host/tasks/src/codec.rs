//! Tasks to bytes and back, so that every store keeps the same.
//!
//! One byte of schema version, then MessagePack with named fields: a field added later has a
//! default, and a change that old code cannot read raises the version.

use crate::state::Task;

/// The schema this program writes, and the newest it reads.
pub const SCHEMA: u8 = 1;

/// Why bytes are no task.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// Written by a newer program.
    #[error("the task has schema {found}, this program knows {SCHEMA}: use a newer longshore")]
    Newer {
        /// The schema it has.
        found: u8,
    },
    /// No schema this program has ever written.
    #[error("the task has no known schema")]
    Unknown,
    /// The schema is known, the content is not as it says.
    #[error("the task cannot be decoded: {0}")]
    Decode(#[from] rmp_serde::decode::Error),
    /// It cannot be written.
    #[error("the task cannot be encoded: {0}")]
    Encode(#[from] rmp_serde::encode::Error),
}

/// The bytes of `task`.
pub fn encode(task: &Task) -> Result<Vec<u8>, CodecError> {
    let mut bytes = vec![SCHEMA];
    rmp_serde::encode::write_named(&mut bytes, task)?;
    Ok(bytes)
}

/// The task of these bytes.
pub fn decode(bytes: &[u8]) -> Result<Task, CodecError> {
    match bytes.split_first() {
        Some((&SCHEMA, body)) => Ok(rmp_serde::from_slice(body)?),
        Some((&found, _)) if found > SCHEMA => Err(CodecError::Newer { found }),
        _ => Err(CodecError::Unknown),
    }
}

/// Byte strings as such: serde's own form of `Vec<u8>` is a list of numbers, half as large again.
pub(crate) mod bytes {
    use std::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        from.deserialize_byte_buf(Bytes)
    }

    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a byte string")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }
}

/// The same for a byte string that may be absent.
pub(crate) mod maybe_bytes {
    use serde::de::Deserializer;
    use serde::ser::Serializer;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Bytes(#[serde(with = "super::bytes")] Vec<u8>);

    #[derive(Serialize)]
    #[serde(transparent)]
    struct Borrowed<'a>(#[serde(serialize_with = "super::bytes::serialize")] &'a [u8]);

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        bytes.as_deref().map(Borrowed).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        Ok(Option::<Bytes>::deserialize(from)?.map(|bytes| bytes.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Principal, TaskId};
    use crate::model::{Birth, Call, Checkpoint, Question};

    fn task() -> Task {
        let call = Call {
            principal: Principal::anonymous(),
            plugin: "p".into(),
            version: "v".into(),
            tool: "t".into(),
            body: vec![200; 1000],
        };
        let question = Question {
            key: "q".into(),
            request: "{}".into(),
        };
        let checkpoint = Checkpoint::new(vec![question], Some(vec![255; 1000]));
        let birth = Birth {
            poll_interval_ms: 500,
            ttl_ms: Some(1000),
        };
        Task::born(TaskId::random().unwrap(), call, birth, 7).asked_before(Some(checkpoint))
    }

    #[test]
    fn a_task_round_trips_in_about_its_own_size() {
        let task = task();
        let bytes = encode(&task).unwrap();
        assert_eq!(decode(&bytes).unwrap(), task);
        assert!(bytes.len() < 2600, "{} bytes", bytes.len());
    }

    #[test]
    fn a_newer_schema_and_nonsense_are_named() {
        let mut bytes = encode(&task()).unwrap();
        bytes[0] = SCHEMA + 1;
        assert!(matches!(decode(&bytes), Err(CodecError::Newer { found }) if found == SCHEMA + 1));
        assert!(matches!(decode(&[]), Err(CodecError::Unknown)));
        assert!(matches!(decode(&[0, 1]), Err(CodecError::Unknown)));
        assert!(matches!(
            decode(&[SCHEMA, 1, 2]),
            Err(CodecError::Decode(_))
        ));
    }
}

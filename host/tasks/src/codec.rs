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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Principal, TaskId};
    use crate::model::{Birth, Call, Checkpoint, OnCrash, Question};

    fn task() -> Task {
        let call = Call {
            principal: Principal::anonymous(),
            plugin: "p".into(),
            version: "v".into(),
            tool: "t".into(),
            on_crash: OnCrash::Resume,
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
            pinned: false,
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

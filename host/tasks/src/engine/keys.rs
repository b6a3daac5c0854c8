//! Keys of questions, as a run and as its task have them. Knows nothing of what is asked.

use crate::model::Question;
use crate::state::Task;

/// The keys of a run as its task has them. A key is used once in the life of a task, but a run that
/// starts over uses its keys again: from the second such run on they carry its number.
pub(super) struct Keys {
    suffix: String,
}

impl Keys {
    pub(super) fn of(task: &Task) -> Self {
        let suffix = match task.reruns {
            0 => String::new(),
            reruns => format!("~{}", reruns.saturating_add(1)),
        };
        Self { suffix }
    }

    /// As the task has it.
    pub(super) fn outward(&self, mut question: Question) -> Question {
        question.key.push_str(&self.suffix);
        question
    }

    /// As the run has it.
    pub(super) fn inward<'a>(&self, key: &'a str) -> &'a str {
        key.strip_suffix(&self.suffix).unwrap_or(key)
    }
}

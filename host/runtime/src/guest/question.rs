//! Questions of a guest: which may be asked, under which keys, and the wait for their answers.
//!
//! It must not know how a question looks on the wire; whether it is a valid one it is told by the rules of the run.

use super::Guest;
use super::refusal::Remedy;
use super::task::{decode, encode};
use crate::contract::generated::longshore::plugin::task::InputError;
use crate::contract::{
    ClientFeatures, IncludeContext, InputAnswer, InputKind, InputRequest, feature_names,
};
use crate::limits::Limit;
use crate::record::Import;
use crate::run::{Question, Reply, Step};
use wasmtime::Result;

/// Questions asked at once. A person would not answer more.
const QUESTIONS_AT_ONCE_MAX: usize = 16;

impl Guest {
    pub(super) fn check_questions(
        &mut self,
        requests: &[InputRequest],
    ) -> std::result::Result<(), String> {
        if self.seat.shared.is_completed() {
            return Err("the call has its result; nothing can be asked any more".to_owned());
        }
        if requests.is_empty() || requests.len() > QUESTIONS_AT_ONCE_MAX {
            return Err(format!(
                "1 to {QUESTIONS_AT_ONCE_MAX} questions can be asked at once"
            ));
        }
        if self.rounds >= self.limits().questions {
            self.refusals.exceed(Limit::Questions);
            return Err(format!(
                "limits.questions = {} is used up",
                self.limits().questions
            ));
        }
        for request in requests {
            check_name(&request.name)?;
            (self.seat.rules.check_question)(request)?;
        }
        self.rounds += 1;
        Ok(())
    }

    /// The operator may have withheld this kind of question.
    pub(super) fn check_granted(&self, kind: &InputKind) -> std::result::Result<(), String> {
        let ask = self.seat.grants.ask;
        let (granted, kind) = match kind {
            InputKind::Form(_) | InputKind::Url(_) => (ask.elicitation, "elicitation"),
            InputKind::Sampling(_) => (ask.sampling, "sampling"),
            InputKind::Roots => (ask.roots, "roots"),
        };
        if granted {
            return Ok(());
        }
        let kinds = [
            (ask.elicitation, "elicitation"),
            (ask.sampling, "sampling"),
            (ask.roots, "roots"),
        ];
        let kinds = kinds
            .iter()
            .filter(|(granted, name)| *granted || *name == kind);
        let kinds: Vec<_> = kinds.map(|(_, name)| format!("{name:?}")).collect();
        let line = format!("ask = [{}]", kinds.join(", "));
        self.refusals.deny(
            &format!("asking the client ({kind})"),
            Remedy::line("ask", line),
        );
        Err(format!(
            "the operator does not let this plugin ask the client: {kind}"
        ))
    }

    /// The client must have declared what it is asked. A refusal is part of the record, for another request of the same call
    /// may declare something else.
    pub(super) fn refuse_unsupported(
        &mut self,
        requests: &[InputRequest],
        asked: &[u8],
    ) -> Result<Option<String>> {
        let needed = requests
            .iter()
            .map(|request| features_needed(&request.kind))
            .fold(ClientFeatures::empty(), |all, needed| all | needed);
        if let Some(recorded) = self.tape.replay_value(Import::RefusedQuestion, asked)? {
            self.refused_features = decode(&recorded)?;
        } else if self.repeats_itself() {
            return Ok(None);
        } else {
            let declared = self.seat.call.context.features;
            let missing = needed & (declared ^ ClientFeatures::all());
            if missing == ClientFeatures::empty() {
                return Ok(None);
            }
            self.tape
                .record_value(Import::RefusedQuestion, asked, &encode(&missing)?);
            self.refused_features = missing;
        }
        Ok(Some(format!(
            "the client did not declare {}",
            feature_names(self.refused_features).join(", ")
        )))
    }

    /// Keys are unique for the life of a call. They follow from the guest's own names, so a replay issues the same ones.
    pub(super) fn issue_keys(&mut self, requests: Vec<InputRequest>) -> Vec<Question> {
        let issue = |request: InputRequest| {
            let mut key = request.name.clone();
            let mut suffix = 2;
            while !self.keys.insert(key.clone()) {
                key = format!("{}-{suffix}", request.name);
                suffix += 1;
            }
            Question {
                key,
                kind: request.kind,
            }
        };
        requests.into_iter().map(issue).collect()
    }

    pub(super) async fn wait_for_answers(
        &mut self,
        questions: Vec<Question>,
    ) -> Result<std::result::Result<Vec<InputAnswer>, InputError>> {
        let count = questions.len();
        let record = self.tape.record();
        self.seat.shared.stop_clock();
        self.seat.shared.hold(self.held_bytes());
        let step = Step::NeedsInput { questions, record };
        // If the holder is gone, so will be this guest: the wait below ends with its future.
        let _ = self.seat.steps.send(step).await;
        let shared = self.seat.shared.clone();
        let reply = tokio::select! {
            reply = self.seat.replies.recv() => reply,
            () = shared.interruption() => None,
        };
        self.seat.shared.start_clock();
        Ok(match reply {
            Some(Reply::Answers(answers)) if answers.len() == count => Ok(answers),
            _ => Err(InputError::Interrupted),
        })
    }
}

fn check_name(name: &str) -> std::result::Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(format!(
        "the name of a question is 1 to 64 of A-Z a-z 0-9 _ . -, not {name:?}"
    ))
}

/// What a client must declare to be asked this.
fn features_needed(kind: &InputKind) -> ClientFeatures {
    match kind {
        InputKind::Form(_) => ClientFeatures::ELICITATION_FORM,
        InputKind::Url(_) => ClientFeatures::ELICITATION_URL,
        InputKind::Roots => ClientFeatures::ROOTS,
        InputKind::Sampling(request) => {
            let mut needed = ClientFeatures::SAMPLING;
            if !request.tools.is_empty() || request.tool_choice.is_some() {
                needed |= ClientFeatures::SAMPLING_TOOLS;
            }
            if let Some(IncludeContext::ThisServer | IncludeContext::AllServers) =
                request.include_context
            {
                needed |= ClientFeatures::SAMPLING_CONTEXT;
            }
            needed
        }
    }
}

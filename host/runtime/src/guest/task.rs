//! The imports of the contract: progress, questions, the result, the log.

use super::Guest;
use crate::clock;
use crate::contract::generated::longshore::plugin::{log, notify, task, types};
use crate::contract::{
    CallResult, ClientFeatures, ContentBlock, InputAnswer, InputRequest, ResourceBody,
};
use crate::json;
use crate::limits::Limit;
use crate::record::Import;
use crate::run::{LogMessage, Progress, Question, Reply, Step, features_needed};
use serde::de::DeserializeOwned;
use std::time::Instant;
use task::{CallContext, CompleteError, ExternalIdError, InputError};
use wasmtime::Result;

/// An id of a guest's own for its call.
const EXTERNAL_ID_BYTES_MAX: usize = 256;

/// Questions asked at once. A person would not answer more.
const QUESTIONS_AT_ONCE_MAX: usize = 16;

/// A progress message is one line for a person; what is longer is cut.
const PROGRESS_MESSAGE_BYTES_MAX: usize = 1 << 10;

impl types::Host for Guest {}

impl task::Host for Guest {
    fn report_progress(
        &mut self,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> Result<()> {
        if !self.progress.admits(progress, self.repeats_itself()) {
            return Ok(());
        }
        let step = Step::Progress(Progress {
            progress,
            total: total.filter(|total| total.is_finite()),
            message: message.map(one_line),
        });
        // Only the newest is of interest: with a full channel this one is dropped.
        let _ = self.seat.steps.try_send(step);
        Ok(())
    }

    async fn request_input(
        &mut self,
        requests: Vec<InputRequest>,
    ) -> Result<std::result::Result<Vec<InputAnswer>, InputError>> {
        if let Err(wrong) = self.check_questions(&requests) {
            return Ok(Err(InputError::Invalid(wrong)));
        }
        self.stop_recording_if_wished();
        let asked = encode(&requests)?;
        if let Some(refusal) = self.refuse_unsupported(&requests, &asked)? {
            return Ok(Err(InputError::Unsupported(refusal)));
        }
        let questions = self.issue_keys(requests);
        if let Some(answers) = self.tape.ask(&asked)? {
            return Ok(Ok(decode(&answers)?));
        }
        // The end of the record: from here on what the guest says is new.
        self.output.mute(false);
        let answers = self.wait_for_answers(questions).await?;
        if let Ok(answers) = &answers {
            self.tape.record_answers(&encode(answers)?);
        }
        Ok(answers)
    }

    fn complete(&mut self, result: CallResult) -> Result<std::result::Result<(), CompleteError>> {
        if self.is_complete() {
            return Ok(Err(CompleteError::AlreadyComplete));
        }
        if let Err(wrong) = self.check_result(&result) {
            self.refused_result = Some(wrong.clone());
            return Ok(Err(CompleteError::Invalid(wrong)));
        }
        self.take_result(result);
        Ok(Ok(()))
    }

    async fn begin(&mut self) -> Result<()> {
        if self.seat.listing || std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        // The questions before and after are two name spaces.
        self.keys.clear();
        self.seat.shared.stop_clock();
        if self.seat.steps.send(Step::Begin).await.is_ok() {
            // Without a reply the holder is gone, and the guest with it.
            let _ = self.seat.replies.recv().await;
        }
        self.seat.shared.start_clock();
        Ok(())
    }

    /// Not recorded: it is false in every stretch that is ever replayed, for after the wish nothing is.
    fn cancelled(&mut self) -> Result<bool> {
        Ok(self.seat.shared.is_wished() && !self.repeats_itself())
    }

    fn context(&mut self) -> Result<CallContext> {
        self.stop_recording_if_wished();
        if let Some(recorded) = self.tape.replay_value(Import::Context, &[])? {
            return decode(&recorded);
        }
        let known = &self.seat.call.context;
        let left_ms = u64::try_from(self.seat.shared.time_left().as_millis()).unwrap_or(u64::MAX);
        let context = CallContext {
            features: known.features,
            log_level: known.log_level,
            trace: known.trace.clone(),
            deadline_ms: Some(clock::unix_ms().saturating_add(left_ms)),
        };
        self.tape
            .record_value(Import::Context, &[], &encode(&context)?);
        Ok(context)
    }

    fn external_id(&mut self) -> Result<Option<String>> {
        self.stop_recording_if_wished();
        if let Some(recorded) = self.tape.replay_value(Import::ExternalId, &[])? {
            return decode(&recorded);
        }
        let id = self.external_id.clone();
        self.tape
            .record_value(Import::ExternalId, &[], &encode(&id)?);
        Ok(id)
    }

    fn set_external_id(&mut self, id: String) -> Result<std::result::Result<(), ExternalIdError>> {
        let visible = id.bytes().all(|byte| byte.is_ascii_graphic());
        if id.is_empty() || id.len() > EXTERNAL_ID_BYTES_MAX || !visible {
            return Ok(Err(ExternalIdError::Invalid(format!(
                "an external id is 1 to {EXTERNAL_ID_BYTES_MAX} bytes of visible ASCII"
            ))));
        }
        self.external_id = Some(id.clone());
        if !self.repeats_itself() {
            let _ = self.seat.steps.try_send(Step::ExternalId(id));
        }
        Ok(Ok(()))
    }
}

impl Guest {
    fn is_complete(&self) -> bool {
        self.seat.shared.is_completed()
    }

    fn check_questions(&mut self, requests: &[InputRequest]) -> std::result::Result<(), String> {
        if self.is_complete() {
            return Err("the call has its result; nothing can be asked any more".to_owned());
        }
        if requests.is_empty() || requests.len() > QUESTIONS_AT_ONCE_MAX {
            return Err(format!(
                "1 to {QUESTIONS_AT_ONCE_MAX} questions can be asked at once"
            ));
        }
        if self.rounds >= self.limits().questions {
            self.meter.exceed(Limit::Questions);
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

    /// The client must have declared what it is asked. A refusal is part of the record, for another request of the same call
    /// may declare something else.
    fn refuse_unsupported(
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
            let missing = needed & (declared ^ all_features());
            if missing == ClientFeatures::empty() {
                return Ok(None);
            }
            self.tape
                .record_value(Import::RefusedQuestion, asked, &encode(&missing)?);
            self.refused_features = missing;
        }
        Ok(Some(format!(
            "the client did not declare {:?}",
            self.refused_features
        )))
    }

    /// Keys are unique for the life of a call. They follow from the guest's own names, so a replay issues the same ones.
    fn issue_keys(&mut self, requests: Vec<InputRequest>) -> Vec<Question> {
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

    async fn wait_for_answers(
        &mut self,
        questions: Vec<Question>,
    ) -> Result<std::result::Result<Vec<InputAnswer>, InputError>> {
        let count = questions.len();
        let record = self.tape.record();
        self.seat.shared.stop_clock();
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

    fn check_result(&mut self, result: &CallResult) -> std::result::Result<(), String> {
        let bytes = result_bytes(result);
        if bytes > self.limits().result_bytes {
            self.meter.exceed(Limit::ResultBytes);
            return Err(format!(
                "the result has {bytes} bytes; limits.result_bytes = {}",
                self.limits().result_bytes
            ));
        }
        if let Some(structured) = &result.structured_content {
            json::check(structured, "structured-content")?;
        }
        for meta in result_metas(result) {
            json::check(meta, "meta")?;
            if !meta.trim_start().starts_with('{') {
                return Err("meta is not a JSON object".to_owned());
            }
        }
        Ok(())
    }
}

fn all_features() -> ClientFeatures {
    ClientFeatures::all()
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

/// Text and decoded bytes of all parts of a result.
fn result_bytes(result: &CallResult) -> u64 {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let body = |body: &ResourceBody| match body {
        ResourceBody::Text(text) => text.len(),
        ResourceBody::Blob(bytes) => bytes.len(),
    };
    let block = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => text.text.len() + length(&text.meta),
        ContentBlock::Image(media) | ContentBlock::Audio(media) => {
            media.data.len() + media.mime_type.len() + length(&media.meta)
        }
        ContentBlock::ResourceLink(link) => {
            link.uri.len()
                + link.name.len()
                + length(&link.title)
                + length(&link.description)
                + link.icons.iter().map(|icon| icon.src.len()).sum::<usize>()
                + length(&link.meta)
        }
        ContentBlock::Resource(embedded) => {
            embedded.contents.uri.len()
                + body(&embedded.contents.body)
                + length(&embedded.contents.meta)
                + length(&embedded.meta)
        }
    };
    // Each block also costs its frame on the wire.
    const BLOCK_BYTES: usize = 64;
    let blocks: usize = result
        .content
        .iter()
        .map(|content| BLOCK_BYTES + block(content))
        .sum();
    (blocks + length(&result.structured_content) + length(&result.meta)) as u64
}

fn result_metas(result: &CallResult) -> impl Iterator<Item = &String> {
    let metas = result.content.iter().flat_map(|block| match block {
        ContentBlock::Text(text) => [text.meta.as_ref(), None],
        ContentBlock::Image(media) | ContentBlock::Audio(media) => [media.meta.as_ref(), None],
        ContentBlock::ResourceLink(link) => [link.meta.as_ref(), None],
        ContentBlock::Resource(embedded) => {
            [embedded.meta.as_ref(), embedded.contents.meta.as_ref()]
        }
    });
    metas.flatten().chain(result.meta.as_ref())
}

fn one_line(mut message: String) -> String {
    let mut end = PROGRESS_MESSAGE_BYTES_MAX.min(message.len());
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
    message.replace(|character: char| character.is_control(), " ")
}

fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>> {
    Ok(rmp_serde::to_vec_named(value)?)
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    Ok(rmp_serde::from_slice(bytes)?)
}

impl log::Host for Guest {
    fn log(&mut self, level: types::LogLevel, logger: Option<String>, data: String) -> Result<()> {
        let repeated = self.repeats_itself();
        if json::check(&data, "data").is_err()
            || !self.output.line("log", &data, repeated)
            || repeated
        {
            return Ok(());
        }
        let wanted = self.seat.call.context.log_level;
        if wanted.is_some_and(|least| level as u8 >= least as u8) {
            // With a slow reader the message is dropped, as a log may be.
            let _ = self.seat.steps.try_send(Step::Log(LogMessage {
                level,
                logger,
                data,
            }));
        }
        Ok(())
    }
}

// No client can subscribe yet, so there is nobody to tell; the operator may want to see that a plugin tries.
impl notify::Host for Guest {
    fn tools_changed(&mut self) -> Result<()> {
        self.nobody_listens("tools-changed")
    }

    fn prompts_changed(&mut self) -> Result<()> {
        self.nobody_listens("prompts-changed")
    }

    fn resources_changed(&mut self) -> Result<()> {
        self.nobody_listens("resources-changed")
    }

    fn resource_updated(&mut self, _uri: String) -> Result<()> {
        self.nobody_listens("resource-updated")
    }
}

impl Guest {
    fn nobody_listens(&self, signal: &str) -> Result<()> {
        tracing::debug!(plugin = %self.seat.plugin, signal, "a plugin has news, and no client can subscribe");
        Ok(())
    }
}

/// Lets progress through that rises, and not faster than the limit.
pub(super) struct ProgressGate {
    highest: Option<f64>,
    per_second: u32,
    window: Option<(Instant, u32)>,
}

impl ProgressGate {
    pub(super) fn new(per_second: u32) -> Self {
        Self {
            highest: None,
            per_second,
            window: None,
        }
    }

    fn admits(&mut self, progress: f64, repeated: bool) -> bool {
        let rises = progress.is_finite() && self.highest.is_none_or(|highest| progress > highest);
        if !rises {
            return false;
        }
        if repeated {
            // It was sent before; the later ones must still rise above it.
            self.highest = Some(progress);
            return false;
        }
        let now = clock::instant();
        let (since, count) = self.window.unwrap_or((now, 0));
        let (since, count) = if now.duration_since(since).as_secs() >= 1 {
            (now, 0)
        } else {
            (since, count)
        };
        self.window = Some((since, count + 1));
        if count >= self.per_second {
            return false;
        }
        self.highest = Some(progress);
        true
    }
}

//! The imports `task` and `log` of the contract: progress, questions, the result, the log.

use super::Guest;
use super::rate::Rate;
use crate::call::Work;
use crate::clock;
use crate::contract::generated::longshore::plugin::{log, task, types};
use crate::contract::{CallResult, ContentBlock, InputAnswer, InputRequest, TextContent};
use crate::json;
use crate::record::Import;
use crate::run::{Answer, LogMessage, Progress, Step};
use serde::de::DeserializeOwned;
use task::{CallContext, CompleteError, ExternalIdError, InputError};
use wasmtime::Result;

/// An id of a guest's own for its call.
const EXTERNAL_ID_BYTES_MAX: usize = 256;

/// A progress message is one line for a person; what is longer is cut.
const PROGRESS_MESSAGE_BYTES_MAX: usize = 1 << 10;

/// Only a tool has a result to give by `complete`.
const NOT_A_TOOL: &str = "this call is not of a tool; return the answer instead";

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
        let withheld = requests
            .iter()
            .find_map(|request| self.check_granted(&request.kind).err());
        if let Some(withheld) = withheld {
            return Ok(Err(InputError::Unsupported(withheld)));
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
        if !matches!(self.seat.call.work, Work::Tool { .. }) {
            return Ok(Err(CompleteError::Invalid(NOT_A_TOOL.to_owned())));
        }
        if self.seat.shared.is_completed() {
            return Ok(Err(CompleteError::AlreadyComplete));
        }
        let answer = Answer::Tool(self.telling_refusals(result));
        if let Err(wrong) = self.check_answer(&answer) {
            self.refused_result = Some(wrong.clone());
            return Ok(Err(CompleteError::Invalid(wrong)));
        }
        self.take_answer(answer);
        Ok(Ok(()))
    }

    async fn begin(&mut self) -> Result<()> {
        let is_tool = matches!(self.seat.call.work, Work::Tool { .. });
        if !is_tool || self.seat.listing || std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        // The questions before and after are two name spaces.
        self.keys.clear();
        self.tell_and_wait(Step::Begin).await;
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

    async fn set_external_id(
        &mut self,
        id: String,
    ) -> Result<std::result::Result<(), ExternalIdError>> {
        let visible = id.bytes().all(|byte| byte.is_ascii_graphic());
        if id.is_empty() || id.len() > EXTERNAL_ID_BYTES_MAX || !visible {
            return Ok(Err(ExternalIdError::Invalid(format!(
                "an external id is 1 to {EXTERNAL_ID_BYTES_MAX} bytes of visible ASCII"
            ))));
        }
        self.external_id = Some(id.clone());
        if !self.repeats_itself() && !self.seat.listing {
            self.tell_and_wait(Step::ExternalId(id)).await;
        }
        Ok(Ok(()))
    }
}

impl Guest {
    /// Reports a step and waits until the holder lets the guest go on.
    async fn tell_and_wait(&mut self, step: Step) {
        self.seat.shared.stop_clock();
        if self.seat.steps.send(step).await.is_ok() {
            // Without a reply the holder is gone, and the guest with it.
            let _ = self.seat.replies.recv().await;
        }
        self.seat.shared.start_clock();
    }

    /// An error of a tool, with what was denied or too much: the guest itself may not know why it failed.
    fn telling_refusals(&self, mut result: CallResult) -> CallResult {
        if result.is_error {
            let exceeded = self.exceeded();
            let exceeded = exceeded.map(|limit| self.refusals.told_limit(limit, self.limits()));
            let texts = self.denied().into_iter().chain(exceeded);
            result.content.extend(texts.map(|text| {
                ContentBlock::Text(TextContent {
                    text,
                    annotations: None,
                    meta: None,
                })
            }));
        }
        result
    }
}

fn one_line(mut message: String) -> String {
    let mut end = PROGRESS_MESSAGE_BYTES_MAX.min(message.len());
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
    message.replace(|character: char| character.is_control(), " ")
}

pub(super) fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>> {
    Ok(rmp_serde::to_vec_named(value)?)
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
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

/// Lets progress through that rises, and not faster than the limit.
pub(super) struct ProgressGate {
    highest: Option<f64>,
    rate: Rate,
}

impl ProgressGate {
    pub(super) fn new(per_second: u32) -> Self {
        Self {
            highest: None,
            rate: Rate::new(per_second),
        }
    }

    fn admits(&mut self, progress: f64, repeated: bool) -> bool {
        let rises = progress.is_finite() && self.highest.is_none_or(|highest| progress > highest);
        // What is repeated was sent before; the later ones must still rise above it.
        if !rises || (!repeated && !self.rate.admits()) {
            return false;
        }
        self.highest = Some(progress);
        !repeated
    }
}

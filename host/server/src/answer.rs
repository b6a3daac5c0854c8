//! Answers of guests, worded for the method that was called.

use crate::app::App;
use crate::errand::{Errand, speaker};
use crate::lists::Freshness;
use crate::wire::{WireError, given};
use longshore_runtime::contract::ReadOutcome;
use longshore_runtime::{Answer, Plugin, Usage, Work};
use serde_json::json;

/// The text of the result object, with what the run used if that is to be told.
///
/// # Errors
/// What the client is told if the answer is none that can be passed on.
pub(crate) async fn word(
    app: &App,
    errand: &Errand,
    plugin: &Plugin,
    (answer, usage): (&Answer, Option<&Usage>),
) -> Result<String, WireError> {
    let worded = match answer {
        Answer::Tool(_) => {
            let subject = errand.work.subject();
            let worded = app.results.answer(plugin, subject, (answer, usage));
            return worded.await;
        }
        Answer::Prompt(result) => given::prompt(result, usage),
        Answer::Resource(ReadOutcome::NotFound) => {
            return Err(WireError::no_such_resource(errand.work.subject()));
        }
        Answer::Resource(ReadOutcome::Found(contents)) => given::contents(contents).map(|object| {
            let freshness = if errand.is_later_round() {
                Freshness::none()
            } else {
                Freshness::of_reads(app)
            };
            freshness.add_to(object).finish_answer(usage)
        }),
        Answer::Completion(completion) => Ok(given::completion(completion, usage)),
        Answer::Done => Ok(String::new()),
    };
    worded.map_err(|wrong| invalid(plugin, &errand.work, &wrong))
}

fn invalid(plugin: &Plugin, work: &Work, wrong: &str) -> WireError {
    let speaker = speaker(plugin, work);
    let message = format!("{speaker} gave what is not valid: {wrong}; tell its author");
    WireError::new(-32603, message).with_data(&json!({
        "reason": "invalid_result",
        "plugin": speaker.plugin,
        (speaker.kind): speaker.subject,
    }))
}

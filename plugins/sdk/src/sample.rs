//! Questions to the client's model.

use crate::ask::{question_methods, unexpected};
use crate::contract::longshore::plugin::task::{
    InputAnswer, InputKind, InputRequest, ModelPreferences, SamplingContent, SamplingMessage,
    SamplingRequest,
};
use crate::contract::longshore::plugin::types::TextContent;
use crate::{AskError, Question, Role};

pub use crate::contract::longshore::plugin::task::SamplingAnswer as Sampled;

/// How long an answer may be if the question does not say: enough for a page of text.
const DEFAULT_MAX_TOKENS: u32 = 1024;

/// A question to the client's model, to be refined and then asked.
///
/// ```no_run
/// # fn f() -> longshore_plugin::Result<()> {
/// let haiku = longshore_plugin::sample("Write a haiku about ports.").max_tokens(100).ask()?;
/// println!("{}", haiku.text());
/// # Ok(()) }
/// ```
pub fn sample(prompt: &str) -> Sample {
    Sample {
        name: "sampling".into(),
        request: SamplingRequest {
            messages: vec![message(Role::User, prompt)],
            max_tokens: DEFAULT_MAX_TOKENS,
            system_prompt: None,
            temperature: None,
            stop_sequences: Vec::new(),
            model_preferences: None,
            include_context: None,
            tools: Vec::new(),
            tool_choice: None,
            metadata: None,
        },
    }
}

fn message(role: Role, text: &str) -> SamplingMessage {
    let text = TextContent {
        text: text.into(),
        annotations: None,
        meta: None,
    };
    SamplingMessage {
        role,
        content: vec![SamplingContent::Text(text)],
    }
}

/// A question to the client's model.
#[derive(Debug, Clone)]
pub struct Sample {
    name: String,
    /// All that can be said to the model, for what has no method here.
    pub request: SamplingRequest,
}

impl Sample {
    question_methods!();

    /// Adds what was said before or after, by the user or the model.
    #[must_use]
    pub fn message(mut self, role: Role, text: &str) -> Self {
        self.request.messages.push(message(role, text));
        self
    }

    /// At most this many tokens in the answer; 1024 if nothing is said.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.request.max_tokens = tokens;
        self
    }

    /// How the model shall behave.
    #[must_use]
    pub fn system_prompt(mut self, text: &str) -> Self {
        self.request.system_prompt = Some(text.into());
        self
    }

    /// 0.0 for the likeliest words.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.request.temperature = Some(temperature);
        self
    }

    /// Names a model that would do well. The client may take another one.
    #[must_use]
    pub fn prefer_model(mut self, name: &str) -> Self {
        let preferences = self
            .request
            .model_preferences
            .get_or_insert(ModelPreferences {
                hints: Vec::new(),
                cost_priority: None,
                speed_priority: None,
                intelligence_priority: None,
            });
        preferences.hints.push(name.into());
        self
    }
}

impl Question for Sample {
    type Answer = Sampled;

    fn request(&self) -> Result<InputRequest, AskError> {
        let kind = InputKind::Sampling(self.request.clone());
        Ok(InputRequest {
            name: self.name.clone(),
            kind,
        })
    }

    fn read(&self, answer: InputAnswer) -> Result<Sampled, AskError> {
        match answer {
            InputAnswer::Sampled(answer) => Ok(answer),
            other => unexpected(other),
        }
    }
}

impl Sampled {
    /// The text of the answer, its blocks put together.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            SamplingContent::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

//! Arbitrary questions.

use crate::contents::{media, role, text};
use crate::contract::longshore::plugin::task::{
    FormRequest, IncludeContext, InputKind, InputRequest, ModelPreferences, SamplingContent,
    SamplingMessage, SamplingRequest, SamplingTool, ToolChoice, ToolResult, ToolUse, UrlRequest,
};
use crate::dice::Dice;

pub(crate) fn request(dice: &mut Dice) -> InputRequest {
    InputRequest {
        name: dice.name(),
        kind: match dice.roll(6) {
            0 => InputKind::Roots,
            1 => InputKind::Sampling(sampling(dice)),
            2 => InputKind::Url(UrlRequest {
                message: dice.text(),
                url: dice.uri(),
            }),
            _ => InputKind::Form(FormRequest {
                message: dice.text(),
                schema: dice.schema(),
            }),
        },
    }
}

fn sampling(dice: &mut Dice) -> SamplingRequest {
    SamplingRequest {
        messages: dice.some(3, |dice| SamplingMessage {
            role: role(dice),
            content: dice.some(3, content),
        }),
        max_tokens: dice.pick(&[0, 1, 1_000, u32::MAX]),
        system_prompt: dice.maybe(Dice::text),
        temperature: dice.maybe(Dice::float),
        stop_sequences: dice.some(2, Dice::text),
        model_preferences: dice.maybe(|dice| ModelPreferences {
            hints: dice.some(2, Dice::text),
            cost_priority: dice.maybe(Dice::float),
            speed_priority: dice.maybe(Dice::float),
            intelligence_priority: dice.maybe(Dice::float),
        }),
        include_context: dice
            .maybe(|dice| dice.pick(&[IncludeContext::ThisServer, IncludeContext::AllServers])),
        tools: dice.some(2, |dice| SamplingTool {
            name: dice.name(),
            description: dice.maybe(Dice::text),
            input_schema: dice.schema(),
        }),
        tool_choice: dice
            .maybe(|dice| dice.pick(&[ToolChoice::Auto, ToolChoice::Required, ToolChoice::None])),
        metadata: dice.maybe(Dice::object),
    }
}

fn content(dice: &mut Dice) -> SamplingContent {
    match dice.roll(6) {
        0 => SamplingContent::Image(media(dice)),
        1 => SamplingContent::Audio(media(dice)),
        2 => SamplingContent::ToolUse(ToolUse {
            id: dice.text(),
            name: dice.name(),
            input: dice.object(),
        }),
        3 => SamplingContent::ToolResult(ToolResult {
            tool_use_id: dice.text(),
            content: dice.some(2, text),
            structured_content: dice.maybe(Dice::json),
            is_error: dice.flag(),
        }),
        _ => SamplingContent::Text(text(dice)),
    }
}

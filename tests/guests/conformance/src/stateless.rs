//! What the suite's stateless scenario of 2026-07-28 calls.

use longshore_plugin::{Result, confirm, log, notify, sample};

pub(crate) fn missing_capability() -> Result<String> {
    let answer = sample("Say hello.").max_tokens(10).ask()?;
    Ok(answer.text())
}

pub(crate) fn streaming_elicitation() -> Result<&'static str> {
    let confirmed = confirm("Shall the stream go on?")?;
    Ok(if confirmed {
        "Confirmed."
    } else {
        "Not confirmed."
    })
}

pub(crate) fn logging() -> &'static str {
    log::info("Logging tool executed");
    "Logging tool completed"
}

pub(crate) fn trigger_tool_change() -> &'static str {
    notify::tools_changed();
    "Tool list change triggered"
}

pub(crate) fn trigger_prompt_change() -> &'static str {
    notify::prompts_changed();
    "Prompt list change triggered"
}

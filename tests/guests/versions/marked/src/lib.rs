//! Tools that answer with a mark, at once, after a wait and after a question. Tests replace the mark in the built component, and
//! have as many versions as they like: each says another thing, also of itself.

use longshore_plugin::{Result, confirm, tool};
use std::hint::black_box;
use std::thread::sleep;
use std::time::Duration;

/// Replaced byte by byte, wherever it stands.
static MARK: &str = "mark-000000";

/// Hidden from the compiler, or it would not leave the text in one piece.
fn mark() -> &'static str {
    black_box(MARK)
}

/// Longer than it takes to replace a plugin.
fn later() -> &'static str {
    sleep(Duration::from_millis(400));
    mark()
}

fn asked() -> Result<&'static str> {
    confirm("Go on?")?;
    Ok(mark())
}

longshore_plugin::plugin! {
    tools: [
        tool("mark", mark).description(mark()).read_only(),
        tool("mark_later", later).description(mark()).task_required(),
        tool("mark_asked", asked).description(mark()).task_required(),
    ]
}

//! What the suite's scenarios for the Tasks extension call.

use crate::rounds::Name;
use longshore_plugin::{
    Confirm, Error, Reply, Result, RpcError, ask_all, begin, confirm, form, progress,
    stop_if_cancelled,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::thread::sleep;
use std::time::Duration;

/// Greets by name.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Greet {
    /// Who is greeted.
    name: String,
}

pub(crate) fn greet(args: Greet) -> String {
    format!("Hello, {}!", args.name)
}

/// Works for some seconds.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SlowCompute {
    /// For how long.
    #[schemars(range(min = 0.0, max = 3600.0))]
    seconds: f64,
    /// What the work is called.
    label: Option<String>,
}

/// Short enough for a cancellation to be seen at once.
const STEP: Duration = Duration::from_millis(100);

pub(crate) fn slow_compute(args: SlowCompute) -> Result<String> {
    let label = args.label.as_deref().unwrap_or("computation");
    let whole = Duration::from_secs_f64(args.seconds.clamp(0.0, 3600.0));
    let mut left = whole;
    while !left.is_zero() {
        sleep(left.min(STEP));
        stop_if_cancelled()?;
        left = left.saturating_sub(STEP);
        let done = (whole - left).as_secs_f64();
        progress(
            done,
            args.seconds,
            &format!("{label}: {done:.1} of {:.1} s", args.seconds),
        );
    }
    Ok(format!("{label} finished after {} s", args.seconds))
}

pub(crate) fn failing_job() -> Result<()> {
    sleep(Duration::from_secs(1));
    Err(Error::msg("This job always fails"))
}

pub(crate) fn protocol_error_job() -> Result<(), RpcError> {
    sleep(Duration::from_millis(300));
    Err(RpcError::internal(
        "This job always ends in a protocol error",
    ))
}

/// Deletes a file, after the user has confirmed it.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ConfirmDelete {
    /// The file.
    filename: String,
}

pub(crate) fn confirm_delete(args: ConfirmDelete) -> Result<String> {
    let name = args.filename;
    let confirmed = confirm(&format!("Delete {name}?"))?;
    Ok(if confirmed {
        format!("Deleted {name}")
    } else {
        format!("Kept {name}")
    })
}

pub(crate) fn multi_input() -> Result<String> {
    let (user, confirmed) = ask_all((
        form::<Name>("What is your name?").named("user_name"),
        Confirm::new("Do you agree?").named("agreement"),
    ))?;
    let name = user.accepted().map_or("somebody".into(), |user| user.name);
    Ok(format!(
        "{name} {}",
        if confirmed { "agreed" } else { "did not agree" }
    ))
}

pub(crate) fn with_task() -> Result<String> {
    let reply = form::<Name>("What is your name?")
        .named("user_name")
        .ask()?;
    let Reply::Accepted(user) = reply else {
        return Ok("Nobody to greet.".into());
    };
    begin();
    sleep(Duration::from_millis(300));
    Ok(format!("Hello, {}!", user.name))
}

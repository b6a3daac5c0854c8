//! The call that is being served: how it stands, what is known of it.

use crate::contract::longshore::plugin::task;
use crate::{CallContext, ClientFeatures, Error, Result};

/// Says how far the work has got: `done` of `total` (`None` if nobody knows), and one line for a person ("" for none).
///
/// `done` must grow from one report to the next; the host drops what does not, and what comes too fast.
pub fn progress(done: f64, total: impl Into<Option<f64>>, message: &str) {
    let message = (!message.is_empty()).then_some(message);
    task::report_progress(done, total.into(), message);
}

/// Whether the caller wants the work to end. Ask it in long loops: what does not stop by itself is stopped a little later.
pub fn cancelled() -> bool {
    task::cancelled()
}

/// Ends the tool, by `?`, if the caller wants the work to end.
///
/// # Errors
/// If so.
pub fn stop_if_cancelled() -> Result<()> {
    if cancelled() {
        Err(Error::interrupted())
    } else {
        Ok(())
    }
}

/// What is known of the call: the client's features, its log level, trace context, deadline.
pub fn context() -> CallContext {
    task::context()
}

/// What the client of this call can do.
pub fn client_features() -> ClientFeatures {
    context().features
}

/// The questions that come before the work are settled: from here on the call may become a task. Only of use for a tool that
/// [asks first](crate::Tool::asks_first).
pub fn begin() {
    task::begin();
}

/// The id that [`set_external_id`] gave to this call, also in a run before this one.
pub fn external_id() -> Option<String> {
    task::external_id()
}

/// Ties an id of your own to this call (the number of a job elsewhere, say): at most 256 bytes of visible ASCII. The operator
/// can search by it; the client does not see it.
///
/// # Errors
/// If it is empty, too long, or not visible ASCII.
pub fn set_external_id(id: &str) -> Result<()> {
    task::set_external_id(id).map_err(|task::ExternalIdError::Invalid(why)| {
        Error::msg(format_args!("the external id {id:?} cannot be used: {why}"))
    })
}
